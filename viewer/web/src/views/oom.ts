// Out of memory: each failed request, the free memory at that moment, and the reason why that did not suffice.
import type { App, Device, View } from "../app";
import { add, clear, csvText, el } from "../dom";
import { bytes, count, counted, percent } from "../format";
import { foundNames } from "../found";
import { SavingText } from "../saving";
import { UNCHOSEN, type State } from "../state";
import { deviceName, failedIn, placeName, type Trouble } from "../trouble";
import { oomCard, type CardWays, type RequestStack } from "./oom-card";
import { CureBox } from "./oom-cure";
import { bar, sentence, type Cause } from "./oom-parts";
import { remediesBox, type Demand } from "./oom-remedies";
import { showChosen } from "./peak";

type Ooms = { demand?: Demand | null; oom: { index: number; size: number; device_free: number | null }[]; oom_causes: Cause[]; peak_bytes: number; peak_event: number; reserved_peak_bytes: number; reserved_peak_event: number };

const MOST_CARDS = 200;

const cardSize = (reserved: number) => [4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 141, 192, 288].find((gib) => gib * 2 ** 30 > reserved) ?? Math.ceil(reserved / 2 ** 30);

// The device or recording that ran out of memory if this device did not, and the names of both.
type Elsewhere = Trouble & { place: string; here: string };

function elsewhereOf(app: App, device: Device): Elsewhere | undefined {
    const { rec } = app.store.state;
    const trouble = failedIn(app.recordings, rec);
    if (!trouble || (trouble.rec === rec && trouble.device.device === device.device)) return undefined;
    if (trouble.rec === rec) return { ...trouble, place: deviceName(trouble.device), here: `on ${deviceName(device)}` };
    return { ...trouble, place: placeName(app.recordings[trouble.rec], trouble.device), here: `in ${app.recording()!.name}` };
}

// If nothing failed: shows how much room there would have been on a card of some size.
function none(body: HTMLElement, facts: Ooms, device: Device, go: (event: number) => void, elsewhere: Elsewhere | undefined, open: (trouble: Trouble) => void): void {
    add(body, el("h2", {}, elsewhere ? `It was ${elsewhere.place} that ran out of memory` : "No out-of-memory error is recorded"));
    if (elsewhere) add(body, el("p", {}, `${counted(elsewhere.device.ooms, "request")} failed there, and none ${elsewhere.here}. `, el("button", { type: "button", class: "link", onclick: () => open(elsewhere) }, `Show ${elsewhere.place}`)));
    else add(body, el("p", {}, device.events === 0 ? "The recording has no history: it cannot tell whether a request failed." : `${counted(device.events, "event")} recorded, and no request that failed.`));
    const peak = el("button", { type: "button", class: "link", onclick: () => go(facts.peak_event) }, facts.peak_event < 0 ? "the beginning" : `event ${count(facts.peak_event)}`);
    add(body, el("p", {}, `${device.host ? "The pinned memory" : `Device ${device.device}`} reached ${bytes(facts.peak_bytes)} allocated at `, peak, `, with at most ${bytes(facts.reserved_peak_bytes)} reserved from the driver.`));
    const size = el("input", { type: "number", min: 1, step: 1, value: Math.max(1, cardSize(facts.reserved_peak_bytes)), "aria-label": "Memory of the device in GiB" });
    const verdict = el("p", { class: "oom-room", role: "status" });
    const measure = () => {
        const total = Number(size.value) * 2 ** 30;
        const room = total - facts.reserved_peak_bytes;
        clear(verdict);
        add(verdict, bar([{ key: "allocated", name: "allocated", bytes: facts.peak_bytes, why: "" }, { key: "usable", name: "reserved, not allocated", bytes: Math.max(0, facts.reserved_peak_bytes - facts.peak_bytes), why: "" }, { key: "driver", name: "left", bytes: Math.max(0, room), why: "" }]));
        add(verdict, room >= 0 ? `${bytes(room)} (${percent(room, total)}) would have been free.` : `${bytes(-room)} more than that was reserved.`);
    };
    size.addEventListener("input", measure);
    add(body, el("label", { class: "oom-size" }, "On a device with ", size, " GiB:"), verdict);
    measure();
    if (!facts.demand) return;
    // Nothing had to fit, so no remedy is marked as sufficient.
    const remedies = facts.demand.remedies.map((remedy) => ({ ...remedy, fits: false }));
    add(body, el("section", { class: "oom-demand", "aria-label": "What holds it" }, el("h3", {}, "What holds it"), el("p", {}, sentence(facts.demand.text))), remediesBox({ ...facts.demand, remedies }, go));
}

type Ways = CardWays & { go(event: number): void; open(trouble: Trouble): void };

function paint(body: HTMLElement, shown: Ooms, device: Device, elsewhere: Elsewhere | undefined, ways: Ways, cure: HTMLElement): void {
    clear(body);
    if (shown.oom.length === 0) return none(body, shown, device, ways.go, elsewhere, ways.open);
    const many = shown.oom.length;
    add(body, el("h2", {}, many === 1 ? "One request ran out of memory" : `${count(many)} requests ran out of memory`));
    // The last failure usually ended the program, so it comes first and is open.
    [...shown.oom_causes].reverse().slice(0, MOST_CARDS).forEach((cause, i) => {
        const { size, device_free } = shown.oom[many - 1 - i];
        body.append(oomCard(cause, size, device_free, i === 0, ways, i === 0 ? cure : null));
    });
    if (many > MOST_CARDS) add(body, el("p", { class: "quiet-text" }, `${counted(many - MOST_CARDS, "earlier request")} ${many - MOST_CARDS === 1 ? "is" : "are"} in the list of events.`));
}

const HEADER = ["event", "requested_bytes", "driver_free_bytes", "cause", "site", "reserved_bytes", "allocated_bytes", "pending_bytes", "free_bytes", "usable_bytes", "usable_largest_bytes", "text"];

function csv(shown: Ooms | null): string {
    const row = (cause: Cause, i: number) => [cause.index, shown!.oom[i].size, shown!.oom[i].device_free, cause.cause, cause.site, cause.reserved_bytes, cause.allocated_bytes, cause.pending_bytes, cause.free_bytes, cause.usable_bytes, cause.usable_largest_bytes, cause.text];
    return csvText(HEADER, (shown?.oom_causes ?? []).map(row));
}

export function oomView(app: App): View {
    const body = el("div", { class: "scroll-body oom-view" });
    const root = el("div", { class: "fill scroll" }, body);
    let shown: Ooms | null = null;
    let asked = 0;
    let of = "";
    let cure: CureBox | null = null;

    async function load(): Promise<void> {
        const device = app.device();
        if (!device) return;
        const { rec } = app.store.state;
        const { partial } = app;
        // The key includes the number of events, because the beginning of a file differs from the whole.
        const key = `${rec} ${device.device} ${device.events} ${app.recordings.length}`;
        if (of === key) return cure?.find();
        of = key;
        cure = null;
        const ticket = ++asked;
        clear(body);
        add(body, el("p", { class: "quiet-text", role: "status" }, "Working it out\u2026"));
        try {
            const answer = await app.engine.ask<Ooms>({ name: "oom", rec, device: device.device });
            if (ticket !== asked) return;
            shown = answer.json;
            const box = new CureBox(app.engine, { rec, device: device.device });
            const ways: Ways = {
                go: (event: number) => app.store.set({ view: "state", event }),
                all: (event: number) => showChosen(app, event),
                blocks: (event: number, site: string) => app.store.set({ view: "state", event, search: site, regex: false }),
                stack: async (event: number) => (await app.engine.ask<RequestStack>({ name: "event", rec, device: device.device, event })).json,
                open: (trouble: Trouble) => app.store.set({ rec: trouble.rec, device: trouble.device.device, ...UNCHOSEN }),
            };
            paint(body, shown, device, elsewhereOf(app, device), ways, box.root);
            void mark();
            if (shown.oom.length === 0) {
                const saving = new SavingText(app.engine, { rec, device: device.device });
                body.append(saving.root);
                if (!partial) await saving.find();
                return;
            }
            cure = box;
            if (!partial) await cure.find();
        } catch (error) {
            of = "";
            app.say((error as Error).message);
        }
    }

    // Highlights the sites that the search finds.
    async function mark(): Promise<void> {
        const names = await foundNames(app, "site");
        for (const row of body.querySelectorAll<HTMLElement>("tr[data-site]")) row.classList.toggle("found-row", names?.has(row.dataset.site!) ?? false);
    }

    return {
        id: "oom",
        title: "Out of memory",
        key: "7",
        root,
        show: () => void load(),
        update: (_state: State, changed: ReadonlySet<keyof State>) => {
            if (changed.has("rec") || changed.has("device")) void load();
            if (changed.has("found")) void mark();
        },
        csv: () => csv(shown),
    };
}

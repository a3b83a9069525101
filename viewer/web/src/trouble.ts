// The device with the trouble: an out of memory, else the highest peak. The page opens on it, the menu of devices and the tab have a badge,
// and a sentence on the first screen says what happened and leads there.
import { sentence, type Cause } from "./views/oom-parts";
import type { Device, Recording } from "./app";
import { add, clear, el } from "./dom";
import type { Engine } from "./engine";
import { bytes, count } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { askOnce } from "./once";
import { UNCHOSEN, type State } from "./state";

type Mark = { kind: string; event: number; bytes?: number };

export const deviceName = (device: Device): string => (device.host ? "pinned host" : `device ${device.device}`);
export const ooms = (devices: readonly Device[]): number => devices.reduce((sum, device) => sum + device.ooms, 0);

// Of several that ran out of memory the one with the most such requests.
export function worstDevice(devices: readonly Device[]): Device | undefined {
    const worse = (a: Device, b: Device) => a.ooms - b.ooms || Number(b.host) - Number(a.host) || a.peak_bytes - b.peak_bytes || a.events - b.events;
    return devices.reduce<Device | undefined>((worst, device) => (!worst || worse(device, worst) > 0 ? device : worst), undefined);
}

// Fills in how many requests of each device failed, as far as `known` does not say it.
export async function countOoms(engine: Engine, recordings: readonly Recording[], known: readonly Recording[]): Promise<void> {
    for (const [rec, { devices }] of recordings.entries()) {
        for (const [i, device] of devices.entries()) {
            const before = known[rec]?.devices[i];
            if (before?.device === device.device && before.events === device.events) device.ooms = before.ooms;
            else device.ooms = device.events === 0 ? 0 : (await engine.ask<{ total: number }>({ name: "events", rec, device: device.device, action: "oom", count: 1 })).json.total;
        }
    }
}

const MOST_EVENTS = 2_000_000; // whose cause is worked out without being asked for

// The reason in a sentence, and who holds most where it names nobody.
function whyText(cause: Cause): string {
    const named = (site: string | null | undefined) => site && !cause.text.includes(site);
    const most = cause.holders?.[0];
    const who = named(cause.pin_site) ? ` ${cause.pin_blocks === 1 ? "It is" : "The largest of them is"} by ${cause.pin_site}.` : most && named(most.site) && !/ by \S+:\d+/.test(cause.text) && !most.site.startsWith("<") ? ` Most is held by ${most.site} (${bytes(most.bytes)}).` : "";
    const asked = named(cause.site) && !who.includes(cause.site) && !cause.site.startsWith("<") ? ` Asked for by ${cause.site}.` : "";
    const library = cause.libraries?.find(({ site }) => named(site) && !site.startsWith("<"));
    const through = library ? ` ${bytes(library.bytes)} of it through ${library.site}.` : "";
    return `${sentence(cause.text)}${through}${asked}${who}`;
}

export class TroubleBanner implements Panel {
    readonly root = el("section", { class: "trouble", "aria-label": "Out of memory", hidden: true });
    private asked = 0;
    private readonly why = el("p", { class: "trouble-why" });

    constructor(private readonly frame: Frame) {}

    update(state: State, changed: Changed): void {
        if (changed === null || changed.has("rec") || changed.has("device")) void this.load(state.rec);
        this.root.hidden = this.root.childElementCount === 0 || state.view === "oom" || !this.frame.device();
    }

    private async load(rec: number): Promise<void> {
        const ticket = ++this.asked;
        const devices = this.frame.recording()?.devices ?? [];
        const worst = worstDevice(devices);
        if (!worst || worst.ooms === 0) return clear(this.root);
        const { marks } = (await askOnce<{ marks: Mark[] }>(this.frame, { name: "marks", rec, device: worst.device })).json;
        if (ticket !== this.asked) return;
        this.show(devices, worst, marks.filter((mark) => mark.kind === "oom").at(-1));
        if (this.frame.partial || worst.events > MOST_EVENTS) return;
        const { oom_causes: causes } = (await askOnce<{ oom_causes: Cause[] }>(this.frame, { name: "oom", rec, device: worst.device })).json;
        const last = causes.at(-1);
        if (ticket === this.asked && last) this.why.textContent = whyText(last);
    }

    private show(devices: readonly Device[], worst: Device, last: Mark | undefined): void {
        const shown = this.frame.device();
        if (!shown) return; // another recording was chosen meanwhile
        const here = shown.device === worst.device;
        const name = deviceName(worst);
        const times = worst.ooms === 1 ? "" : ` ${count(worst.ooms)} times`;
        const what = last === undefined ? "" : `: ${worst.ooms === 1 ? "" : "the last time "}${bytes(last.bytes ?? 0)} asked for at event ${count(last.event)}`;
        const elsewhere = devices.filter((device) => device !== worst && device.ooms > 0);
        const others = elsewhere.length === 0 ? "" : ` So did ${elsewhere.map((device) => `${deviceName(device)} (${count(device.ooms)})`).join(", ")}.`;
        const away = here ? "" : ` This is ${deviceName(shown)}.`;
        clear(this.root);
        this.why.textContent = "";
        add(
            this.root,
            el("p", { role: "status" }, el("b", {}, `${devices.length > 1 ? `${name[0].toUpperCase()}${name.slice(1)}` : "The program"} ran out of memory${times}`), `${what}.${others}${away}`),
            this.why,
            el("button", { type: "button", class: "link", onclick: () => this.frame.store.set(here ? { view: "oom" } : { view: "oom", device: worst.device, ...UNCHOSEN }) }, here ? "Why it failed, and what to change" : `Why it failed on ${name}, and what to change`),
        );
        this.root.hidden = this.frame.store.state.view === "oom";
    }
}

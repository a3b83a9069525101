// Summarizes the window in a line below a chart: change, allocated, freed, the highest moment and the sites that allocated most.
import type { App } from "../app";
import { clear, el } from "../dom";
import { bytes, count, counted, percent } from "../format";
import { siteOf, tailOf } from "../sites";

type Groups = { bytes: number; allocations: number; groups: { name: string; bytes: number }[] };

const REST_MS = 350;
const SITES = 3;
const ROLES = 4;
const MOST_EVENTS = 2_000_000; // above this, finding roles takes too long to wait for

const signed = (value: number) => `${value > 0 ? "+" : ""}${bytes(value)}`;

export class RangeFacts {
    readonly root = el("p", { class: "range-facts", "aria-live": "polite", hidden: true });
    private timer = 0;
    private of = "";

    constructor(private readonly app: App) {}

    // Queries once the window rests.
    update(): void {
        const { from, to, axis, notion, rec } = this.app.store.state;
        const device = this.app.device();
        const of = JSON.stringify([from, to, axis, notion, rec, device?.device, device?.events]);
        if (of === this.of) return;
        this.of = of;
        clearTimeout(this.timer);
        // Keep the old text until the new one is known, so that nothing around it moves.
        this.root.classList.add("stale");
        // Do not query the peak of a file that is still being read.
        if (!device || this.app.partial) {
            this.root.hidden = true;
            return;
        }
        if (device.events === 0 || !(to > from)) {
            void this.loadPeak(of).catch((error: Error) => this.app.say(error.message));
            return;
        }
        this.timer = window.setTimeout(() => void this.load(of).catch((error: Error) => this.app.say(error.message)), REST_MS);
    }

    // Queries the parts of the peak of the whole history.
    private async loadPeak(of: string): Promise<void> {
        const { engine, store } = this.app;
        const { notion, rec } = store.state;
        const device = this.app.device()!;
        const ask = (by: string, top: number) => engine.ask<Groups>({ name: "groups", rec, device: device.device, notion, by, top });
        const roles = device.events <= MOST_EVENTS ? (await ask("role", ROLES)).json : null;
        const sites = (await ask("site", SITES)).json;
        if (of !== this.of) return;
        clear(this.root);
        this.root.classList.remove("stale");
        this.root.hidden = sites.bytes === 0;
        this.root.append(el("strong", { "data-fact": "peak", "data-bytes": sites.bytes }, `Peak ${bytes(sites.bytes)}`));
        const known = (roles?.groups ?? []).filter(({ name }) => name !== "unknown");
        // A program without a framework has one role for everything, so the roles are left out.
        if (known.length > 1) known.forEach(({ name, bytes: size }, i) => {
            const lead = el("button", { type: "button", class: "link", "data-role": name, onclick: () => store.set({ by: "role", legend: name }) }, `${name.replaceAll("_", " ")} ${percent(size, sites.bytes)}`);
            this.root.append(i === 0 ? ": " : ", ", lead);
        });
        sites.groups.forEach(({ name, bytes: size }, i) => this.root.append(i === 0 ? " \u00b7 most by " : ", ", this.siteLink(name, size)));
        this.root.append(" \u00b7 ", el("button", { type: "button", class: "link", "data-lead": "peak", onclick: () => store.set({ view: "peak" }) }, "what holds it"), ", ", el("button", { type: "button", class: "link", "data-lead": "oom", onclick: () => store.set({ view: "oom" }) }, "what would lower it"));
    }

    private siteLink(name: string, size: number): HTMLElement {
        const { title, place } = siteOf(name);
        if (name.startsWith("<")) return el("span", {}, `${title} ${bytes(size)}`); // no search finds it
        return el("button", { type: "button", class: "link", title: name, onclick: () => this.app.store.set({ search: name, regex: false }) }, `${tailOf(title)}${place ? ` ${place}` : ""} ${bytes(size)}`);
    }

    private async load(of: string): Promise<void> {
        const { engine, store } = this.app;
        const { from, to, axis, notion, rec } = store.state;
        const common = { rec, device: this.app.device()?.device };
        const events = axis === "time" ? (await engine.ask<{ from: number; to: number }>({ name: "translate", ...common, axis, from, to })).json : { from, to };
        const first = Math.floor(events.from);
        const last = Math.max(first, Math.min(Math.ceil(events.to), this.app.device()!.events) - 1);
        const live = async (event: number) => (await engine.ask<Groups>({ name: "groups", ...common, notion, event, top: 1 })).json.bytes;
        const before = await live(first - 1);
        const after = await live(last);
        const made = (await engine.ask<Groups>({ name: "groups", ...common, notion, made: 1, axis: "event", from: first, to: last + 1, top: SITES })).json;
        const curve = await engine.ask({ name: "curve", ...common, axis: "event", from: first, to: last + 1, pixels: 1 });
        if (of !== this.of) return;
        const change = after - before;
        const high = Number(curve.column(`${notion}_high`)[0]);
        const facts: [string, number, string][] = [
            ["change", change, signed(change)],
            ["allocated", made.bytes, `${bytes(made.bytes)} in ${counted(made.allocations, "allocation")}`],
            ["freed", made.bytes - change, bytes(made.bytes - change)],
            ["peak", high, bytes(high)],
        ];
        clear(this.root);
        this.root.append(el("strong", {}, `Events ${count(first)} to ${count(last)}`));
        for (const [name, value, text] of facts) this.root.append(" \u00b7 ", el("span", { "data-fact": name, "data-bytes": value }, `${name} ${text}`));
        made.groups.forEach(({ name, bytes: size }, i) => {
            this.root.append(i === 0 ? " \u00b7 most allocated by " : ", ", this.siteLink(name, size));
        });
        this.root.hidden = false;
        this.root.classList.remove("stale");
    }
}

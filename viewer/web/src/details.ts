// The panel on the right: everything known about the picked allocation or segment.
import { add, clear, el } from "./dom";
import { bytes, count, duration } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { latest } from "./latest";
import { copyText } from "./save";
import { splitter } from "./splitter";
import { roleCell } from "./views/peak";
import { plainSite } from "./sites";
import { framesList, frameText, type StackFrame } from "./stack";
import type { State } from "./state";

export type Allocation = {
    label: string;
    kind?: string;
    row?: number;
    address: string;
    bytes: number;
    block_bytes?: number;
    birth_event: number | null;
    birth_time_us?: number;
    death_event: number | null;
    death_time_us?: number;
    completed_event?: number | null;
    completed_time_us?: number;
    total_after?: number;
    stream?: number;
    thread?: number;
    pool?: [number, number];
    category?: string;
    metadata?: string;
    context?: string;
    role?: string;
    frames: StackFrame[];
    site?: number; // index of the call site in `frames`
};

const siteFrame = (item: Allocation): StackFrame | undefined => (item.site === undefined ? undefined : item.frames[item.site]);

// PyTorch writes "N/A" for an unknown value.
const known = (text: string | undefined): string | undefined => (text === "N/A" ? undefined : text);

// Returns a descriptive title: "12.0 MiB of activations".
const titleOf = ({ bytes: size, role, kind, label }: Allocation): string => (kind === "segment" ? label : `${bytes(size)}${role && role !== "unknown" ? ` of ${role.replaceAll("_", " ")}` : ""}`);

export class Details implements Panel {
    readonly root = el("aside", { class: "details", "aria-label": "Details", hidden: true });
    readonly bar = splitter({
        name: "details",
        label: "Width of the details",
        upright: true,
        least: 200,
        most: 900,
        start: 340,
        step: -20, // it grows to the left
        valueAt: (event) => this.root.getBoundingClientRect().right - event.clientX,
        use: (width) => (this.root.style.flexBasis = `${width}px`),
    });
    private readonly body = el("div", { class: "details-body" });
    private readonly ask;
    private shown: Allocation | null = null;
    private open = true;
    private told = false;

    constructor(private readonly frame: Frame) {
        this.ask = latest<Allocation>(frame.engine);
        this.root.append(this.body);
        this.bar.hidden = true;
    }

    toggle(): void {
        this.open = !this.open;
        this.place();
    }

    update(state: State, changed: Changed): void {
        const asks: (keyof State)[] = ["pick", "rec", "device"];
        if (changed === null || asks.some((key) => changed.has(key))) {
            if (changed?.has("pick")) this.open = true;
            void this.load(state);
        }
    }

    private place(): void {
        const picked = this.frame.store.state.pick !== "";
        if (!picked && this.told) this.frame.announce("Nothing is selected.");
        this.told = picked;
        const hidden = !this.open || this.frame.store.state.pick === "" || !this.frame.device();
        if (hidden === this.root.hidden) return;
        this.root.hidden = this.bar.hidden = hidden;
        window.dispatchEvent(new Event("resize"));
    }

    private async load(state: State): Promise<void> {
        const device = this.frame.device();
        this.place();
        if (!device || state.pick === "") return;
        try {
            const answer = await this.ask({ name: "allocation", rec: state.rec, device: device.device, label: state.pick });
            if (!answer) return;
            this.show(answer.json);
            this.frame.announce(this.spoken(answer.json));
        } catch (error) {
            this.shown = null;
            clear(this.body);
            add(this.body, this.head(state.pick), el("p", { class: "quiet-text" }, (error as Error).message));
        }
    }

    private head(title: string, label = title): HTMLElement {
        const close = el("button", { type: "button", class: "quiet close", "aria-label": "Clear the selection", onclick: () => this.frame.store.set({ pick: "" }) }, "\u00d7");
        const copy = el("button", { type: "button", class: "quiet", title: "Copy the label", "aria-label": "Copy the label", onclick: () => void copyText(label) }, "copy");
        return el("div", { class: "details-head" }, el("h2", {}, title), copy, close);
    }

    // Describes the pick in a sentence, for screen readers.
    private spoken(item: Allocation): string {
        const place = siteFrame(item);
        const life = `${item.birth_event === null ? "allocated before the recording" : `allocated at event ${count(item.birth_event)}`}, ${item.death_event === null ? "never freed" : `freed at event ${count(item.death_event)}`}`;
        return `Selected ${item.label}: ${bytes(item.bytes)}, ${life}${place ? `, at ${plainSite(frameText(place))}` : ""}`;
    }

    private moment(event: number | null | undefined, time: number | undefined, absent: string): HTMLElement {
        if (event === null || event === undefined) return el("span", { class: "quiet-text" }, absent);
        const first = this.frame.device()?.first_time_us;
        const after = time !== undefined && first !== undefined ? ` at ${duration(time - first)}` : "";
        const button = el("button", { type: "button", class: "jump", title: "Select this moment", onclick: () => this.frame.store.set({ event }) }, `event ${count(event)}`);
        return el("span", {}, button, after);
    }

    private rows(item: Allocation): [string, HTMLElement | string | undefined][] {
        const lost = item.block_bytes !== undefined ? item.block_bytes - item.bytes : 0;
        const lived = item.birth_time_us !== undefined && item.death_time_us !== undefined ? duration(item.death_time_us - item.birth_time_us) : undefined;
        const exact = (value: number) => el("span", { title: `${count(value)} bytes` }, bytes(value));
        return [
            ["label", el("code", {}, item.label)],
            ["role", item.role && item.role !== "unknown" ? roleCell(item.role) : undefined],
            ["address", el("code", {}, item.address)],
            ["requested", exact(item.bytes)],
            ["block size", item.block_bytes === undefined ? undefined : `${bytes(item.block_bytes)}${lost > 0 ? ` (${bytes(lost)} rounding)` : ""}`],
            ["allocated", this.moment(item.birth_event, item.birth_time_us, "before the recording")],
            ["freed", this.moment(item.death_event, item.death_time_us, "never")],
            ["usable again", item.completed_event === undefined || item.death_event === null ? undefined : this.moment(item.completed_event, item.completed_time_us, "never")],
            ["lifetime", lived],
            ["total after it", item.total_after === undefined ? undefined : exact(item.total_after)],
            ["stream", item.stream?.toString()],
            ["pool", item.pool === undefined ? undefined : item.pool[0] === 0 && item.pool[1] === 0 ? "default" : `private ${item.pool.join(", ")}`],
            ["thread", item.thread?.toString()],
            ["category", item.category],
            ["metadata", known(item.metadata)],
            ["compiled as", known(item.context)],
        ];
    }

    private show(item: Allocation): void {
        this.shown = item;
        clear(this.body);
        const table = el("dl", { class: "facts-list" });
        for (const [name, value] of this.rows(item)) {
            if (value !== undefined && value !== "") add(table, el("dt", {}, name), el("dd", {}, value));
        }
        const actions = el("div", { class: "details-actions" }, el("button", { type: "button", onclick: () => this.showLife(item) }, "Show its lifetime"));
        const place = siteFrame(item);
        const site = place ? frameText(place) : "";
        if (site !== "") {
            actions.append(el("button", { type: "button", title: "Highlight all allocations of this call site", onclick: () => this.frame.store.set({ search: site, regex: false }) }, "Same call site"));
            actions.append(el("button", { type: "button", onclick: () => void copyText(item.frames.map(frameText).join("\n")) }, "Copy stack"));
        }
        add(this.body, this.head(titleOf(item), item.label), table, actions, framesList(item.frames, item.site));
    }

    // Sets the window to the item's lifetime with a margin.
    private showLife(item: Allocation): void {
        const length = this.frame.length();
        const first = this.frame.device()?.first_time_us ?? 0;
        const time = this.frame.store.state.axis === "time";
        const from = item.birth_event === null ? 0 : time ? (item.birth_time_us ?? first) - first : item.birth_event;
        const to = item.death_event === null ? length : time ? (item.death_time_us ?? first + length) - first : item.death_event + 1;
        const margin = Math.max(1, (to - from) * 0.1);
        this.frame.setWindow(from - margin, to + margin);
    }

    picked(): Allocation | null {
        return this.shown;
    }
}

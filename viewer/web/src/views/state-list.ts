// The list of events. It has any number of rows, of which only the visible ones exist. Rows are queried by their position in the list.
import type { App } from "../app";
import { clear, csvText, el } from "../dom";
import type { Question } from "../engine";
import { bytes, count } from "../format";
import { latest } from "../latest";
import type { Answer } from "../protocol";

export const ROW_PIXELS = 22;
// Browsers limit elements to some tens of millions of pixels.
const MOST_PIXELS = 8_000_000;
const CSV_ROWS = 65536;
const NO_ROW = 0xffffffff;

type Events = { events: number; total: number; first: number; position: number; actions: string[]; streams: string[] };

export type EventRow = { event: number; action: string; address: string; bytes: number; stream: string; row: number; label: string };

const TITLES: Record<string, string> = {
    free_requested: "free",
    free_completed: "free completed",
    segment_alloc: "segment alloc",
    segment_free: "segment free",
    segment_map: "segment map",
    segment_unmap: "segment unmap",
    user_defined: "user mark",
    annotate: "label",
};
export const actionTitle = (action: string) => TITLES[action] ?? action;

export function hexAddress(high: number, low: number): string {
    return high === 0 ? low.toString(16) : high.toString(16) + low.toString(16).padStart(8, "0");
}

export function rowsOf(answer: Answer<Events>): EventRow[] {
    const { actions, streams } = answer.json;
    const [event, action, low, high, size, stream, row, version] = ["event", "action", "address_low", "address_high", "bytes", "stream", "row", "version"].map((name) => answer.column(name));
    return Array.from({ length: event.length }, (_, i) => {
        const name = actions[action[i]];
        const address = hexAddress(high[i], low[i]);
        const letter = name.startsWith("segment") ? "s" : row[i] === NO_ROW ? "" : "b";
        return { event: event[i], action: name, address, bytes: size[i], stream: streams[stream[i]] ?? "?", row: row[i], label: letter ? `${letter}${address}_${version[i]}` : "" };
    });
}

// Returns "alloc b7f03c0000000_0 (1.50 MiB, stream 0)", the usual form for memory snapshots.
export function eventText(row: EventRow): string {
    const title = actionTitle(row.action);
    if (row.action === "oom") return `out of memory: ${bytes(row.bytes)} requested, ${bytes(parseInt(row.address, 16))} free in the driver`;
    if (row.action === "snapshot" || row.action === "user_defined") return title;
    return `${title} ${row.label || row.address} (${bytes(row.bytes)}${row.stream === "0" ? "" : `, stream ${row.stream}`})`;
}

export class EventList {
    readonly root: HTMLElement;
    private readonly rows = el("div", { class: "event-rows", role: "listbox", tabindex: 0, "aria-label": "Events" });
    private readonly bar = el("div", { class: "event-bar" });
    private readonly length = el("div", { class: "event-length" });
    private readonly ask;
    private filter: Question = { name: "events" };
    private top = 0; // position of the first visible row
    private chosen = NaN; // event
    total = 0;
    position = 0; // position of the chosen event in the list
    private scrolledByUs = false;

    constructor(
        private readonly app: App,
        private readonly onChoose: (event: number) => void,
        private readonly onTotal: (shown: number, all: number) => void,
    ) {
        this.ask = latest<Events>(app.engine);
        this.bar.append(this.length);
        this.root = el("div", { class: "event-list" }, this.rows, this.bar);
        this.root.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
        this.bar.addEventListener("scroll", () => this.onScroll());
    }

    private visible(): number {
        return Math.max(1, Math.floor(this.rows.clientHeight / ROW_PIXELS));
    }

    private onWheel(event: WheelEvent): void {
        if (event.ctrlKey) return;
        event.preventDefault();
        this.scrollTo(this.top + (event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW_PIXELS));
    }

    private onScroll(): void {
        if (this.scrolledByUs) {
            this.scrolledByUs = false;
            return;
        }
        const range = this.bar.scrollHeight - this.bar.clientHeight;
        this.top = range > 0 ? (this.bar.scrollTop / range) * Math.max(0, this.total - this.visible()) : 0;
        void this.load();
    }

    private scrollTo(top: number): void {
        this.top = Math.max(0, Math.min(top, this.total - this.visible()));
        this.placeBar();
        void this.load();
    }

    private placeBar(): void {
        this.length.style.height = `${Math.min(this.total * ROW_PIXELS, MOST_PIXELS)}px`;
        const range = this.bar.scrollHeight - this.bar.clientHeight;
        const most = Math.max(1, this.total - this.visible());
        const at = Math.round((this.top / most) * range);
        if (range > 0 && Math.round(this.bar.scrollTop) !== at) {
            this.scrolledByUs = true;
            this.bar.scrollTop = at;
        }
    }

    // Sets which events are listed, keeping the chosen one in view.
    async show(filter: Question, chosen: number): Promise<void> {
        this.filter = filter;
        this.chosen = chosen;
        await this.load(true);
    }

    // Returns the event `by` rows from the chosen one; undefined beyond the list.
    async step(by: number): Promise<number | undefined> {
        const { total, position } = this;
        if (total === 0) return undefined;
        const onRow = this.onRow;
        const from = onRow || by < 0 ? position : position - 1;
        const place = Math.max(0, Math.min(total - 1, from + by));
        const answer = await this.app.engine.ask<Events>({ ...this.filter, first: place, count: 1 });
        return answer.column("event")[0];
    }

    private onRow = false;

    private async load(follow = false): Promise<void> {
        const visible = this.visible() + 1;
        try {
            const { name, ...filter } = this.filter;
            const answer = await this.ask({ name, ...filter, first: Math.floor(this.top), count: visible, event: Math.max(-1, this.chosen) });
            if (!answer) return;
            this.total = answer.json.total;
            this.position = answer.json.position;
            this.onTotal(answer.json.total, answer.json.events);
            const rowsNow = this.visible();
            const out = this.position < this.top || this.position >= this.top + rowsNow;
            if ((follow && out && this.total > rowsNow) || this.top > Math.max(0, this.total - rowsNow)) {
                this.scrollTo(follow && out ? this.position - Math.floor(rowsNow / 2) : this.top);
                return;
            }
            this.placeBar();
            this.paint(rowsOf(answer));
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    private paint(rows: EventRow[]): void {
        const matches = this.app.matches();
        clear(this.rows);
        this.onRow = false;
        for (const row of rows) {
            const chosen = row.event === this.chosen;
            const found = matches !== undefined && row.row !== NO_ROW && matches.has(row.row, NaN);
            const item = el(
                "div",
                { class: `event-row act-${row.action}${found ? " found" : ""}`, role: "option", id: `event-${row.event}`, "aria-selected": String(chosen), "data-event": row.event, onclick: () => this.onChoose(row.event) },
                el("span", { class: "event-number" }, count(row.event)),
                el("span", { class: "event-text" }, eventText(row)),
            );
            if (chosen) this.rows.setAttribute("aria-activedescendant", item.id);
            this.rows.append(item);
        }
        if (rows.length === 0) this.rows.append(el("p", { class: "quiet-text" }, this.filter.action || this.filter.text ? "No event passes the filter." : "The recording has no events of this device."));
        this.onRow = this.total > 0 && rows.some((row) => row.event === this.chosen);
    }

    // Returns the whole list as parts of one CSV file.
    async csv(): Promise<string[]> {
        const header = ["event", "action", "label", "address", "bytes", "stream"];
        const parts: string[] = [csvText(header, [])];
        for (let first = 0; first < this.total; first += CSV_ROWS) {
            const answer = await this.app.engine.ask<Events>({ ...this.filter, first, count: CSV_ROWS });
            const text = csvText(header, rowsOf(answer).map((row) => [row.event, row.action, row.label, row.address, row.bytes, row.stream]));
            parts.push(text.slice(text.indexOf("\n") + 1));
        }
        return parts;
    }

    page(): number {
        return Math.max(1, this.visible() - 2);
    }

    focus(): void {
        this.rows.focus({ preventScroll: true });
    }
}

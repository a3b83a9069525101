// The allocator's state: the list of events, and segments and blocks after the chosen one.
import type { App, View } from "../app";
import { csvText, el } from "../dom";
import type { Question } from "../engine";
import { count, counted } from "../format";
import { latest } from "../latest";
import { askOnce } from "../once";
import { download } from "../save";
import type { State } from "../state";
import { Working } from "../working";
import { describe } from "./state-facts";
import { EventList } from "./state-list";
import { Moment, PENDING, type StateSums } from "./state-picture";
import { Stage } from "./state-stage";

const FILTERS: readonly (readonly [string, string])[] = [
    ["all events", ""],
    ["alloc and free", "alloc,free_requested,free_completed,free"],
    ["alloc", "alloc"],
    ["segments", "segment_alloc,segment_free,segment_map,segment_unmap"],
    ["out of memory", "oom"],
    ["marks", "snapshot,user_defined,annotate"],
];
const CSV_BLOCKS = 1 << 17; // per query
const HEADER = ["segment", "block", "bytes", "requested_bytes", "state", "stream", "pool", "kind"];

class StateHistory {
    readonly root: HTMLElement;
    private readonly facts = el("dl", { class: "state-facts", "aria-live": "polite" });
    private readonly scrub = el("input", { type: "range", class: "state-scrub", min: -1, "aria-label": "Moment: after which event" });
    private readonly filter = el("select", { "aria-label": "Which events" }, ...FILTERS.map(([title, value]) => el("option", { value }, title)));
    private readonly found = el("input", { type: "checkbox", id: "state-found" });
    private readonly shown = el("span", { class: "quiet-text" });
    private readonly saveList = el("button", { type: "button", class: "quiet", title: "Save the list of events as CSV", onclick: () => void this.saveEvents() }, "CSV");
    private readonly working = new Working();
    private readonly list: EventList;
    private readonly jumps: HTMLElement;
    private readonly ask;
    readonly stage: Stage;
    private ooms: readonly number[] = [];

    constructor(private readonly app: App) {
        this.ask = latest<StateSums>(app.engine, this.working.tell);
        this.stage = new Stage(app);
        this.list = new EventList(
            app,
            (event) => app.store.set({ event }),
            (some, all) => (this.shown.textContent = some === all ? counted(all, "event") : `${count(some)} of ${counted(all, "event")}`),
        );
        this.jumps = this.makeJumps();
        const { stage } = this;
        const listTools = el("div", { class: "state-tools" }, this.filter, el("label", { for: "state-found" }, this.found, " found only"), this.shown, this.saveList);
        const stageTools = el("div", { class: "state-tools" }, this.jumps, this.scrub, stage.sorting, stage.colouring);
        this.root = el("div", { class: "fill state-view" }, el("div", { class: "state-left" }, listTools, this.list.root), el("div", { class: "state-right" }, stageTools, this.facts, this.working.root, stage.root, stage.legend));
        this.scrub.addEventListener("input", () => this.choose(Number(this.scrub.value)));
        this.filter.addEventListener("change", () => this.showList());
        this.found.addEventListener("change", () => this.showList());
        new ResizeObserver(() => {
            stage.again();
            this.showList();
        }).observe(stage.root);
    }

    private makeJumps(): HTMLElement {
        const button = (text: string, title: string, go: () => void) => el("button", { type: "button", class: "quiet", title, onclick: go }, text);
        return el(
            "div",
            { class: "state-jumps", role: "group", "aria-label": "Jump to" },
            button("start", "Before the first event (Home)", () => this.choose(-1)),
            button("peak", "The moment of the peak (m)", () => this.choose(this.peak())),
            button("\u2039 OOM", "The previous out-of-memory event (p)", () => this.jumpOom(-1)),
            button("OOM \u203a", "The next out-of-memory event (n)", () => this.jumpOom(1)),
            button("end", "After the last event (End)", () => this.choose(this.last())),
        );
    }

    private last = () => (this.app.device()?.events ?? 0) - 1;
    private peak = () => this.app.device()?.peak_event ?? -1;
    // Returns the chosen event, else the last failed request, else the end.
    private moment(): number {
        const { event } = this.app.store.state;
        return Number.isNaN(event) ? (this.ooms.at(-1) ?? this.last()) : Math.max(-1, Math.min(event, this.last()));
    }
    private choose(event: number): void {
        this.app.store.set({ event: Math.max(-1, Math.min(event, this.last())) });
    }
    private about(): { rec: number; device: number | undefined } {
        return { rec: this.app.store.state.rec, device: this.app.device()?.device };
    }

    private question(): Question {
        const { search, regex } = this.app.store.state;
        const text = this.found.checked && search !== "" ? search : undefined;
        return { name: "events", ...this.about(), action: this.filter.value || undefined, text, regex: text !== undefined && regex ? 1 : undefined };
    }
    showList(): void {
        if (this.app.device()) void this.list.show(this.question(), this.moment());
    }

    private async saveEvents(): Promise<void> {
        this.saveList.disabled = true;
        try {
            download(new Blob(await this.list.csv(), { type: "text/csv" }), "events.csv");
        } catch (error) {
            this.app.say((error as Error).message);
        }
        this.saveList.disabled = false;
    }

    private jumpOom(by: number): void {
        const at = this.moment();
        const next = by > 0 ? this.ooms.find((event) => event > at) : this.ooms.filter((event) => event < at).at(-1);
        if (next !== undefined) this.choose(next);
    }
    private async findOoms(): Promise<void> {
        const about = this.about();
        const answer = this.app.device()!.ooms > 0 ? await askOnce(this.app, { name: "events", ...about, action: "oom", count: 65536 }) : null;
        const now = this.about();
        if (now.rec !== about.rec || now.device !== about.device) return;
        this.ooms = answer ? [...answer.column("event")] : [];
        for (const item of this.jumps.querySelectorAll("button")) if (item.textContent!.includes("OOM")) item.disabled = this.ooms.length === 0;
    }

    async load(): Promise<void> {
        if (!this.app.device()) return;
        try {
            await this.findOoms();
            if (!this.app.device()) return;
            this.scrub.max = String(this.last());
            this.scrub.value = String(this.moment());
            this.showList();
            const answer = await this.ask({ name: "state", ...this.about(), event: this.moment() });
            if (!answer) return;
            describe(this.facts, answer.json, this.last() + 1);
            this.stage.show(new Moment(answer));
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    private async step(by: number): Promise<void> {
        if (by < 0 && this.list.position === 0 && !this.filter.value) return this.choose(-1);
        const event = await this.list.step(by);
        if (event !== undefined) this.choose(event);
    }

    private readonly acts: Record<string, () => unknown> = {
        ArrowUp: () => this.step(-1),
        ArrowDown: () => this.step(1),
        PageUp: () => this.step(-this.list.page()),
        PageDown: () => this.step(this.list.page()),
        Home: () => this.choose(-1),
        End: () => this.choose(this.last()),
        n: () => this.jumpOom(1),
        p: () => this.jumpOom(-1),
        m: () => this.choose(this.peak()),
        ",": () => this.stage.walk(-1),
        ".": () => this.stage.walk(1),
    };
    onKey(event: KeyboardEvent): boolean {
        const act = event.shiftKey ? undefined : this.acts[event.key];
        if (act) void act();
        return act !== undefined;
    }

    // Lists every block, one page per question.
    async csv(): Promise<string> {
        const rows: (string | number)[][] = [];
        for (let first = 0; ; first += CSV_BLOCKS) {
            const moment = new Moment(await this.app.engine.ask<StateSums>({ name: "state", ...this.about(), event: this.moment(), first, limit: CSV_BLOCKS }));
            for (let s = 0; s < moment.segments; s++) rows.push(...rowsOf(moment, s));
            if (first + CSV_BLOCKS >= moment.json.blocks) return csvText(HEADER, rows);
        }
    }
}

function rowsOf(moment: Moment, segment: number): (string | number)[][] {
    const { at } = moment;
    const owner = moment.owner(segment);
    const rows: (string | number)[][] = [];
    for (let b = at.segment_first[segment]; b < at.segment_first[segment + 1]; b++)
        rows.push([moment.segmentLabel(segment), moment.blockLabel(segment, b), at.block_bytes[b], at.block_asked[b], at.block_flags[b] & PENDING ? "pending" : "allocated", owner.stream ?? "", owner.pool?.join(" ") ?? "", owner.kind ?? ""]);
    return rows;
}

export function stateView(app: App): View {
    const history = new StateHistory(app);
    return {
        id: "state",
        title: "State history",
        key: "2",
        root: history.root,
        show: () => void history.load(),
        hide: () => history.stage.leave(),
        update: (_state: State, changed: ReadonlySet<keyof State>) => {
            if (["event", "rec", "device"].some((key) => changed.has(key as keyof State))) return void history.load();
            history.stage.mark();
            if (changed.has("found") || changed.has("search")) history.showList();
        },
        onKey: (event) => history.onKey(event),
        keys: [
            ["\u2191 \u2193", "one event back or forward"],
            ["Page up, Page down", "a page of events back or forward"],
            ["Home End", "before the first event, after the last one"],
            ["n p", "the next out-of-memory event, the previous one"],
            ["m", "the moment of the peak"],
            [", .", "select the previous or next block"],
        ],
        svg: () => history.stage.svg(),
        csv: () => history.csv(),
    };
}

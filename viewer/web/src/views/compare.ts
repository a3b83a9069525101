// Compares two recordings, ranks or moments at their peaks, ends or the same step: which groups grew, which exist in only one, and both
// curves over each other.
import type { App, Device, View } from "../app";
import { add, clear, el } from "../dom";
import { Flame, type TreeJson } from "../draw/flame";
import { foundNames } from "../found";
import { bytes, count, counted } from "../format";
import { latest } from "../latest";
import type { Answer, Numbers } from "../protocol";
import { GROUPINGS } from "../sites";
import { frameText } from "../stack";
import { SortTable } from "../table";
import { prepare, Working } from "../working";
import { Curves } from "./compare-curves";
import { nameCell } from "./peak";

type Pair = { name: string; bytes: number; other_bytes: number; count: number; other_count: number; row?: number; other_row?: number; moved?: boolean };
type Side = { name: string; device: number; event: number; bytes: number; allocations: number };
type CompareJson = { a: Side; b: Side; distinct: number; groups: Pair[]; rest_bytes: number; rest_other_bytes: number };
type Rank = { rec: number; name: string; device: number; events: number; peak_bytes: number; peak_event: number; reserved_peak_bytes: number; ooms: number; steps: number; first: number };
type StepsJson = { source: string; sure: boolean; steps: number };
type About = { rec: number; device: number };

const PIXELS = 1000;
const signed = (value: number) => `${value > 0 ? "+" : ""}${bytes(value)}`;

// Returns a bar to the right for growth, to the left for shrinking.
function changeCell(change: number, most: number): HTMLElement {
    const bar = el("span", { class: `change-bar ${change >= 0 ? "grew" : "shrank"}` }); // no bar for no change
    bar.style.width = `${(50 * Math.abs(change)) / Math.max(1, most)}%`;
    return el("span", { class: "bar-cell change" }, el("span", { class: "bar-room middle" }, bar), el("span", { class: "bar-text" }, signed(change)));
}

// Returns the other recording's device to compare with: the same number if it has events, else the busiest.
function partnerOf(devices: readonly Device[], device: number): number {
    const same = devices.find((item) => item.device === device && item.events > 0);
    return (same ?? devices.reduce((best, item) => (item.events > best.events ? item : best))).device;
}

class Compare {
    readonly root: HTMLElement;
    private readonly letter = el("span", {}, "B");
    private readonly other = el("select", { "aria-label": "Compare with" });
    private readonly by = el("select", { "aria-label": "Group by" }, ...GROUPINGS.filter(([word]) => word !== "stack" && word !== "regex").map(([value, text]) => el("option", { value }, text)));
    private readonly facts = el("p", { class: "compare-facts" });
    private readonly at = el("select", { "aria-label": "Compare at" }, el("option", { value: "peak" }, "the peak of each"), el("option", { value: "end" }, "the end of each"), el("option", { value: "step" }, "the same step"));
    private readonly base = el("input", { type: "number", min: 1, class: "short", hidden: true, "aria-label": "Step of A" });
    private readonly step = el("input", { type: "number", min: 1, class: "short", hidden: true, "aria-label": "Step" });
    private readonly stepFacts = el("span", { class: "quiet-text" });
    private readonly open = el("button", { type: "button", hidden: true, title: "Another run, another rank, the program before a change", onclick: () => this.app.chooseFiles() }, "Open a second recording\u2026");
    private readonly working = new Working();
    private readonly curves = new Curves((step) => this.app.store.set({ step }));
    private readonly table: SortTable<Pair>;
    private readonly ranks: SortTable<Rank>;
    private readonly flame: Flame;
    private readonly empty = el("section", { class: "compare-empty", "aria-label": "Nothing to compare with" });
    private readonly parts: HTMLElement;
    private readonly bar: HTMLElement;
    private readonly askCompare;
    private readonly askTree;
    private asked = "";
    private shown: CompareJson | null = null;
    private chosen = "";
    private most = 1;
    private steps = 0; // common to both sides
    private rankSteps: Numbers = new Float64Array();
    private titles: [string, string] = ["", ""];
    private sides: readonly About[] = [];

    constructor(private readonly app: App) {
        this.askCompare = latest<CompareJson>(app.engine);
        this.askTree = latest<TreeJson>(app.engine);
        this.table = new SortTable<Pair>(
            "Differences",
            [
                { title: "Group", value: (pair) => pair.name, cell: (pair) => el("span", {}, nameCell(pair.name), pair.moved && el("span", { class: "chip" }, "line moved"), pair.row === undefined && el("span", { class: "chip" }, "only in B"), pair.other_row === undefined && el("span", { class: "chip" }, "only in A")) },
                { title: "A", number: true, value: (pair) => pair.bytes, cell: (pair) => bytes(pair.bytes) },
                { title: "B", number: true, value: (pair) => pair.other_bytes, cell: (pair) => bytes(pair.other_bytes) },
                { title: "Change", number: true, value: (pair) => pair.other_bytes - pair.bytes, cell: (pair) => changeCell(pair.other_bytes - pair.bytes, this.most) },
                { title: "Objects", number: true, value: (pair) => pair.other_count - pair.count, cell: (pair) => `${count(pair.count)} \u2192 ${count(pair.other_count)}` },
            ],
            3,
            (pair) => {
                this.chosen = pair.name;
                this.table.draw();
                app.store.set({ search: pair.name, regex: false });
            },
            (pair) => pair.name === this.chosen,
        );
        this.ranks = new SortTable<Rank>(
            "All recordings",
            [
                { title: "Recording", value: (rank) => rank.name },
                { title: "Device", number: true, value: (rank) => rank.device },
                { title: "Peak", number: true, value: (rank) => rank.peak_bytes, cell: (rank) => bytes(rank.peak_bytes) },
                { title: "At event", number: true, value: (rank) => rank.peak_event, cell: (rank) => count(rank.peak_event) },
                { title: "Reserved", number: true, value: (rank) => rank.reserved_peak_bytes, cell: (rank) => bytes(rank.reserved_peak_bytes) },
                { title: "Out of memory", number: true, value: (rank) => rank.ooms },
                { title: "Events", number: true, value: (rank) => rank.events, cell: (rank) => count(rank.events) },
                { title: "Steps", number: true, value: (rank) => rank.steps },
                { title: "Allocated in the step", number: true, value: (rank) => this.inStep(rank) ?? -1, cell: (rank) => (this.inStep(rank) === null ? "\u2013" : bytes(this.inStep(rank)!)) },
            ],
            2,
            (rank) => app.store.set({ other: rank.rec }),
            (rank) => rank.rec === this.second(),
        );
        this.flame = new Flame((frame) => app.store.set({ search: frameText(frame), regex: false }));
        this.bar = el("div", { class: "view-bar" }, el("label", {}, this.letter, this.other), el("label", {}, "at", this.at), this.base, this.step, this.stepFacts, this.open, el("label", {}, "Group by", this.by), this.facts);
        this.parts = el(
            "div",
            { class: "compare-parts" },
            this.curves.root,
            el("section", {}, el("h2", {}, "Differences"), this.table.root),
            el("section", {}, el("h2", {}, "Call stacks: orange grew, blue shrank, grey is unchanged"), this.flame.root),
            el("section", {}, el("h2", {}, "All recordings"), this.ranks.root),
        );
        this.invite();
        this.root = el("div", { class: "fill compare-view" }, this.bar, this.empty, this.working.root, this.parts);
        this.by.addEventListener("change", () => void this.load());
        this.other.addEventListener("change", () => app.store.set({ other: Number(this.other.value) }));
        this.at.addEventListener("change", () => app.store.set({ step: this.at.value === "peak" ? 0 : this.at.value === "end" ? -1 : 1 }));
        this.step.addEventListener("change", () => this.goTo(Number(this.step.value)));
        this.base.addEventListener("change", () => app.store.set({ base: this.within(Number(this.base.value)) }));
    }

    // Returns the other recording; a single recording is compared with itself: its peak with its start, its end, a chosen moment, or two of
    // its steps. Returns -1 if there is nothing to compare. A recording with neither events nor segments cannot be compared.
    private second(): number {
        const { rec, other } = this.app.store.state;
        const recordings = this.app.recordings;
        if (recordings[other]?.devices.length) return other;
        const next = recordings.findIndex(({ devices }, i) => i !== rec && devices.length !== 0);
        return next >= 0 ? next : (this.app.device()?.events ?? 0) > 0 ? rec : -1;
    }

    // Offers to open another recording, if the only one has no history.
    private invite(): void {
        const { app } = this;
        const open = el("button", { type: "button", class: "primary", onclick: () => app.chooseFiles() }, "Open a second recording\u2026");
        add(
            this.empty,
            el("h2", {}, "Only one recording is open"),
            app.canOpen ? el("p", {}, "Open a second recording to compare with: another run, another rank of the job, or the same program before a change. The page shows which call sites grew and which are new, and overlays both curves.") : el("p", {}, "Name a second file for `vram view --serve`: another run, another rank of the job, or the same program before a change."),
            app.canOpen && open,
        );
    }

    private fillOthers(): void {
        clear(this.other);
        this.app.recordings.forEach((recording, i) => this.other.append(el("option", { value: i, selected: i === this.second(), disabled: recording.devices.length === 0 }, i === this.app.store.state.rec ? `${recording.name} (itself)` : recording.name)));
    }

    private inStep(rank: Rank): number | null {
        const { step } = this.app.store.state;
        return step >= 1 && step <= rank.steps ? this.rankSteps[rank.first + step - 1] : null;
    }

    goTo(step: number): void {
        if (this.steps > 0 && Number.isFinite(step)) this.app.store.set({ step: this.within(step) });
    }

    private within(step: number): number {
        return Math.max(1, Math.min(Math.max(1, this.steps), Math.round(step) || 1));
    }

    private stepsOf(about: About): Promise<Answer<StepsJson>> {
        return this.app.engine.ask<StepsJson>({ name: "steps", ...about, notion: this.app.store.state.notion });
    }

    // Finds both sides' steps and the compared moment of each.
    private async moments(a: About, b: About, chosen: boolean, wanted: () => boolean): Promise<{ event: string; event2: string | number } | null> {
        const { event, step, base } = this.app.store.state;
        const alone = a.rec === b.rec && a.device === b.device;
        for (const about of [a, b]) if (!(await prepare(this.app.engine, { name: "steps", ...about }, this.working.tell, () => !wanted()))) return null;
        const found = [(await this.stepsOf(a)).json, (await this.stepsOf(b)).json];
        const counts = found.map(({ steps }) => steps);
        if (!wanted()) return null;
        this.steps = chosen ? 0 : Math.min(...counts);
        this.describeSteps(counts, found.every(({ sure }) => sure), chosen, alone);
        if (chosen) return { event: "peak", event2: event };
        if (alone && step < 0) return { event: "peak", event2: "end" };
        if (alone && (step === 0 || this.steps === 0)) return { event: "-1", event2: "peak" };
        if (alone) return { event: `step:${this.within(base)}`, event2: `step:${this.within(step)}` };
        const word = step < 0 ? "end" : step === 0 || this.steps === 0 ? "peak" : `step:${Math.min(step, this.steps)}`;
        return { event: word, event2: word };
    }

    private describeSteps(counts: number[], sure: boolean, chosen: boolean, alone: boolean): void {
        const { step, base } = this.app.store.state;
        const words = alone ? ["its start and its peak", "its peak and its end", "two of its steps"] : ["the peak of each", "the end of each", "the same step"];
        words.forEach((word, i) => (this.at.options[i].textContent = word));
        this.open.hidden = !alone || !this.app.canOpen;
        const some = this.steps > 0;
        this.at.disabled = chosen;
        this.at.options[2].disabled = !some;
        this.at.value = step < 0 ? "end" : step > 0 && some ? "step" : "peak";
        this.step.hidden = this.at.value !== "step";
        this.base.hidden = this.step.hidden || !alone;
        this.base.max = String(this.steps);
        this.base.value = String(this.within(base));
        this.step.max = String(this.steps);
        this.step.value = String(Math.min(step, this.steps));
        const without = counts[0] === 0 && counts[1] === 0 ? "neither has steps" : counts[0] === 0 ? "A has no steps" : "B has no steps";
        const both = counts[0] === counts[1] ? `${counted(counts[0], "step")}` : `A has ${counted(counts[0], "step")}, B ${count(counts[1])}`;
        this.stepFacts.textContent = chosen ? "the peak and the selected moment" : alone && some ? `${counted(counts[0], "step")}${sure ? "" : ", perhaps layers"}` : alone ? "" : some ? `${both}${sure ? "" : ", perhaps layers"}` : without;
    }

    // Returns an event's position on the width of the curves: of all events, or of the steps.
    private placed(event: number, about: About, starts: Numbers | null): number {
        const events = this.app.recordings[about.rec].devices.find((item) => item.device === about.device)?.events ?? 1;
        if (!starts) return Math.max(0, event + 0.5) / Math.max(1, events);
        let step = starts.length - 1;
        while (step >= 0 && starts[step] > event) step--;
        if (step < 0) return NaN;
        return (step + (event + 0.5 - starts[step]) / Math.max(1, (starts[step + 1] ?? events) - starts[step])) / this.steps;
    }

    private async drawCurves(a: About, b: About, shown: CompareJson | null, wanted: () => boolean): Promise<void> {
        const { engine, recordings, store } = this.app;
        const { notion, step } = store.state;
        const alone = a.rec === b.rec && a.device === b.device;
        // The whole history contains a peak before the first step and an end after the last.
        const steps = alone && step <= 0 ? 0 : this.steps;
        const by = steps > 0 ? { name: "steps", from: 0, to: steps } : { name: "curve" };
        const answers = await Promise.all((alone ? [a] : [a, b]).map((about) => engine.ask({ ...by, ...about, notion, pixels: PIXELS })));
        if (!wanted()) return;
        const starts = (i: number) => (steps > 0 ? answers[i].column("step_event") : null);
        const moments = shown ? [
            { letter: "A", at: this.placed(shown.a.event, a, starts(0)), bytes: shown.a.bytes },
            { letter: "B", at: this.placed(shown.b.event, b, starts(answers.length - 1)), bytes: shown.b.bytes },
        ] : [];
        const high = steps > 0 ? "high" : `${notion}_high`;
        this.curves.show(answers.map((answer, i) => ({ title: recordings[[a, b][i].rec].name, high: answer.column(high) })), steps, step > 0 ? Math.min(step, steps) : 0, moments);
    }

    private async showRanks(wanted: () => boolean): Promise<void> {
        if (!(await prepare(this.app.engine, { name: "ranks" }, this.working.tell, () => !wanted()))) return;
        const answer = await this.app.engine.ask<{ ranks: Rank[] }>({ name: "ranks" });
        let first = 0;
        for (const rank of answer.json.ranks) {
            rank.first = first;
            first += rank.steps;
        }
        this.rankSteps = answer.column("step_peak");
        this.ranks.show(answer.json.ranks);
    }

    async load(): Promise<void> {
        const device = this.app.device();
        const other = this.second();
        this.fillOthers();
        this.empty.hidden = !device || other >= 0;
        this.parts.hidden = this.bar.hidden = other < 0;
        if (!device || other < 0) {
            this.facts.textContent = this.stepFacts.textContent = "";
            this.at.disabled = this.step.hidden = true;
            return;
        }
        const { rec, notion, event, step, base } = this.app.store.state;
        const [a, b] = (this.sides = this.ordered({ rec, device: device.device }, { rec: other, device: partnerOf(this.app.recordings[other].devices, device.device) }));
        this.letter.textContent = a.rec === rec ? "B" : "A";
        const chosen = other === rec && !Number.isNaN(event);
        const key = JSON.stringify([a, b, notion, chosen ? event : [step, base], this.by.value, this.app.recordings.length]);
        if (key === this.asked) return;
        this.asked = key;
        const wanted = () => key === this.asked;
        try {
            const moments = await this.moments(a, b, chosen, wanted);
            if (!moments) return;
            const sides = { ...a, rec2: b.rec, device2: b.device, notion, ...moments };
            const [differences, tree] = await Promise.all([this.askCompare({ name: "compare", ...sides, by: this.by.value, top: 5000 }), this.askTree({ name: "tree", ...sides, fold: 1 })]);
            this.app.say("");
            if (differences) this.show(differences.json);
            if (tree) this.flame.show(tree);
            if (differences) await this.mark();
            await this.drawCurves(a, b, differences?.json ?? null, wanted);
            await this.showRanks(wanted);
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    // Until the reader chooses, A is the recording that was opened first, as in `vram diff`: before and after.
    private ordered(shown: About, other: About): [a: About, b: About] {
        return this.app.store.state.other === -1 && other.rec < shown.rec ? [other, shown] : [shown, other];
    }

    // Highlights the search's matches on either side.
    async mark(): Promise<void> {
        const { shown } = this;
        if (!shown) return;
        const matches = this.app.matches();
        const by = this.by.value;
        const [a, b] = this.sides;
        const names = await foundNames(this.app, by, [{ ...a, event: shown.a.event }, { ...b, event: shown.b.event }]);
        if (matches !== this.app.matches() || shown !== this.shown) return;
        this.table.found = names && ((pair) => names.has(pair.name));
        this.table.draw();
        this.flame.matches = matches ? (stack) => matches.has(NaN, stack) : () => false;
        this.flame.draw();
    }

    private show(json: CompareJson): void {
        this.shown = json;
        this.titles = [json.a.name, json.b.name];
        this.most = Math.max(1, ...json.groups.map((pair) => Math.abs(pair.other_bytes - pair.bytes)));
        const side = (letter: string, { bytes: held, event }: Side) => el("span", { "data-side": letter, "data-bytes": held, "data-event": event }, `${letter} ${bytes(held)} ${event < 0 ? "before the first event" : `at event ${count(event)}`}`);
        const change = json.b.bytes - json.a.bytes;
        this.facts.replaceChildren(side("A", json.a), ", ", side("B", json.b), ": ", el("strong", { "data-bytes": change }, signed(change)));
        // If nothing grew, list the groups that shrank first.
        this.table.fallFirst(json.groups.some((pair) => pair.other_bytes > pair.bytes));
        this.table.show(json.groups);
    }

    paint(): void {
        this.curves.paint();
    }

    hide(): void {
        this.curves.hide();
    }

    onKey(event: KeyboardEvent): boolean {
        if ((event.key !== "[" && event.key !== "]") || this.steps === 0) return false;
        this.goTo(Math.max(0, this.app.store.state.step) + (event.key === "]" ? 1 : -1));
        return true;
    }

    csv = (): string => this.table.csv();
    svg = (): string => this.flame.svg(`${this.titles[0]} and ${this.titles[1]}: orange grew, blue shrank, grey is unchanged`);
}

export function compareView(app: App): View {
    const compare = new Compare(app);
    return {
        id: "compare",
        title: "Compare",
        key: "8",
        root: compare.root,
        keys: [
            ["[ ]", "compare at the previous step, the next step"],
            ["\u2191 \u2193 Enter", "move through the differences, and highlight one everywhere"],
        ],
        onKey: (event) => compare.onKey(event),
        show: () => {
            void compare.load();
            compare.paint();
        },
        hide: () => compare.hide(),
        update: (_, changed) => {
            void compare.load();
            if (changed.has("found")) void compare.mark();
            if (changed.has("dark")) compare.paint();
        },
        svg: compare.svg,
        csv: compare.csv,
    };
}

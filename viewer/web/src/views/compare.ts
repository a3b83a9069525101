// Compare: two recordings, ranks or moments: which groups grew, which are only in one, and both curves over each other.
import type { App, View } from "../app";
import { clear, el } from "../dom";
import { themeOf } from "../draw/colour";
import { Flame, type TreeJson } from "../draw/flame";
import { bytes, count } from "../format";
import { latest } from "../latest";
import type { Numbers } from "../protocol";
import { GROUPINGS } from "../sites";
import { frameText } from "../stack";
import { SortTable } from "../table";
import { nameCell } from "./peak";

type Pair = { name: string; bytes: number; other_bytes: number; count: number; other_count: number; row?: number; other_row?: number; moved?: boolean };
type Side = { name: string; device: number; event: number; bytes: number; allocations: number };
type CompareJson = { a: Side; b: Side; distinct: number; groups: Pair[]; rest_bytes: number; rest_other_bytes: number };
type Rank = { rec: number; name: string; device: number; events: number; peak_bytes: number; peak_event: number; reserved_peak_bytes: number; ooms: number; steps: number };

const signed = (value: number) => `${value > 0 ? "+" : ""}${bytes(value)}`;

// What grew to the right, what shrank to the left of the middle.
function changeCell(change: number, most: number): HTMLElement {
    const bar = el("span", { class: `change-bar ${change >= 0 ? "grew" : "shrank"}` });
    bar.style.width = `${(50 * Math.abs(change)) / Math.max(1, most)}%`;
    return el("span", { class: "bar-cell change" }, el("span", { class: "bar-room middle" }, bar), el("span", { class: "bar-text" }, signed(change)));
}

class Compare {
    readonly root: HTMLElement;
    private readonly other = el("select", { "aria-label": "Compare with" });
    private readonly by = el("select", { "aria-label": "Group by" }, ...GROUPINGS.filter(([word]) => word !== "stack" && word !== "regex").map(([value, text]) => el("option", { value }, text)));
    private readonly facts = el("p", { class: "compare-facts" });
    private readonly canvas = el("canvas", { role: "img", "aria-label": "Allocated bytes of both, over each other" });
    private readonly table: SortTable<Pair>;
    private readonly ranks: SortTable<Rank>;
    private readonly flame: Flame;
    private readonly empty = el("p", { class: "compare-empty" }, "Open a second recording (or several ranks of one job) to compare it with this one. With one recording, choose a moment in another view: it is compared with the peak.");
    private readonly parts: HTMLElement;
    private readonly askCompare;
    private readonly askTree;
    private asked = "";
    private chosen = "";
    private most = 1;
    private curves: [Numbers, Numbers] | null = null;
    private titles: [string, string] = ["", ""];

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
            ],
            2,
            (rank) => app.store.set({ other: rank.rec }),
            (rank) => rank.rec === this.second(),
        );
        this.flame = new Flame((frame) => app.store.set({ search: frameText(frame), regex: false }));
        const bar = el("div", { class: "view-bar" }, el("label", {}, "A is the recording chosen above; B", this.other), el("label", {}, "Group by", this.by), this.facts);
        this.parts = el(
            "div",
            { class: "compare-parts" },
            el("div", { class: "compare-curve" }, this.canvas),
            el("section", {}, el("h2", {}, "Differences"), this.table.root),
            el("section", {}, el("h2", {}, "Call stacks: orange grew, blue shrank"), this.flame.root),
            el("section", {}, el("h2", {}, "All recordings"), this.ranks.root),
        );
        this.root = el("div", { class: "fill compare-view" }, bar, this.empty, this.parts);
        this.by.addEventListener("change", () => void this.load());
        this.other.addEventListener("change", () => app.store.set({ other: Number(this.other.value) }));
        new ResizeObserver(() => this.paint()).observe(this.canvas.parentElement!);
    }

    // The other recording; this one itself where a moment is to be compared with the peak; -1: nothing to compare.
    private second(): number {
        const { rec, other, event } = this.app.store.state;
        if (other >= 0 && other < this.app.recordings.length) return other;
        const next = this.app.recordings.findIndex((_, i) => i !== rec);
        return next >= 0 ? next : Number.isNaN(event) ? -1 : rec;
    }

    private fillOthers(): void {
        clear(this.other);
        this.app.recordings.forEach((recording, i) => this.other.append(el("option", { value: i, selected: i === this.second() }, i === this.app.store.state.rec ? `${recording.name} (its chosen moment)` : recording.name)));
    }

    async load(): Promise<void> {
        const device = this.app.device();
        const other = this.second();
        this.fillOthers();
        this.empty.hidden = !device || other >= 0;
        this.parts.hidden = other < 0;
        if (!device || other < 0) {
            this.facts.textContent = "";
            return;
        }
        const { rec, notion, event } = this.app.store.state;
        const sides = { rec, device: device.device, notion, rec2: other, event2: other === rec && !Number.isNaN(event) ? event : "peak" };
        const key = JSON.stringify([sides, this.by.value, this.app.recordings.length]);
        if (key === this.asked) return;
        this.asked = key;
        try {
            const [differences, tree] = await Promise.all([this.askCompare({ name: "compare", ...sides, by: this.by.value, top: 5000 }), this.askTree({ name: "tree", ...sides })]);
            const [ranks, first, second] = await Promise.all([
                this.app.engine.ask<{ ranks: Rank[] }>({ name: "ranks" }),
                this.app.engine.ask({ name: "curve", rec, device: device.device, pixels: 800 }),
                this.app.engine.ask({ name: "curve", rec: other, device: differences?.json.b.device, pixels: 800 }),
            ]);
            this.app.say("");
            this.ranks.show(ranks.json.ranks);
            this.curves = [first.column("allocated_high"), second.column("allocated_high")];
            if (differences) this.show(differences.json);
            if (tree) this.flame.show(tree);
            this.paint();
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    private show(json: CompareJson): void {
        this.titles = [json.a.name, json.b.name];
        this.most = Math.max(1, ...json.groups.map((pair) => Math.abs(pair.other_bytes - pair.bytes)));
        this.facts.replaceChildren(`A ${bytes(json.a.bytes)} at event ${count(json.a.event)}, B ${bytes(json.b.bytes)} at event ${count(json.b.event)}: `, el("strong", { "data-bytes": json.b.bytes - json.a.bytes }, signed(json.b.bytes - json.a.bytes)));
        this.table.show(json.groups);
    }

    paint(): void {
        const { clientWidth: width, clientHeight: height } = this.canvas;
        if (width === 0 || !this.curves) return;
        const ratio = devicePixelRatio;
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        const context = this.canvas.getContext("2d")!;
        context.scale(ratio, ratio);
        const theme = themeOf(this.root);
        const top = Math.max(1, ...this.curves[0], ...this.curves[1]);
        this.curves.forEach((curve, side) => {
            context.strokeStyle = context.fillStyle = side === 0 ? theme.allocated : theme.active;
            context.lineWidth = 1.6;
            context.beginPath();
            curve.forEach((value, i) => context.lineTo((i * width) / curve.length, height - 4 - ((height - 26) * value) / top));
            context.stroke();
            context.font = "12px system-ui, sans-serif";
            context.fillText(`${side === 0 ? "A" : "B"}: ${this.titles[side]}, up to ${bytes(Math.max(0, ...curve))}`, 8 + (side * width) / 2, 13);
        });
    }

    csv = (): string => this.table.csv();
    svg = (): string => this.flame.svg(`${this.titles[0]} and ${this.titles[1]}: orange grew, blue shrank`);
}

export function compareView(app: App): View {
    const compare = new Compare(app);
    return {
        id: "compare",
        title: "Compare",
        key: "8",
        root: compare.root,
        keys: [["\u2191 \u2193 Enter", "walk the differences, and highlight one everywhere"]],
        show: () => {
            void compare.load();
            compare.paint();
        },
        update: (_, changed) => {
            void compare.load();
            if (changed.has("dark")) compare.paint();
        },
        svg: compare.svg,
        csv: compare.csv,
    };
}

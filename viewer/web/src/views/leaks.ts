// Leaks and steps: the call sites that grow from step to step, and the memory that each step allocates again.
import type { App, View } from "../app";
import { el } from "../dom";
import { css, colourOf, themeOf } from "../draw/colour";
import { foundNames } from "../found";
import { bytes, count, counted } from "../format";
import { latest } from "../latest";
import type { Numbers } from "../protocol";
import { GROUPINGS } from "../sites";
import { barCell, SortTable } from "../table";
import { Working } from "../working";
import { highlight, nameCell, showEnd } from "./peak";

type Grower = { name: string; verdict: "leak" | "growth"; bytes_per_step: number; objects_per_step: number; grew_points: number; course_points: number; first_bytes: number; last_bytes: number; row: number; stack: number; at: number };
type LeaksJson = { steps: number; steps_text: string; answer: string; text: string; leaks: number; by: string; groups: Grower[] };
type Churner = { name: string; bytes_per_step: number; allocations_per_step: number; largest_bytes: number; row: number; stack: number };
type ChurnJson = { source: string; steps: number; bytes: number; allocations: number; distinct: number; groups: Churner[] };

const HOW_STEPS_BEGIN = " Give the number of events per step, or mark steps in the program (ProfilerStep, record_function, STEP).";

// Returns the command's answer in its own words. Unknown is not a leak.
function answerText(json: LeaksJson): string {
    const unknown = ["no_steps", "one_pass", "unsure"].includes(json.answer);
    const by = json.by === "stack" && json.leaks > 0 ? ", by call stack" : "";
    return `${json.steps_text}${by}: ${json.text}.${unknown ? HOW_STEPS_BEGIN : ""}`;
}

const MOST_DOTS = 60; // on a line; with more, only the line is drawn

// Returns a range that makes changes visible: from zero or, if values differ little, from slightly below the lowest.
function rangeOf(values: ArrayLike<number>): [low: number, high: number] {
    const all = Array.from(values);
    const [least, most] = [Math.min(...all), Math.max(1, ...all)];
    const change = most - least;
    return [change > 0 && change < most / 2 ? Math.max(0, least - change / 4) : 0, most];
}

// Draws a group's bytes over time as a line without axes.
function sparkline(values: readonly number[], colour: string): Element {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const [low, high] = rangeOf(values);
    const points = values.map((value, i) => `${((98 * i) / Math.max(1, values.length - 1) + 1).toFixed(1)},${(19 - (18 * (value - low)) / (high - low)).toFixed(1)}`).join(" ");
    svg.setAttribute("viewBox", "0 0 100 20");
    svg.setAttribute("class", "sparkline");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `from ${bytes(values[0] ?? 0)} to ${bytes(values.at(-1) ?? 0)}`);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    for (const [name, value] of [["points", points], ["fill", "none"], ["stroke", colour], ["stroke-width", "1.5"]]) line.setAttribute(name, value);
    svg.append(line);
    return svg;
}

class Leaks {
    readonly root: HTMLElement;
    private readonly by = el("select", { "aria-label": "Group by" }, ...GROUPINGS.filter(([word]) => word !== "regex").map(([value, text]) => el("option", { value }, text)));
    private readonly every = el("input", { type: "number", min: 1, "aria-label": "Events per step", placeholder: "automatic", class: "short" });
    private readonly verdict = el("p", { class: "leaks-verdict" });
    private readonly kept = el("p", { class: "quiet-text leaks-kept", hidden: true });
    private readonly working = new Working();
    private readonly canvas = el("canvas", { role: "img", "aria-label": "Live bytes at the beginning of every step" });
    private readonly growers: SortTable<Grower>;
    private readonly churners: SortTable<Churner>;
    private readonly churnFacts = el("p", { class: "quiet-text" });
    private readonly askLeaks;
    private readonly askChurn;
    private readonly askEnd;
    private readonly grows: HTMLElement;
    private leaksBy = "site";
    private asked = "";
    private chosen = "";
    private total: Numbers = new Float64Array();
    private points: number[][] = [];
    private fastest = 1;
    private busiest = 1;

    constructor(private readonly app: App) {
        this.askLeaks = latest<LeaksJson>(app.engine, this.working.tell);
        this.askChurn = latest<ChurnJson>(app.engine, this.working.tell);
        this.askEnd = latest<{ bytes: number; allocations: number }>(app.engine);
        this.growers = new SortTable<Grower>(
            "What grows from step to step",
            [
                { title: "Group", value: (group) => group.name, cell: (group) => nameCell(group.name) },
                { title: "Verdict", value: (group) => group.verdict, cell: (group) => el("span", { class: `verdict ${group.verdict}` }, group.verdict) },
                { title: "Bytes per step", number: true, value: (group) => group.bytes_per_step, cell: (group) => barCell(group.bytes_per_step, this.fastest, `+${bytes(Math.round(group.bytes_per_step))}`, css(colourOf(group.name))) },
                { title: "Objects per step", number: true, value: (group) => group.objects_per_step, cell: (group) => group.objects_per_step.toFixed(2).replace(/^-0\.00$/, "0.00") },
                { title: "Grew", number: true, value: (group) => group.grew_points / Math.max(1, group.course_points), cell: (group) => `${count(group.grew_points)} of ${count(group.course_points)}` },
                { title: "First step", number: true, value: (group) => group.first_bytes, cell: (group) => bytes(group.first_bytes) },
                { title: "Last step", number: true, value: (group) => group.last_bytes, cell: (group) => bytes(group.last_bytes) },
                { title: "Trend", value: (group) => group.last_bytes - group.first_bytes, cell: (group) => sparkline(this.points[group.at] ?? [], css(colourOf(group.name))) },
            ],
            2,
            (group) => this.choose(group, this.leaksBy),
            (group) => group.name === this.chosen,
        );
        this.churners = new SortTable<Churner>(
            "Allocated and freed within every step",
            [
                { title: "Group", value: (group) => group.name, cell: (group) => nameCell(group.name) },
                { title: "Bytes per step", number: true, value: (group) => group.bytes_per_step, cell: (group) => barCell(group.bytes_per_step, this.busiest, bytes(Math.round(group.bytes_per_step)), css(colourOf(group.name))) },
                { title: "Allocations per step", number: true, value: (group) => group.allocations_per_step, cell: (group) => group.allocations_per_step.toFixed(1) },
                { title: "Largest", number: true, value: (group) => group.largest_bytes, cell: (group) => bytes(group.largest_bytes) },
            ],
            1,
            (group) => this.choose(group, this.by.value),
            (group) => group.name === this.chosen,
        );
        this.grows = el("div", { hidden: true }, el("h2", {}, "What grows"), this.growers.root);
        const bar = el("div", { class: "view-bar" }, el("label", {}, "Group by", this.by), el("label", {}, "Events per step", this.every), this.verdict);
        this.root = el(
            "div",
            { class: "fill leaks-view" },
            bar,
            this.working.root,
            el("div", { class: "leaks-curve" }, this.canvas),
            el("section", { class: "leaks-part" }, this.grows, this.kept),
            el("section", { class: "leaks-part" }, el("h2", {}, "Temporary allocations"), this.churnFacts, this.churners.root),
        );
        this.by.addEventListener("change", () => void this.load().then(() => this.mark()));
        this.every.addEventListener("change", () => void this.load());
        new ResizeObserver(() => this.paint()).observe(this.canvas.parentElement!);
    }

    private choose(group: { name: string; row: number }, by: string): void {
        this.chosen = group.name;
        this.growers.draw();
        this.churners.draw();
        void highlight(this.app, by, group).catch((error: Error) => this.app.say(error.message));
    }

    async load(): Promise<void> {
        const device = this.app.device();
        if (!device) return;
        const { rec, notion } = this.app.store.state;
        const question = { rec, device: device.device, notion, by: this.by.value, every: Number(this.every.value) >= 1 ? Math.floor(Number(this.every.value)) : undefined };
        // With no other grouping, the engine analyzes call sites and, if none leaks, whole stacks, like the command.
        const leaksBy = this.by.value === "site" ? undefined : this.by.value;
        const key = JSON.stringify([question, this.app.recordings.length]);
        if (key === this.asked) return;
        this.asked = key;
        this.verdict.classList.remove("alarm");
        this.verdict.textContent = "Looking for what grows\u2026";
        try {
            const leaks = await this.askLeaks({ name: "leaks", ...question, by: leaksBy, top: 200 });
            this.app.say("");
            if (!leaks) return;
            this.showLeaks(leaks.json, leaks.column("total"), leaks.column("bytes"));
            const end = await this.askEnd({ name: "groups", rec, device: device.device, notion, event: "end", by: "site", top: 1 });
            if (end) this.showKept(end.json);
            const churn = await this.askChurn({ name: "churn", ...question, top: 500 });
            if (churn) this.showChurn(churn.json);
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    private showLeaks(json: LeaksJson, total: Numbers, all: Numbers): void {
        this.total = total;
        this.points = json.groups.map((_, i) => Array.from(all.subarray(i * total.length, (i + 1) * total.length)));
        json.groups.forEach((group, i) => (group.at = i));
        this.fastest = Math.max(1, ...json.groups.map((group) => group.bytes_per_step));
        this.growers.show(json.groups);
        this.leaksBy = json.by;
        this.grows.hidden = json.groups.length === 0;
        this.verdict.classList.toggle("alarm", json.answer === "leak");
        this.verdict.textContent = answerText(json);
        this.paint();
    }

    // Shows the memory that no event frees, whether or not it grew.
    private showKept(json: { bytes: number; allocations: number }): void {
        this.kept.hidden = json.allocations === 0;
        this.kept.replaceChildren(`Never freed: ${bytes(json.bytes)} in ${counted(json.allocations, "allocation")}. `, el("button", { type: "button", class: "link", onclick: () => showEnd(this.app) }, "Show what holds it"));
    }

    private showChurn(json: ChurnJson): void {
        this.busiest = Math.max(1, ...json.groups.map((group) => group.bytes_per_step));
        const within = json.steps === 0 ? "within 1\u202f% of the recording" : "within one step";
        this.churnFacts.textContent = json.allocations === 0 ? `No temporary allocations (freed ${within}).` : `${counted(json.allocations, "temporary allocation")} (freed ${within}), ${bytes(json.bytes)} in total. Each costs allocator time and, if sizes vary, causes fragmentation.`;
        this.churners.show(json.groups);
    }

    paint(): void {
        const room = this.canvas.parentElement!;
        room.hidden = this.total.length < 2;
        const { clientHeight: height } = this.canvas;
        const width = this.canvas.clientWidth;
        if (width === 0) return;
        const ratio = devicePixelRatio;
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        const context = this.canvas.getContext("2d")!;
        context.scale(ratio, ratio);
        const theme = themeOf(this.root);
        const [low, high] = rangeOf(this.total);
        const [bottom, floor] = [height - 18, low === 0 ? "" : "; the heights do not begin at zero"];
        const x = (i: number) => 8 + ((width - 16) * (i + 0.5)) / this.total.length;
        const y = (value: number) => bottom - ((height - 38) * (value - low)) / (high - low);
        const wide = Math.max(1, ((width - 16) / this.total.length) * 0.7);
        context.fillStyle = theme.allocated;
        // Bars start at zero; otherwise a line shows the changes.
        if (low === 0) this.total.forEach((value, i) => context.fillRect(x(i) - wide / 2, y(value), wide, bottom - y(value)));
        else this.drawLine(context, x, y, theme.allocated);
        context.fillStyle = theme.quiet;
        context.font = "11px system-ui, sans-serif";
        const [first, last] = [this.total[0] ?? 0, this.total.at(-1) ?? 0];
        this.canvas.dataset.low = String(low);
        context.fillText(`live at the beginning of each step: from ${bytes(first)} to ${bytes(last)}${floor}`, 8, 11);
        context.fillText("step 2", 8, height - 5);
        const end = `step ${count(this.total.length + 1)}`;
        context.fillText(end, width - 8 - context.measureText(end).width, height - 5);
    }

    private drawLine(context: CanvasRenderingContext2D, x: (i: number) => number, y: (value: number) => number, colour: string): void {
        context.strokeStyle = colour;
        context.lineWidth = 2;
        context.beginPath();
        this.total.forEach((value, i) => context.lineTo(x(i), y(value)));
        context.stroke();
        if (this.total.length <= MOST_DOTS) this.total.forEach((value, i) => context.fillRect(x(i) - 3, y(value) - 3, 6, 6));
    }

    // Highlights the groups that contain matches, over all allocations.
    async mark(): Promise<void> {
        const matches = this.app.matches();
        const by = this.by.value;
        const names = await foundNames(this.app, by);
        if (matches !== this.app.matches() || by !== this.by.value) return;
        this.growers.found = this.churners.found = names && ((group: { name: string }) => names.has(group.name));
        this.growers.draw();
        this.churners.draw();
    }

    csv = (): string => this.growers.csv();
}

export function leaksView(app: App): View {
    const leaks = new Leaks(app);
    return {
        id: "leaks",
        title: "Leaks and steps",
        key: "6",
        root: leaks.root,
        keys: [["\u2191 \u2193 Enter", "move through the table, and highlight the group everywhere"]],
        show: () => {
            void leaks.load().then(() => leaks.mark());
            leaks.paint();
        },
        update: (_, changed) => {
            void leaks.load().then(() => (changed.has("found") ? leaks.mark() : undefined));
            if (changed.has("dark")) leaks.paint();
        },
        csv: leaks.csv,
    };
}

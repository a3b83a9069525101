// One step: a lane per module, role or site with its memory, from the forward pass through the backward pass to the optimizer.
import type { App, View } from "../app";
import { clear, csvText, el, xmlText } from "../dom";
import { css, colourOf, themeOf, type Theme } from "../draw/colour";
import { seedGroups } from "../draw/seeds";
import { foundNames } from "../found";
import { bytes, count, counted, duration } from "../format";
import { latest } from "../latest";
import type { Numbers } from "../protocol";
import { GROUPINGS, siteOf, tailOf } from "../sites";
import type { Axis } from "../state";
import { prepare, Working } from "../working";
import { highlight } from "./peak";

type Lane = { name: string; made_bytes: number; made_count: number; kept_bytes: number; peak_bytes: number; first: number };
type LanesJson = { from: number; to: number; distinct: number; others_peak_bytes: number; lanes: Lane[] };
type StepsJson = { source: string; sure: boolean; steps: number };
type Row = Lane & { values: Numbers; high: number; at: number; rest: boolean };

const PASSES = ["", "forward", "backward", "optimizer"] as const;
const PASS_COLOURS = ["", "#0072b2", "#d55e00", "#009e73"];
const PIXELS = 800;
const LANES = 24;
const LANE_PIXELS = 34;

const svgElement = (tag: string, attributes: Record<string, string | number>): SVGElement => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
    return element;
};

// Returns runs of pixels of one pass; unknown pixels between two of the same pass belong to it.
export function passRuns(pass: ArrayLike<number>): { pass: number; from: number; to: number }[] {
    const runs: { pass: number; from: number; to: number }[] = [];
    for (let i = 0; i < pass.length; i++) {
        if (pass[i] === 0) continue;
        const last = runs.at(-1);
        if (last && last.pass === pass[i]) last.to = i + 1;
        else {
            if (last) last.to = i;
            runs.push({ pass: pass[i], from: i, to: i + 1 });
        }
    }
    return runs;
}

class Step {
    readonly root: HTMLElement;
    private readonly by = el("select", { "aria-label": "A lane per" }, ...GROUPINGS.filter(([word]) => ["module", "role", "site", "function", "file", "annotation", "stream", "thread"].includes(word)).map(([value, text]) => el("option", { value }, text)));
    private readonly step = el("input", { type: "number", min: 1, class: "short", "aria-label": "Step" });
    private readonly stepFacts = el("span", { class: "quiet-text" });
    private readonly facts = el("p", { class: "step-facts" });
    private readonly working = new Working();
    private readonly passes = el("div", { class: "step-passes", "aria-hidden": "true" });
    private readonly lanes = el("div", { class: "step-lanes", role: "list", "aria-label": "Lanes" });
    private readonly tip = el("div", { class: "chart-tip step-tip", role: "status", hidden: true });
    private readonly ask;
    private steps = 0;
    private sure = false;
    private starts: Numbers = new Float64Array();
    private of = "";
    private asked = "";
    private rows: Row[] = [];
    private passOf: ArrayLike<number> = [];
    private span = { from: 0, to: 1 };
    private axis: Axis = "event";

    constructor(private readonly app: App) {
        this.ask = latest<LanesJson>(app.engine);
        this.by.value = "site";
        const arrow = (text: string, by: 1 | -1, label: string) => el("button", { type: "button", "aria-label": label, onclick: () => this.goTo(this.chosen() + by) }, text);
        const inWindow = el("button", { type: "button", title: "The step as the window of all views", onclick: () => this.app.store.set({ view: "timeline", axis: this.axis, ...this.span, by: this.by.value === "site" ? "site" : "role" }) }, "Show it in the timeline");
        const bar = el("div", { class: "view-bar" }, el("label", {}, "Step", this.step), arrow("\u2039", -1, "The previous step"), arrow("\u203a", 1, "The next step"), this.stepFacts, el("label", {}, "A lane per", this.by), inWindow, this.facts);
        const body = el("div", { class: "step-body" }, this.passes, this.lanes, this.tip);
        this.root = el("div", { class: "fill step-view" }, bar, this.working.root, body);
        this.by.addEventListener("change", () => void this.load());
        this.step.addEventListener("change", () => this.goTo(Number(this.step.value)));
        body.addEventListener("pointermove", (event) => this.point(event));
        body.addEventListener("pointerleave", () => (this.tip.hidden = true));
    }

    // Returns the step that the link names, else the one with the highest total; 0, the window, if it is uncertain that these are steps.
    private chosen(): number {
        const { step } = this.app.store.state;
        if (step >= 1 && step <= this.steps) return step;
        if (!this.sure || this.steps === 0) return 0;
        const peak = this.app.device()?.peak_event ?? 0;
        let at = this.starts.length - 1;
        while (at > 0 && this.starts[at] > peak) at--;
        return Math.max(1, at + 1);
    }

    goTo(step: number): void {
        if (this.steps > 0 && Number.isFinite(step)) this.app.store.set({ step: Math.max(1, Math.min(this.steps, Math.round(step))) });
    }

    // Finds the beginnings of steps, once per device.
    private async findSteps(wanted: () => boolean): Promise<boolean> {
        const device = this.app.device()!;
        const { rec, notion } = this.app.store.state;
        const about = { rec, device: device.device };
        const of = JSON.stringify([about, notion, device.events]);
        if (of === this.of) return true;
        if (!(await prepare(this.app.engine, { name: "steps", ...about }, this.working.tell, () => !wanted()))) return false;
        const answer = await this.app.engine.ask<StepsJson>({ name: "steps", ...about, notion });
        if (!wanted()) return false;
        this.of = of;
        this.starts = answer.column("step_event");
        this.steps = Math.min(answer.json.steps, this.starts.length);
        this.sure = answer.json.sure;
        this.stepFacts.textContent = this.steps === 0 ? "no steps found: the whole window" : answer.json.sure ? `of ${count(this.steps)}` : `of ${count(this.steps)}, which may be layers: the whole window`;
        return true;
    }

    async load(): Promise<void> {
        const device = this.app.device();
        if (!device) return;
        const { rec, notion, step, from, to, axis } = this.app.store.state;
        const key = JSON.stringify([rec, device.device, device.events, notion, this.by.value, step, from, to, axis]);
        if (key === this.asked) return;
        this.asked = key;
        try {
            if (!(await this.findSteps(() => key === this.asked))) return;
            const number = this.chosen();
            this.step.disabled = this.steps === 0;
            this.step.max = String(this.steps);
            this.step.value = number === 0 ? "" : String(number);
            const window = number === 0 ? { axis, ...this.app.window() } : { axis: "event", from: this.starts[number - 1], to: this.starts[number] ?? device.events };
            this.span = { from: window.from, to: window.to };
            this.axis = window.axis as Axis;
            await seedGroups(this.app, this.by.value);
            const answer = await this.ask({ name: "lanes", rec, device: device.device, notion, ...window, by: this.by.value, pixels: PIXELS, top: LANES });
            if (!answer || key !== this.asked) return;
            this.app.say("");
            this.show(answer.json, answer.column("bytes"), answer.column("pass"));
            await this.mark();
        } catch (error) {
            this.asked = "";
            this.app.say((error as Error).message);
        }
    }

    private show(json: LanesJson, all: Numbers, pass: Numbers): void {
        const lane = (i: number) => all.subarray(i * PIXELS, (i + 1) * PIXELS);
        const own = json.lanes.map((one, i): Row => ({ ...one, values: lane(i), high: one.peak_bytes, at: i, rest: false }));
        // Order lanes by first use in the step; memory that existed before comes first.
        own.sort((a, b) => a.first - b.first || b.high - a.high);
        const rest = lane(json.lanes.length);
        const others: Row[] = json.distinct > json.lanes.length ? [{ name: `${counted(json.distinct - json.lanes.length, "other")}`, made_bytes: 0, made_count: 0, kept_bytes: 0, peak_bytes: json.others_peak_bytes, first: json.to, values: rest, high: json.others_peak_bytes, at: json.lanes.length, rest: true }] : [];
        this.rows = [...own, ...others].filter((row) => row.high > 0);
        this.passOf = pass;
        const made = json.lanes.reduce((sum, one) => sum + one.made_bytes, 0);
        const kept = json.lanes.reduce((sum, one) => sum + one.kept_bytes, 0);
        const runs = passRuns(pass);
        const order = runs.map((run) => PASSES[run.pass]).filter((name, i, names) => names.indexOf(name) === i);
        const span = this.axis === "time" ? `${duration(json.from)} to ${duration(json.to)}` : `events ${count(json.from)} to ${count(json.to - 1)}`;
        this.facts.textContent = `${span}: ${bytes(made)} allocated, ${bytes(kept)} live at its end${order.length > 0 ? `; ${order.join(", ")}` : ""}`;
        this.root.dataset.lanes = String(this.rows.length);
        this.root.dataset.passes = order.join(" ");
        this.draw(runs);
    }

    private draw(runs: ReturnType<typeof passRuns>): void {
        const most = Math.max(1, ...this.rows.map((row) => row.high));
        clear(this.passes);
        this.passes.append(el("span", { class: "step-name" }), this.strip(runs), el("span", { class: "step-numbers" }, el("span", {}, "peak"), el("span", {}, "allocated")));
        this.lanes.style.setProperty("--lane", `${Math.round(Math.max(34, Math.min(90, (this.root.clientHeight - 120) / Math.max(1, this.rows.length) - 6)))}px`);
        clear(this.lanes);
        for (const row of this.rows) this.lanes.append(this.laneRow(row, most, runs));
        if (this.rows.length === 0) this.lanes.append(el("p", { class: "quiet-text" }, "Nothing is live in this step."));
    }

    private strip(runs: ReturnType<typeof passRuns>): HTMLElement {
        const strip = el("div", { class: "step-strip" });
        for (const run of runs) {
            const part = el("span", { class: "step-pass", title: PASSES[run.pass] }, PASSES[run.pass]);
            part.style.left = `${(100 * run.from) / PIXELS}%`;
            part.style.width = `${(100 * (run.to - run.from)) / PIXELS}%`;
            part.style.background = PASS_COLOURS[run.pass];
            strip.append(part);
        }
        return strip;
    }

    private laneRow(row: Row, most: number, runs: ReturnType<typeof passRuns>): HTMLElement {
        const { title, place } = siteOf(row.name);
        const colour = css(colourOf(row.name));
        const name = el("button", { type: "button", class: "step-name", title: row.name, disabled: row.rest, onclick: () => void this.choose(row) }, el("span", {}, this.by.value === "role" ? title.replaceAll("_", " ") : tailOf(title)), place !== "" && el("small", {}, place));
        const numbers = el("span", { class: "step-numbers" }, el("span", { "data-bytes": row.high }, bytes(Math.round(row.high))), el("span", { title: `${counted(row.made_count, "allocation")}; ${bytes(row.kept_bytes)} live at its end` }, row.made_bytes > 0 ? bytes(row.made_bytes) : "\u2013"));
        return el("div", { class: "step-lane", role: "listitem", "aria-label": this.spoken(row) }, name, this.curve(row, most, colour, runs), numbers);
    }

    private spoken = (row: Row): string => `${siteOf(row.name).title}: peak ${bytes(Math.round(row.high))}, ${bytes(row.made_bytes)} allocated, ${bytes(row.kept_bytes)} live at the end`;

    // Draws the lane's memory as an area. All lanes have one scale; areas too low to see get a line.
    private curve(row: Row, most: number, colour: string, runs: ReturnType<typeof passRuns>): SVGElement {
        const svg = svgElement("svg", { viewBox: `0 0 ${PIXELS} ${LANE_PIXELS}`, preserveAspectRatio: "none", class: "step-curve", "aria-hidden": "true" });
        for (const run of runs) svg.append(svgElement("rect", { x: run.from, y: 0, width: run.to - run.from, height: LANE_PIXELS, fill: PASS_COLOURS[run.pass], opacity: 0.06 }));
        const y = (value: number) => LANE_PIXELS - Math.max(value > 0 ? 1.5 : 0, (value / most) * (LANE_PIXELS - 2));
        let path = `M0 ${LANE_PIXELS}`;
        row.values.forEach((value, i) => {
            if (i > 0 && value === row.values[i - 1]) return;
            path += `H${i}V${y(value).toFixed(1)}`;
        });
        svg.append(svgElement("path", { d: `${path}H${PIXELS}V${LANE_PIXELS}Z`, fill: colour }));
        return svg;
    }

    private async choose(row: Row): Promise<void> {
        try {
            const { rec, notion } = this.app.store.state;
            const { json } = await this.app.engine.ask<{ groups: { name: string; row: number }[] }>({ name: "groups", rec, device: this.app.device()?.device, notion, made: 1, axis: this.axis, ...this.span, by: this.by.value, top: 1000 });
            const group = json.groups.find((one) => one.name === row.name);
            if (group) await highlight(this.app, this.by.value, group);
        } catch (error) {
            this.app.say((error as Error).message);
        }
    }

    private point(event: PointerEvent): void {
        const lane = (event.target as Element).closest(".step-lane");
        const curve = lane?.querySelector(".step-curve");
        const row = lane ? this.rows[[...this.lanes.children].indexOf(lane)] : undefined;
        if (!curve || !row) return void (this.tip.hidden = true);
        const box = curve.getBoundingClientRect();
        const share = (event.clientX - box.left) / box.width;
        if (share < 0 || share >= 1) return void (this.tip.hidden = true);
        const pixel = Math.floor(share * PIXELS);
        let pass = pixel;
        while (pass > 0 && this.passOf[pass] === 0) pass--;
        const at = this.span.from + share * (this.span.to - this.span.from);
        clear(this.tip);
        this.tip.append(el("strong", {}, `${bytes(Math.round(row.values[pixel]))} live`), el("div", {}, siteOf(row.name).title), el("div", {}, `${this.axis === "time" ? duration(at) : `event ${count(Math.floor(at))}`}${PASSES[this.passOf[pass]] ? `, ${PASSES[this.passOf[pass]]}` : ""}`));
        this.tip.hidden = false;
        const room = this.tip.parentElement!.getBoundingClientRect();
        const left = event.clientX - room.left;
        this.tip.style.left = left > room.width * 0.6 ? "auto" : `${left + 14}px`;
        this.tip.style.right = left > room.width * 0.6 ? `${room.width - left + 14}px` : "auto";
        this.tip.style.top = `${event.clientY - room.top + this.tip.parentElement!.scrollTop + 12}px`;
    }

    // Highlights lanes that contain matches of the search.
    async mark(): Promise<void> {
        const matches = this.app.matches();
        const names = await foundNames(this.app, this.by.value);
        if (matches !== this.app.matches()) return;
        [...this.lanes.children].forEach((lane, i) => lane.classList.toggle("found-lane", names?.has(this.rows[i]?.name) ?? false));
    }

    onKey(event: KeyboardEvent): boolean {
        if ((event.key !== "[" && event.key !== "]") || this.steps === 0) return false;
        this.goTo(this.chosen() + (event.key === "]" ? 1 : -1));
        return true;
    }

    csv = (): string => csvText(["lane", "at_most_bytes", "made_bytes", "made_count", "kept_bytes"], this.rows.map((row) => [row.name, Math.round(row.high), row.made_bytes, row.made_count, row.kept_bytes]));

    svg = (): string => {
        const theme: Theme = themeOf(this.root);
        const runs = passRuns(this.passOf);
        const most = Math.max(1, ...this.rows.map((row) => row.high));
        const left = 300;
        const height = 50 + this.rows.length * (LANE_PIXELS + 4);
        const parts = runs.map((run) => `<rect x="${left + run.from}" y="26" width="${run.to - run.from}" height="14" fill="${PASS_COLOURS[run.pass]}"/>${run.to - run.from > 60 ? `<text x="${left + run.from + 4}" y="37" font-size="11" fill="#fff">${PASSES[run.pass]}</text>` : ""}`);
        this.rows.forEach((row, i) => {
            const curve = this.curve(row, most, css(colourOf(row.name)), runs);
            parts.push(`<g transform="translate(0 ${46 + i * (LANE_PIXELS + 4)})"><title>${xmlText(this.spoken(row))}</title><text x="${left - 8}" y="20" text-anchor="end">${xmlText(siteOf(row.name).title.slice(0, 44))}</text><g transform="translate(${left} 0)">${curve.innerHTML}</g><text x="${left + PIXELS + 8}" y="20">${xmlText(bytes(Math.round(row.high)))}</text></g>`);
        });
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + PIXELS + 100}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${theme.text}"><rect width="100%" height="100%" fill="${theme.panel}"/><text x="8" y="18" font-weight="600">${xmlText(`${this.app.recording()?.name ?? ""}: ${this.facts.textContent}`)}</text>${parts.join("")}</svg>`;
    };
}

export function stepView(app: App): View {
    const step = new Step(app);
    return {
        id: "step",
        title: "One step: forward and backward",
        tab: "Step",
        key: "t",
        root: step.root,
        keys: [["[ ]", "the previous step, the next one"]],
        onKey: (event) => step.onKey(event),
        show: () => void step.load(),
        update: (_, changed) => {
            void step.load();
            if (changed.has("found")) void step.mark();
        },
        svg: step.svg,
        csv: step.csv,
    };
}

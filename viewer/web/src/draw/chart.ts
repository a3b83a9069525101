// A chart over the window: what the timeline, the segments and the address map have in common. Three canvases lie on each other: what is
// under the shapes, the shapes (WebGL2 where there is one), and axes, marks and the pointer's finds. The picture in hand is moved and scaled
// at once; a new one is asked for at the same time, one question at a time, the latest wins.
import type { App } from "../app";
import { add, clear, el } from "../dom";
import { bytes, count } from "../format";
import type { Numbers } from "../protocol";
import type { State } from "../state";
import { drawXAxis, drawYAxis, drawYLines, type Box } from "./axes";
import { CanvasPainter, drawQuads } from "./canvas";
import { colourOf, css, themeOf, type Theme } from "./colour";
import { drawMarks, markAt, marksOf, type Mark } from "./marks";
import { CanvasPen, SvgPen, type Pen } from "./pen";
import { followPointer } from "./pointer";
import type { Emphasis, Painter, Placing, Quads } from "./quads";
import { shortened, type Details } from "./tips";
import { hasGpu, WebGlPainter } from "./webgl";

export type Wanted = { from: number; to: number; pixels: number; height: number };
export type Line = { name: string; colour: keyof Theme; values: Numbers; dash?: number[] };
export type Hit = { row: number; bytes: number; group: string; facts: string[] };

// A picture of one answer. Quads run over [from, to] and [low, high].
export type Scene = {
    from: number;
    to: number;
    low: number;
    high: number;
    quads: Quads;
    groups: string[];
    lines: Line[];
    moment: number | null; // where the chosen event lies on the axis
    allocations: number; // in the window, and how many of them are shapes
    shapes: number;
    summary: string; // a sentence for those who do not see the picture
    largest(window: { from: number; to: number }): number; // the largest total of a part of the window
    show(from: number, to: number): [low: number, high: number]; // what of the height to show for a part of the window
    hit(position: number, value: number): Hit | null;
    outline(row: number): number[]; // rectangles of a shape: from, to, low, high of each
    neighbour(row: number, step: 1 | -1): number | null; // the next shape in the order of births
    under?(pen: Pen, x: (position: number) => number, y: (value: number) => number, box: Box): void;
    yText?(value: number): string;
    // In place of an axis of bytes: names of parts of the height, left of the box.
    axis?(pen: Pen, y: (value: number) => number, box: Box, theme: Theme): void;
};

export interface Source {
    readonly name: string; // what the picture is, for its label
    readonly empty: string; // said when a recording has nothing to show here
    ask(wanted: Wanted, theme: Theme): Promise<Scene | null>;
    details(row: number): Promise<Details>;
    rowOf(label: string): Promise<number | null>;
    zoomY?: boolean; // whether the height can be zoomed, too
    left?(wide: number): number; // room for the names of the heights, of so many pixels
}

const MARGIN = { left: 76, right: 16, top: 30, bottom: 38 };
// Changes of the window that the picture in hand bears are asked for once they rest, others at once.
const REST_MS = 80;
const MOST_SCALE = 1.3;

// `?canvas2d` and `?webgl2` in the address choose.
function painterFor(canvas: HTMLCanvasElement): Painter {
    const wanted = new URLSearchParams(location.search);
    const webgl = wanted.has("webgl2") || (!wanted.has("canvas2d") && hasGpu());
    return (webgl ? WebGlPainter.create(canvas) : null) ?? new CanvasPainter(canvas);
}

export class Chart {
    readonly bar = el("div", { class: "chart-bar" });
    readonly legend = el("div", { class: "chart-legend", role: "group", "aria-label": "Colours" });
    readonly root: HTMLElement;
    readonly stage: HTMLElement;
    private readonly base = el("canvas", { "aria-hidden": "true" });
    private readonly shapes = el("canvas", { "aria-hidden": "true" });
    private readonly top: HTMLCanvasElement;
    private readonly tip = el("div", { class: "chart-tip", hidden: true, role: "status" });
    private readonly note = el("p", { class: "chart-note", hidden: true });
    private readonly painter: Painter;
    scene: Scene | null = null;
    private madeFor = 1; // length of the window that the picture was asked for
    private theme: Theme | null = null;
    private marks: Mark[] = [];
    private hover: Hit | null = null;
    private picked: { label: string; row: number } | null = null;
    private emphasis: Omit<Emphasis, "faint"> = { group: -1, matches: false };
    private pinned = "";
    private selecting: [number, number] | null = null;
    private frame = 0;
    private asking = false;
    private asked = "";
    private resting = 0;
    private tipFor = NaN;
    // The part of the height shown, where it can be zoomed; null: all of it.
    heights: [number, number] | null = null;

    constructor(
        readonly app: App,
        private readonly source: Source,
    ) {
        this.top = el("canvas", { tabindex: 0, role: "img", "aria-label": source.name, class: "chart-top" });
        this.stage = el("div", { class: "chart-stage" }, this.base, this.shapes, this.top, this.tip, this.note);
        this.root = el("section", { class: "chart", "aria-label": source.name }, this.bar, this.stage);
        this.painter = painterFor(this.shapes);
        this.stage.dataset.painter = this.painter.kind;
        followPointer(this.top, this);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.renew());
        new ResizeObserver(() => {
            this.held = null;
            this.refresh();
        }).observe(this.stage);
    }

    // --- the window -----------------------------------------------------------------------------------------------------

    private held: { width: number; height: number } | null = null;
    get size(): { width: number; height: number } {
        if (!this.root.isConnected) return { width: 50, height: 50 };
        return (this.held ??= { width: Math.max(50, this.stage.clientWidth), height: Math.max(50, this.stage.clientHeight) });
    }
    get box(): Box {
        const { width, height } = this.size;
        const left = this.source.left?.(width) ?? MARGIN.left;
        return { left, top: MARGIN.top, width: Math.max(10, width - left - MARGIN.right), height: Math.max(10, height - MARGIN.top - MARGIN.bottom) };
    }
    private byTime(): boolean {
        return this.app.store.state.axis === "time" && !!this.app.device()?.has_times;
    }
    position(x: number): number {
        const { from, to } = this.app.window();
        return from + ((x - this.box.left) / this.box.width) * (to - from);
    }
    value(y: number): number {
        const [low, high] = this.heightsShown();
        return low + ((this.box.top + this.box.height - y) / this.box.height) * (high - low);
    }
    heightsShown(): [number, number] {
        if (this.heights) return this.heights;
        const { from, to } = this.app.window();
        return this.scene?.show(from, to) ?? [0, 1];
    }

    setWindow(from: number, to: number): void {
        const length = this.app.length();
        const least = this.byTime() ? 10 : 4;
        const span = Math.min(Math.max(to - from, Math.min(least, length)), length);
        const begin = Math.min(Math.max(0, (from + to) / 2 - span / 2), length - span);
        const whole = span >= length * 0.9999;
        this.app.store.set({ from: whole ? 0 : begin, to: whole ? 0 : begin + span });
        this.schedule();
    }
    zoom(factor: number, x: number): void {
        const { from, to } = this.app.window();
        const at = this.position(x);
        this.setWindow(at - (at - from) * factor, at + (to - at) * factor);
    }
    pan(pixels: number): void {
        const { from, to } = this.app.window();
        const move = (pixels / this.box.width) * (to - from);
        const held = Math.min(Math.max(move, -from), this.app.length() - to);
        this.setWindow(from + held, to + held);
    }
    zoomHeight(factor: number, y: number): void {
        if (!this.source.zoomY || !this.scene) return;
        const [low, high] = this.heightsShown();
        const at = this.value(y);
        this.setHeights(at - (at - low) * factor, at + (high - at) * factor);
    }
    panHeight(pixels: number): void {
        if (!this.heights) return;
        const [low, high] = this.heights;
        const move = (pixels / this.box.height) * (high - low);
        this.setHeights(low + move, high + move);
    }
    private setHeights(low: number, high: number): void {
        const [least, most] = this.scene!.show(this.scene!.from, this.scene!.to);
        const span = Math.min(Math.max(high - low, 4096), most - least);
        const begin = Math.min(Math.max(least, (low + high) / 2 - span / 2), most - span);
        this.heights = span >= (most - least) * 0.999 ? null : [begin, begin + span];
        this.renew();
    }
    reset(): void {
        this.heights = null;
        this.setWindow(0, this.app.length());
        this.renew();
    }
    select(from: number, to: number): void {
        this.selecting = null;
        if (Math.abs(to - from) >= 4) this.setWindow(this.position(Math.min(from, to)), this.position(Math.max(from, to)));
        this.schedule();
    }
    preview(from: number, to: number): void {
        this.selecting = [from, to];
        this.schedule();
    }

    // --- pointing and picking -------------------------------------------------------------------------------------------

    point(x: number, y: number): void {
        const box = this.box;
        const mark = y < box.top ? markAt(this.marks, this.position(x), ((6 / box.width) * (this.app.window().to - this.app.window().from)), this.byTime()) : null;
        const inside = x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;
        this.hover = inside && this.scene ? this.scene.hit(this.position(x), this.value(y)) : null;
        if (mark) this.showTip(x, y, NaN, mark.title, mark.facts);
        else if (this.hover) this.describe(this.hover, x, y);
        else this.leave();
        this.schedule();
    }
    leave(): void {
        this.hover = null;
        this.tip.hidden = true;
        this.tipFor = NaN;
        this.schedule();
    }
    private describe(hit: Hit, x: number, y: number): void {
        if (hit.row === this.tipFor && !this.tip.hidden) {
            this.placeTip(x, y);
            return;
        }
        this.showTip(x, y, hit.row, bytes(hit.bytes), [hit.group, ...hit.facts]);
        if (hit.row < 0) return;
        void this.detailsOf(hit.row).then((details) => {
            if (details && this.tipFor === hit.row && !this.tip.hidden) this.fillTip(details.title, details.lines);
        });
    }
    private busy = false;
    private next: (() => void) | null = null;
    // One question at a time; of those that wait only the latest is asked.
    private detailsOf(row: number): Promise<Details | null> {
        return new Promise((resolve) => {
            const run = () => {
                this.busy = true;
                this.source
                    .details(row)
                    .then(resolve, () => resolve(null))
                    .finally(() => {
                        this.busy = false;
                        const next = this.next;
                        this.next = null;
                        next?.();
                    });
            };
            if (this.busy) this.next = run;
            else run();
        });
    }
    private showTip(x: number, y: number, row: number, title: string, lines: string[]): void {
        this.tipFor = row;
        this.fillTip(title, lines);
        this.tip.hidden = false;
        this.placeTip(x, y);
    }
    private fillTip(title: string, lines: string[]): void {
        clear(this.tip);
        add(this.tip, el("strong", {}, title), ...lines.filter((line) => line !== "").map((line) => el("div", {}, line)));
    }
    private placeTip(x: number, y: number): void {
        const { width, height } = this.size;
        const left = x + 14 + this.tip.offsetWidth > width ? x - 14 - this.tip.offsetWidth : x + 14;
        const top = Math.min(y + 14, height - this.tip.offsetHeight - 4);
        this.tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
    }

    async click(x: number, y: number): Promise<void> {
        const hit = this.scene?.hit(this.position(x), this.value(y)) ?? null;
        this.leave();
        const event = await this.eventAt(this.position(x));
        if (hit && hit.row >= 0) await this.pick(hit.row, event);
        else this.app.store.set({ pick: "", event });
    }
    private async eventAt(position: number): Promise<number> {
        const device = this.app.device();
        if (!device) return NaN;
        if (!this.byTime()) return Math.min(Math.max(-1, Math.floor(position)), device.events - 1);
        const { rec } = this.app.store.state;
        const answer = await this.app.engine.ask({ name: "curve", rec, device: device.device, axis: "time", from: position, to: position + 1, pixels: 1 });
        return answer.column("event")[0] - 1;
    }
    async pick(row: number, event?: number): Promise<void> {
        try {
            const { label, title, lines } = await this.source.details(row);
            this.top.setAttribute("aria-label", `${this.source.name}. ${title}. ${lines.join(". ")}`);
            this.picked = label ? { label, row } : null;
            this.app.store.set(event === undefined ? { pick: label ?? "" } : { pick: label ?? "", event });
        } catch (error) {
            this.app.say((error as Error).message);
        }
        this.schedule();
    }
    step(direction: 1 | -1): void {
        const row = this.scene?.neighbour(this.picked?.row ?? -1, direction) ?? null;
        if (row !== null) void this.pick(row);
    }
    // Shows the life of what is picked.
    showPicked(): void {
        if (!this.picked || !this.scene) return;
        const rectangles = this.scene.outline(this.picked.row);
        if (rectangles.length === 0) return;
        const begin = rectangles[0];
        const end = rectangles[rectangles.length - 3];
        this.setWindow(begin - (end - begin) * 0.2, end + (end - begin) * 0.2);
    }

    onKey(event: KeyboardEvent): boolean {
        const middle = this.box.left + this.box.width / 2;
        const actions: { [key: string]: () => void } = {
            w: () => this.zoom(0.7, middle),
            s: () => this.zoom(1 / 0.7, middle),
            a: () => this.pan(-this.box.width * 0.2),
            d: () => this.pan(this.box.width * 0.2),
            "[": () => this.step(-1),
            "]": () => this.step(1),
            z: () => this.showPicked(),
            Escape: () => this.app.store.set({ pick: "" }),
        };
        if (this.source.zoomY) {
            const centre = this.box.top + this.box.height / 2;
            Object.assign(actions, {
                W: () => this.zoomHeight(0.7, centre),
                S: () => this.zoomHeight(1 / 0.7, centre),
                A: () => this.panHeight(-this.box.height * 0.2),
                D: () => this.panHeight(this.box.height * 0.2),
            });
        }
        const action = actions[event.key];
        if (!action) return false;
        action();
        return true;
    }

    // --- the picture ----------------------------------------------------------------------------------------------------

    update(state: State, changed: ReadonlySet<keyof State>): void {
        if (changed.has("rec") || changed.has("device")) {
            this.heights = null;
            this.picked = null;
        }
        if (["dark", "by", "notion", "axis", "rec", "device", "found", "event"].some((key) => changed.has(key as keyof State))) this.renew();
        if (changed.has("pick") || changed.has("rec")) void this.followPick(state.pick);
        // What lies under the pointer is another thing now.
        if (["from", "to", "axis", "rec", "device", "notion", "by"].some((key) => changed.has(key as keyof State))) this.leave();
        this.refresh();
    }
    show(): void {
        void this.followPick(this.app.store.state.pick);
        this.renew();
    }
    // Asks again even though the window is the same.
    renew(): void {
        if (!this.root.isConnected) return;
        this.theme = themeOf(this.root);
        this.asked = "";
        this.refresh();
    }
    private async followPick(label: string): Promise<void> {
        if (label === (this.picked?.label ?? "")) return;
        this.picked = null;
        if (label !== "" && this.app.device()) {
            const row = await this.source.rowOf(label).catch(() => null);
            if (row !== null && this.app.store.state.pick === label) this.picked = { label, row };
        }
        this.schedule();
    }

    private wanted(): Wanted {
        const { from, to } = this.app.window();
        const margin = (to - from) * 0.25;
        const begin = Math.max(0, from - margin);
        const end = Math.min(this.app.length(), to + margin);
        const { width, height } = this.box;
        return { from: begin, to: Math.max(end, begin + 1), pixels: Math.min(4096, Math.ceil((width * (end - begin)) / (to - from))), height: Math.ceil(height) };
    }
    // Whether the picture in hand is too small or too coarse for the window.
    private outgrown(): boolean {
        if (!this.scene || this.asked === "") return true;
        const { from, to } = this.app.window();
        const scale = (to - from) / this.madeFor;
        return from < this.scene.from || to > this.scene.to || scale > MOST_SCALE || scale < 1 / MOST_SCALE;
    }
    private refresh(): void {
        this.schedule();
        clearTimeout(this.resting);
        if (this.asking || !this.root.isConnected) return;
        if (this.outgrown()) void this.renewScene();
        else this.resting = window.setTimeout(() => this.asking || void this.renewScene(), REST_MS);
    }
    private async renewScene(): Promise<void> {
        const device = this.app.device();
        this.note.hidden = !!device && this.scene !== null;
        if (!device) {
            this.scene = null;
            this.note.textContent = "Open a recording to see it here.";
            this.schedule();
            return;
        }
        const wanted = this.wanted();
        const { from, to } = this.app.window();
        const key = JSON.stringify([wanted, this.heights]);
        if (key === this.asked) return;
        this.asked = key;
        this.asking = true;
        this.theme ??= themeOf(this.root);
        try {
            const [scene, marks] = await Promise.all([this.source.ask(wanted, this.theme), marksOf(this.app)]);
            this.scene = scene;
            this.madeFor = to - from;
            this.marks = marks;
            this.note.hidden = scene !== null;
            this.stage.dataset.largest = String(scene?.largest(this.app.window()) ?? 0);
            if (scene) {
                this.painter.load(scene.quads);
                this.describeGroups(scene);
                this.top.setAttribute("aria-label", `${this.source.name}. ${scene.summary}`);
                this.stage.dataset.allocations = String(scene.allocations);
                this.stage.dataset.shapes = String(scene.shapes);
                this.stage.dataset.ready = String(Number(this.stage.dataset.ready ?? 0) + 1);
            } else this.note.textContent = this.source.empty;
        } catch (error) {
            this.app.say((error as Error).message);
        }
        this.asking = false;
        this.refresh();
    }

    private describeGroups(scene: Scene): void {
        const shown = scene.groups.slice(0, 7);
        this.emphasis = { group: this.pinned ? scene.groups.indexOf(this.pinned) : -1, matches: this.app.matches() !== undefined };
        clear(this.legend);
        shown.forEach((name, i) => {
            const swatch = el("span", { class: "swatch" });
            swatch.style.background = css(colourOf(name));
            const button = el("button", { type: "button", title: name, "aria-pressed": String(this.pinned === name) }, swatch, shortened(name));
            button.addEventListener("pointerenter", () => this.emphasise(i));
            button.addEventListener("pointerleave", () => this.emphasise(this.pinned ? scene.groups.indexOf(this.pinned) : -1));
            button.addEventListener("click", () => {
                this.pinned = this.pinned === name ? "" : name;
                this.describeGroups(scene);
                this.schedule();
            });
            this.legend.append(button);
        });
        if (scene.groups.length > shown.length) this.legend.append(el("span", { class: "quiet" }, `and ${count(scene.groups.length - shown.length)} more`));
    }
    private emphasise(group: number): void {
        this.emphasis = { ...this.emphasis, group };
        this.schedule();
    }

    schedule(): void {
        if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
    }
    private placing(scene: Scene): Placing {
        const { from, to } = this.app.window();
        const [low, high] = this.heightsShown();
        const box = this.box;
        const across = box.width / (to - from);
        const up = box.height / (high - low);
        return {
            x: box.left + (scene.from - from) * across,
            width: (scene.to - scene.from) * across,
            y: box.top + box.height - (scene.high - low) * up,
            height: (scene.high - scene.low) * up,
        };
    }
    private paint(): void {
        this.frame = 0;
        if (!this.root.isConnected) return;
        const began = performance.now();
        const theme = (this.theme ??= themeOf(this.root));
        const { width, height } = this.size;
        const ratio = devicePixelRatio;
        const pens = [this.base, this.top].map((canvas) => {
            const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
            if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
            const context = canvas.getContext("2d")!;
            context.setTransform(ratio, 0, 0, ratio, 0, 0);
            context.clearRect(0, 0, width, height);
            return new CanvasPen(context);
        });
        const box = this.box;
        if (this.scene) {
            this.paintUnder(pens[0], theme);
            this.painter.paint({ width, height, ratio }, box, this.placing(this.scene), { ...this.emphasis, faint: theme.faint }, theme.groundRgb);
        } else this.painter.paint({ width, height, ratio }, { ...box, width: 0, height: 0 }, { x: 0, width: 0, y: 0, height: 0 }, { ...this.emphasis, faint: theme.faint }, theme.groundRgb);
        this.paintOver(pens[1], theme);
        this.stage.dataset.box = JSON.stringify({ ...box, heights: this.heightsShown() });
        this.stage.dataset.paint = (performance.now() - began).toFixed(2);
    }

    private mapping(): { x: (position: number) => number; y: (value: number) => number; low: number; high: number; from: number; to: number; box: Box } {
        const box = this.box;
        const { from, to } = this.app.window();
        const [low, high] = this.heightsShown();
        return {
            box,
            from,
            to,
            low,
            high,
            x: (position) => box.left + ((position - from) / (to - from)) * box.width,
            y: (value) => box.top + box.height - ((value - low) / (high - low)) * box.height,
        };
    }
    private paintUnder(pen: Pen, theme: Theme): void {
        const { x, y, low, high, box } = this.mapping();
        pen.rect(box.left, box.top, box.width, box.height, theme.panel);
        pen.clip(box.left, box.top, box.width, box.height, () => {
            if (!this.scene!.yText && !this.scene!.axis) drawYLines(pen, box, low, high, theme);
            this.scene!.under?.(pen, x, y, box);
        });
    }
    private paintOver(pen: Pen, theme: Theme): void {
        const { x, y, low, high, from, to, box } = this.mapping();
        drawXAxis(pen, box, from, to, this.byTime(), theme);
        if (!this.scene) return;
        if (this.scene.axis) this.scene.axis(pen, y, box, theme);
        else drawYAxis(pen, box, low, high, theme, this.scene.yText);
        pen.clip(box.left, box.top, box.width, box.height, () => {
            for (const line of this.scene!.lines) this.paintLine(pen, line, x, y, theme);
            if (this.picked) this.paintOutline(pen, this.picked.row, theme.text, 2);
            if (this.hover && this.hover.row !== this.picked?.row) this.paintOutline(pen, this.hover.row, theme.text, 1);
            if (this.scene!.moment !== null) pen.line([x(this.scene!.moment), box.top, x(this.scene!.moment), box.top + box.height], theme.accent, 1.5, [4, 3]);
            if (this.selecting) pen.rect(Math.min(...this.selecting), box.top, Math.abs(this.selecting[1] - this.selecting[0]), box.height, "rgba(80,130,220,0.25)");
        });
        drawMarks(pen, this.marks, box, from, to, this.byTime(), theme);
        this.paintNames(pen, theme);
    }
    private paintLine(pen: Pen, line: Line, x: (position: number) => number, y: (value: number) => number, theme: Theme): void {
        const scene = this.scene!;
        const points: number[] = [];
        for (let i = 0; i < line.values.length; i++) {
            const left = scene.from + ((scene.to - scene.from) * i) / line.values.length;
            const right = scene.from + ((scene.to - scene.from) * (i + 1)) / line.values.length;
            points.push(x(left), y(line.values[i]), x(right), y(line.values[i]));
        }
        pen.line(points, theme[line.colour] as string, 1.4, line.dash);
    }
    // The names of the lines, in the corner.
    private paintNames(pen: Pen, theme: Theme): void {
        let left = this.box.left + 8;
        for (const line of this.scene!.lines) {
            pen.rect(left - 4, this.box.top + 3, 31 + pen.textWidth(line.name), 16, theme.panel); // shapes may lie there
            pen.line([left, this.box.top + 11, left + 18, this.box.top + 11], theme[line.colour] as string, 2, line.dash);
            pen.text(left + 23, this.box.top + 15, line.name, theme.text, { size: 11 });
            left += 40 + pen.textWidth(line.name);
        }
    }
    private paintOutline(pen: Pen, row: number, colour: string, lineWidth: number): void {
        const { x, y } = this.mapping();
        const rectangles = this.scene!.outline(row);
        if (rectangles.length === 0) return;
        const above: number[] = [];
        const below: number[] = [];
        for (let i = 0; i < rectangles.length; i += 4) {
            const [from, to, low, high] = rectangles.slice(i, i + 4);
            above.push(x(from), y(high), x(to), y(high));
            below.unshift(x(to), y(low), x(from), y(low));
        }
        pen.line([...above, ...below, above[0], above[1]], colour, lineWidth);
    }

    // The picture as an SVG file.
    svg(title: string): string {
        const theme = (this.theme ??= themeOf(this.root));
        const { width, height } = this.size;
        const pen = new SvgPen(width, height);
        const box = this.box;
        if (this.scene) {
            this.paintUnder(pen, theme);
            pen.clip(box.left, box.top, box.width, box.height, () => drawQuads(pen, this.scene!.quads, width, this.placing(this.scene!), { ...this.emphasis, faint: theme.faint }, theme.groundRgb));
        }
        this.paintOver(pen, theme);
        pen.text(box.left, height - 8, title, theme.quiet, { size: 11 });
        return pen.document(theme.ground);
    }
}

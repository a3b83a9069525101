// A chart over the window, shared by the timeline, the segments and the address map. The current picture is moved and scaled at once, and a
// new one is requested at the same time: one request at a time, the latest wins.
import type { App } from "../app";
import { clear, el } from "../dom";
import { bytes, count } from "../format";
import type { State } from "../state";
import { colourOf, css, themeOf, type Theme } from "./colour";
import { drawXAxis, type Box } from "./axes";
import { Layers, mappingOf, outlinePoints, paintGround, paintHeights, paintNames, placingOf, type View } from "./layers";
import { drawMarks, markAt, marksOf, type Mark } from "./marks";
import { SvgPen, type Pen } from "./pen";
import { drawCurves, drawShapes, drawUnder, type Picture } from "./picture";
import { followPointer } from "./pointer";
import type { Emphasis } from "./quads";
import { Tip } from "./tip";
import { shortened, type Details } from "./tips";

export type Wanted = { from: number; to: number; pixels: number; height: number };
export type Hit = { row: number; bytes: number; group: string; facts: string[]; around?: string[] }; // around: facts about the surrounding item

// The picture of one answer, with functions that query it.
export type Scene = {
    from: number;
    to: number;
    low: number;
    high: number;
    picture: Picture;
    groups: string[];
    moment: number | null; // position of the chosen event on the axis
    allocations: number; // in the window; `shapes` is how many of them are drawn as shapes
    shapes: number;
    summary: string; // a sentence for screen readers
    largest(window: { from: number; to: number }): number; // the largest total within part of the window
    show(from: number, to: number): [low: number, high: number]; // the part of the height to show for part of the window
    hit(position: number, value: number): Hit | null;
    outline(row: number): number[]; // the rectangles of a shape: from, to, low, high of each
    neighbour(row: number, step: 1 | -1): number | null; // the next shape in order of allocation
    yText?(value: number): string;
    // Draws names of parts of the height, left of the box, instead of an axis of bytes.
    axis?(pen: Pen, y: (value: number) => number, box: Box, theme: Theme): void;
};

export interface Source {
    readonly name: string; // the picture's name, for its label
    readonly empty: string; // shown if a recording has nothing for this chart
    ask(wanted: Wanted, theme: Theme): Promise<Scene | null>;
    details(row: number): Promise<Details>;
    rowOf(label: string): Promise<number | null>;
    zoomY?: boolean; // whether the height can also be zoomed
    left?(wide: number): number; // width for the names of the heights, within this many pixels
}

const MARGIN = { left: 76, right: 16, top: 30, bottom: 38 };
// Request window changes that the current picture can show only after this pause, others at once.
const REST_MS = 80;
const MOST_SCALE = 2;

export class Chart {
    readonly bar = el("div", { class: "chart-bar" });
    readonly legend = el("div", { class: "chart-legend", role: "group", "aria-label": "Colours" });
    readonly root: HTMLElement;
    readonly stage: HTMLElement;
    private readonly top: HTMLElement;
    private readonly tip: Tip;
    private readonly note = el("p", { class: "chart-note", hidden: true });
    private readonly layers: Layers;
    scene: Scene | null = null;
    private madeFor = 1; // length of the window that the picture was requested for
    private theme: Theme | null = null;
    private marks: Mark[] = [];
    private hover: Hit | null = null;
    private picked: { label: string; row: number } | null = null;
    private described = ""; // the legend's current description
    private emphasis: Omit<Emphasis, "faint"> = { group: -1, matches: false };
    private selecting: [number, number] | null = null;
    private frame = 0;
    private asking = false;
    private asked = "";
    private resting = 0;
    // The visible part of the height, if it can be zoomed; null: all of it.
    heights: [number, number] | null = null;

    constructor(
        readonly app: App,
        private readonly source: Source,
    ) {
        this.top = el("div", { tabindex: 0, role: "img", "aria-label": source.name, class: "chart-top" });
        this.tip = new Tip(
            () => this.size,
            (row) => source.details(row),
        );
        this.layers = new Layers(this.top, this.tip.root, this.note);
        this.stage = this.layers.stage;
        this.root = el("section", { class: "chart", "aria-label": source.name }, this.bar, this.stage);
        followPointer(this.top, this);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.renew());
        new ResizeObserver(() => {
            this.held = null;
            this.refresh();
        }).observe(this.stage);
    }

    // --- the window -----------------------------------------------------------------------------------------------------

    // The group highlighted by the legend; part of the link.
    private get pinned(): string {
        return this.app.store.state.legend;
    }
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
    private fitted: { scene: Scene | null; from: number; to: number; heights: [number, number] } | null = null;
    heightsShown(): [number, number] {
        if (this.heights) return this.heights;
        const { from, to } = this.app.window();
        const { scene, fitted } = this;
        if (!fitted || fitted.scene !== scene || fitted.from !== from || fitted.to !== to) this.fitted = { scene, from, to, heights: scene?.show(from, to) ?? [0, 1] };
        return this.fitted!.heights;
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
        this.paintOver();
    }

    // --- pointing and picking -------------------------------------------------------------------------------------------

    point(x: number, y: number): void {
        const box = this.box;
        const mark = y < box.top ? markAt(this.marks, this.position(x), ((6 / box.width) * (this.app.window().to - this.app.window().from)), this.byTime()) : null;
        const inside = x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height;
        this.hover = inside && this.scene ? this.scene.hit(this.position(x), this.value(y)) : null;
        if (mark) this.tip.show(x, y, NaN, mark.title, mark.facts);
        else if (this.hover) this.tip.show(x, y, this.hover.row, bytes(this.hover.bytes), [this.hover.group, ...this.hover.facts], this.hover.around);
        else this.tip.hide();
        this.paintHover(this.view());
    }
    leave(): void {
        if (this.hover === null && this.tip.root.hidden) return;
        this.hover = null;
        this.tip.hide();
        this.paintHover(this.view());
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
    // Shows the lifetime of the picked item.
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
        if (changed.has("legend") && this.scene) {
            this.describeGroups(this.scene);
            this.emphasise(this.scene.groups.indexOf(this.pinned));
        }
        if (changed.has("pins")) void this.markAnew();
        if (changed.has("pick") || changed.has("rec")) void this.followPick(state.pick);
        // Something else is under the pointer now.
        if (["from", "to", "axis", "rec", "device", "notion", "by"].some((key) => changed.has(key as keyof State))) this.leave();
        this.refresh();
    }
    private async markAnew(): Promise<void> {
        this.marks = await marksOf(this.app);
        this.schedule();
    }
    show(): void {
        void this.followPick(this.app.store.state.pick);
        this.renew();
    }
    // Requests again, even for the same window.
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
        const { width, height } = this.box;
        // Margins are whole device pixels, so that the picture aligns with its window.
        const pixel = (to - from) / (width * devicePixelRatio);
        const margin = Math.floor((width * devicePixelRatio) / 4);
        const begin = from - pixel * Math.min(margin, Math.floor(from / pixel));
        const end = to + pixel * Math.min(margin, Math.floor((this.app.length() - to) / pixel + 1e-9));
        return { from: Math.max(0, begin), to: Math.max(end, begin + 1), pixels: Math.min(4096, Math.ceil((width * (end - begin)) / (to - from))), height: Math.ceil(height) };
    }
    // Returns whether the current picture is too small or too coarse for the window.
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
            this.layers.empty();
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
        this.stage.setAttribute("aria-busy", "true");
        this.theme ??= themeOf(this.root);
        try {
            const [scene, marks] = await Promise.all([this.source.ask(wanted, this.theme), marksOf(this.app)]);
            if (scene) await this.load(scene);
            else this.layers.empty();
            this.scene = scene;
            this.madeFor = to - from;
            this.marks = marks;
            this.note.hidden = scene !== null;
            this.stage.dataset.largest = String(scene?.largest(this.app.window()) ?? 0);
            if (scene) {
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
        this.stage.removeAttribute("aria-busy");
        this.refresh();
    }

    // Loads a scene into the painter as it will be shown: in the current window, with its own heights.
    private async load(scene: Scene): Promise<void> {
        const theme = this.theme!;
        const { from, to } = this.app.window();
        const [low, high] = this.heights ?? scene.show(from, to);
        this.emphasis = { group: scene.groups.indexOf(this.pinned), matches: this.app.matches() !== undefined };
        await this.layers.painter.load(scene.picture, { ...this.view(), low, high }, { ...this.emphasis, faint: theme.faint }, theme.groundRgb);
    }
    private describeGroups(scene: Scene): void {
        const shown = scene.groups.slice(0, 7);
        const now = JSON.stringify([shown, scene.groups.length, this.pinned, this.app.store.state.dark]);
        if (now === this.described) return;
        this.described = now;
        clear(this.legend);
        shown.forEach((name) => {
            const swatch = el("span", { class: "swatch" });
            swatch.style.background = css(colourOf(name));
            const button = el("button", { type: "button", title: name, "aria-pressed": String(this.pinned === name) }, swatch, shortened(name));
            button.addEventListener("pointerenter", () => this.emphasise(this.scene?.groups.indexOf(name) ?? -1));
            button.addEventListener("pointerleave", () => this.emphasise(this.scene?.groups.indexOf(this.pinned) ?? -1));
            button.addEventListener("click", () => {
                this.app.store.set({ legend: this.pinned === name ? "" : name });
            });
            this.legend.append(button);
        });
        if (scene.groups.length > shown.length) this.legend.append(el("span", { class: "quiet" }, `and ${count(scene.groups.length - shown.length)} more`));
    }
    private emphasise(group: number): void {
        const { scene, theme } = this;
        if (!scene || !theme || group === this.emphasis.group) return;
        this.emphasis = { ...this.emphasis, group };
        void this.layers.painter.load(null, this.view(), { ...this.emphasis, faint: theme.faint }, theme.groundRgb).then(() => this.schedule());
    }

    schedule(): void {
        if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
    }
    private view(): View {
        const { from, to } = this.app.window();
        const [low, high] = this.heightsShown();
        return { ...this.size, box: this.box, from, to, low, high, ratio: devicePixelRatio, byTime: this.byTime() };
    }
    private paint(): void {
        this.frame = 0;
        if (!this.root.isConnected) return;
        const view = this.view();
        this.layers.paint(this.scene, this.marks, view, (this.theme ??= themeOf(this.root)), this.emphasis);
        this.paintOver(view);
        this.stage.dataset.box = JSON.stringify({ ...view.box, heights: [view.low, view.high] });
    }
    // Paints only the marks that follow the pointer and the choice.
    private outline(row: number | undefined, view: View): number[] {
        return this.scene && row !== undefined ? outlinePoints(this.scene.outline(row), mappingOf(view)) : [];
    }
    private paintHover(view: View): void {
        const { hover, picked } = this;
        this.layers.over("hover", hover && hover.row !== picked?.row ? this.outline(hover.row, view) : [], view.box);
    }
    private paintOver(view = this.view()): void {
        const { scene, picked, layers } = this;
        const { box } = view;
        const map = mappingOf(view);
        const level = (from: number, to: number) => [from, box.top, to, box.top, to, box.top + box.height, from, box.top + box.height];
        layers.over("picked", this.outline(picked?.row, view), box);
        this.paintHover(view);
        layers.over("moment", scene && scene.moment !== null ? [map.x(scene.moment), box.top, map.x(scene.moment), box.top + box.height] : [], box);
        layers.over("selecting", this.selecting ? level(...this.selecting) : [], box);
    }

    // Returns the picture as an SVG file.
    svg(title: string): string {
        const theme = (this.theme ??= themeOf(this.root));
        const view = this.view();
        const { box, width, height } = view;
        const pen = new SvgPen(width, height);
        const { scene } = this;
        if (scene) {
            const place = { ...mappingOf(view), placing: placingOf(scene, view), box };
            paintGround(pen, scene, view, theme);
            pen.clip(box.left, box.top, box.width, box.height, () => {
                drawUnder(pen, scene.picture, place, theme.groundRgb);
                drawShapes(pen, scene.picture, place, { ...this.emphasis, faint: theme.faint }, theme.groundRgb);
                drawCurves(pen, scene.picture, place);
                if (this.picked) pen.line(outlinePoints(scene.outline(this.picked.row), place), theme.text, 2);
                if (scene.moment !== null) pen.line([place.x(scene.moment), box.top, place.x(scene.moment), box.top + box.height], theme.accent, 1.5, [4, 3]);
            });
        }
        drawXAxis(pen, box, view.from, view.to, view.byTime, theme);
        if (scene) {
            paintHeights(pen, scene, view, theme);
            drawMarks(pen, this.marks, box, view.from, view.to, view.byTime, theme);
            paintNames(pen, scene, box, theme);
        }
        pen.text(box.left, height - 8, title, theme.quiet, { size: 11 });
        return pen.document(theme.ground);
    }
}

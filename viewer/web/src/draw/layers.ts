// The layers of a chart, from the bottom: the ground with its lines, the picture, axes and marks, and the marks that follow the pointer.
// Each is painted only when its contents change: a mouse move touches only the top layer.
import { el } from "../dom";
import { byteTicks, drawXAxis, drawYAxis, drawYLines, type Box } from "./axes";
import type { Scene } from "./chart";
import type { Theme } from "./colour";
import { drawMarks, markLines, type Mark } from "./marks";
import { CanvasPen, type Pen } from "./pen";
import { drawCurves, drawUnder } from "./picture";
import { painterFor, type Shown } from "./painter";
import type { Emphasis } from "./quads";
import { Strip } from "./strip";

const same = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((value, i) => value === b[i]);
const HIDDEN = { "aria-hidden": "true" };
const SPACE = "http://www.w3.org/2000/svg";
const CURVE_LEGEND = 18; // width of a curve's sample before its name

export type View = Shown & { width: number; height: number; byTime: boolean };

// Maps positions and values to pixels.
export function mappingOf({ box, from, to, low, high }: Shown): { x: (position: number) => number; y: (value: number) => number } {
    return {
        x: (position) => box.left + ((position - from) / (to - from)) * box.width,
        y: (value) => box.top + box.height - ((value - low) / (high - low)) * box.height,
    };
}

export function placingOf({ picture }: Scene, { box, from, to, low, high }: Shown): { x: number; width: number; y: number; height: number } {
    const across = box.width / (to - from);
    const up = box.height / (high - low);
    return {
        x: box.left + (picture.from - from) * across,
        width: (picture.to - picture.from) * across,
        y: box.top + box.height - (picture.high - low) * up,
        height: (picture.high - picture.low) * up,
    };
}

export function paintGround(pen: Pen, scene: Scene, view: Shown, theme: Theme): void {
    const { box, low, high } = view;
    pen.rect(box.left, box.top, box.width, box.height, theme.panel);
    if (scene.yText || scene.axis) return;
    pen.clip(box.left, box.top, box.width, box.height, () => drawYLines(pen, box, low, high, theme));
}

// Paints the names of the curves, for a file.
export function paintNames(pen: Pen, { picture: { curves } }: Scene, box: Box, theme: Theme): void {
    let left = box.left + 8;
    for (const { name, colour, dash } of curves.filter((curve) => curve.name !== "")) {
        pen.rect(left - 4, box.top + 3, CURVE_LEGEND + 13 + pen.textWidth(name), 16, theme.panel); // shapes may be underneath
        pen.line([left, box.top + 11, left + CURVE_LEGEND, box.top + 11], colour, 2, dash);
        pen.text(left + CURVE_LEGEND + 5, box.top + 15, name, theme.text, { size: 11 });
        left += CURVE_LEGEND + 22 + pen.textWidth(name);
    }
}

export function paintHeights(pen: Pen, scene: Scene, view: Shown, theme: Theme): void {
    const { box, low, high } = view;
    if (scene.axis) scene.axis(pen, mappingOf(view).y, box, theme);
    else drawYAxis(pen, box, low, high, theme, scene.yText);
}

// Returns the outline of a shape made of adjacent rectangles: from, to, low, high of each.
export function outlinePoints(rectangles: readonly number[], { x, y }: ReturnType<typeof mappingOf>): number[] {
    const above: number[] = [];
    const below: number[] = [];
    for (let i = 0; i + 3 < rectangles.length; i += 4) {
        above.push(x(rectangles[i]), y(rectangles[i + 3]), x(rectangles[i + 1]), y(rectangles[i + 3]));
        below.push(y(rectangles[i + 2]), x(rectangles[i]), y(rectangles[i + 2]), x(rectangles[i + 1]));
    }
    return above.length === 0 ? [] : [...above, ...below.reverse(), above[0], above[1]];
}

const OVER = ["picked", "hover", "moment", "selecting", "alarms", "moments"] as const;
type Over = (typeof OVER)[number];

function svgElement<K extends "svg" | "path">(tag: K, name: string): SVGElementTagNameMap[K] {
    const element = document.createElementNS(SPACE, tag);
    element.setAttribute("class", name);
    return element;
}

const pathOf = (points: ArrayLike<number>, left: number, top: number): string => {
    let path = "";
    for (let i = 0; i + 1 < points.length; i += 2) path += `${i === 0 ? "M" : "L"}${Math.round((points[i] - left) * 10) / 10} ${Math.round((points[i + 1] - top) * 10) / 10}`;
    return path;
};

export class Layers {
    readonly stage: HTMLElement;
    private readonly shapes = el("canvas", { "aria-hidden": "true", class: "chart-shapes" });
    private readonly clip: HTMLElement;
    private readonly lines = svgElement("svg", "chart-lines");
    private readonly levels = svgElement("path", "");
    private readonly overlay = svgElement("svg", "chart-overlay");
    private readonly parts = {} as Record<Over, SVGPathElement>;
    private readonly drawn = {} as Record<Over, string>;
    private readonly heights = new Strip(HIDDEN);
    private readonly axis = new Strip(HIDDEN);
    private readonly marks = new Strip(HIDDEN);
    // With WebGL2: the layers below and above its shapes.
    private readonly under = new Strip(HIDDEN);
    private readonly curves = new Strip(HIDDEN);
    private readonly names = el("div", { class: "chart-names" });
    readonly painter;
    private leveled: readonly unknown[] = [];
    private spanned: readonly unknown[] = [];
    private named: readonly unknown[] = [];
    private boxed = "";

    constructor(top: HTMLElement, ...over: HTMLElement[]) {
        this.lines.append(this.levels);
        this.clip = el("div", { class: "chart-clip", "aria-hidden": "true" });
        this.overlay.setAttribute("aria-hidden", "true");
        for (const name of OVER) this.overlay.append((this.parts[name] = svgElement("path", `over-${name}`)));
        this.painter = painterFor(this.shapes);
        const gpu = !this.painter.whole;
        this.clip.append(this.lines, this.shapes);
        this.stage = el("div", { class: "chart-stage" }, gpu && this.under.canvas, this.clip, gpu && this.curves.canvas, this.heights.canvas, this.axis.canvas, this.marks.canvas, this.names);
        this.stage.append(this.overlay, top, ...over);
        this.stage.dataset.painter = this.painter.kind;
    }

    private placeBox({ left, top, width, height }: Box): void {
        const key = `${left} ${top} ${width} ${height}`;
        if (key === this.boxed) return;
        this.boxed = key;
        for (const { style } of [this.clip, this.overlay]) [style.left, style.top, style.width, style.height] = [left, top, width, height].map((value) => `${value}px`);
        [this.names.style.left, this.names.style.top] = [`${left + 4}px`, `${top + 3}px`];
    }

    // Paints the parts that depend only on the heights: horizontal lines and their scale.
    private paintHeights(scene: Scene | null, view: View, theme: Theme): void {
        const { box, low, high, height, ratio } = view;
        const now = [scene, theme, height, ratio, low, high, box.left, box.width];
        if (same(now, this.leveled)) return;
        this.leveled = now;
        const { y } = mappingOf(view);
        let path = "";
        if (scene && !scene.yText && !scene.axis) for (const value of byteTicks(low, high, Math.max(2, box.height / 46))) path += `M0 ${Math.round(y(value)) + 0.5 - box.top}h${box.width}`;
        this.levels.setAttribute("d", path);
        this.heights.fill(0, 0, box.left + 1, height, ratio, (context) => scene && paintHeights(new CanvasPen(context), scene, view, theme));
    }

    private nameCurves(scene: Scene | null): void {
        const curves = scene?.picture.curves ?? [];
        const now = curves.flatMap(({ name, colour }) => [name, colour]);
        if (same(now, this.named)) return;
        this.named = now;
        this.names.replaceChildren(
            ...curves.filter(({ name }) => name !== "").map(({ name, colour, dash }) => {
                const sample = el("span", { class: "curve-sample" });
                sample.style.borderTop = `2px ${dash ? "dashed" : "solid"} ${colour}`;
                return el("span", {}, sample, name);
            }),
        );
    }

    paint(scene: Scene | null, marks: Mark[], view: View, theme: Theme, emphasis: Omit<Emphasis, "faint">): void {
        const { box, ratio } = view;
        this.placeBox(box);
        this.paintHeights(scene, view, theme);
        this.nameCurves(scene);
        if (scene) this.painter.place(view, { ...emphasis, faint: theme.faint }, theme.groundRgb);
        if (!this.painter.whole) {
            const place = scene && { ...mappingOf(view), placing: placingOf(scene, view), box };
            this.under.fill(box.left, box.top, box.width, box.height, ratio, (context) => place && drawUnder(new CanvasPen(context), scene.picture, place, theme.groundRgb));
            this.curves.fill(box.left, box.top, box.width, box.height, ratio, (context) => place && drawCurves(new CanvasPen(context), scene.picture, place));
        }
        this.paintSpan(scene, marks, view, theme);
    }

    // Paints the parts that depend only on the window: the axis below, marks above, and their lines.
    private paintSpan(scene: Scene | null, marks: Mark[], { box, from, to, width, height, ratio, byTime }: View, theme: Theme): void {
        const now = [scene === null, marks, theme, from, to, width, height, ratio, byTime, box.left, box.top, box.width, box.height];
        if (same(now, this.spanned)) return;
        this.spanned = now;
        this.axis.fill(0, box.top + box.height, width, height - box.top - box.height, ratio, (context) => drawXAxis(new CanvasPen(context), box, from, to, byTime, theme));
        this.marks.fill(0, 0, width, box.top, ratio, (context) => scene && drawMarks(new CanvasPen(context), marks, box, from, to, byTime, theme));
        const lines = scene ? markLines(marks, box, from, to, byTime) : { alarms: [], moments: [] };
        for (const name of ["alarms", "moments"] as const) this.set(name, lines[name].map((at) => `M${Math.round((at - box.left) * 10) / 10} 0v${box.height}`).join(""));
    }

    private set(name: Over, path: string): void {
        if (path === (this.drawn[name] ?? "")) return;
        this.drawn[name] = path;
        this.parts[name].setAttribute("d", path);
    }

    // Draws points in stage pixels: x0, y0, x1, y1, ...
    over(name: "picked" | "hover" | "moment" | "selecting", points: readonly number[], { left, top }: Box): void {
        this.set(name, pathOf(points, left, top));
    }

    empty(): void {
        this.painter.clear();
        this.spanned = [];
        for (const name of OVER) this.set(name, "");
    }
}

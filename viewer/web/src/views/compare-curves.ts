// Draws two histories over each other: step by step if both have steps, else each from start to end.
import { el } from "../dom";
import { byteTicks, tickBytes } from "../draw/axes";
import { inkOn, parse, themeOf, type Theme } from "../draw/colour";
import { bytes, count, counted } from "../format";
import type { Numbers } from "../protocol";

export type Curve = { title: string; high: Numbers };
// A compared moment, as a share of the width (NaN: outside).
export type Moment = { letter: string; at: number; bytes: number };
const MARGIN = { left: 64, right: 12, top: 22, bottom: 20 };
const STEP_PIXELS = 34; // between two step numbers
const NARROW = 420; // pixels; below this, names are drawn without their peaks

export class Curves {
    private readonly canvas = el("canvas", { role: "img", "aria-label": "Both histories overlaid" });
    private readonly tip = el("div", { class: "state-tip", role: "tooltip", hidden: true });
    readonly root = el("div", { class: "compare-curve" }, this.canvas, this.tip);
    private curves: readonly Curve[] = [];
    private steps = 0; // number of steps shown; 0: whole histories
    private chosen = 0; // step, from 1
    private moments: readonly Moment[] = [];

    constructor(private readonly onStep: (step: number) => void) {
        this.canvas.addEventListener("click", (event) => {
            const step = this.stepAt(event.offsetX);
            if (step > 0) this.onStep(step);
        });
        this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
        this.canvas.addEventListener("pointerleave", () => this.hide());
        new ResizeObserver(() => this.paint()).observe(this.root);
    }

    hide(): void {
        this.tip.hidden = true;
    }

    show(curves: readonly Curve[], steps: number, chosen: number, moments: readonly Moment[]): void {
        this.curves = curves;
        this.moments = moments.filter(({ at }) => at >= 0 && at <= 1);
        this.canvas.dataset.moments = JSON.stringify(this.moments);
        this.steps = steps;
        this.chosen = chosen;
        this.canvas.dataset.steps = String(steps);
        const [a, b] = curves.map(({ title, high }) => `${title}, up to ${bytes(largest(high))}`);
        this.canvas.setAttribute("aria-label", `${b === undefined ? a : `${a}; ${b}`}. ${steps > 0 ? `Step by step, ${counted(steps, "step")}${chosen > 0 ? `; step ${chosen} is selected` : ""}.` : "Each curve covers its whole recording, because not both recordings have steps."}`);
        this.paint();
    }

    private get width(): number {
        return Math.max(1, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
    }

    private stepAt(x: number): number {
        const at = Math.floor(((x - MARGIN.left) / this.width) * this.steps);
        return at >= 0 && at < this.steps ? at + 1 : 0;
    }

    private point(x: number, y: number): void {
        const share = (x - MARGIN.left) / this.width;
        this.tip.hidden = share < 0 || share >= 1 || this.curves.length === 0;
        if (this.tip.hidden) return;
        const values = this.curves.map(({ high }, i) => `${this.curves.length > 1 ? `${"AB"[i]} ` : ""}${bytes(high[Math.floor(share * high.length)] ?? 0)}`);
        const step = this.stepAt(x);
        this.tip.replaceChildren(el("b", {}, step > 0 ? `step ${count(step)}` : `${Math.floor(100 * share)}\u202f% of each`), ...values.map((value) => el("div", {}, value)), step > 0 ? el("div", { class: "quiet-text" }, "click to compare here") : "");
        this.tip.style.left = `${Math.min(x + 14, this.canvas.clientWidth - this.tip.offsetWidth - 4)}px`;
        this.tip.style.top = `${Math.max(0, Math.min(y + 12, this.canvas.clientHeight - this.tip.offsetHeight))}px`;
    }

    paint(): void {
        const { clientWidth: wide, clientHeight: tall } = this.canvas;
        if (wide === 0 || this.curves.length === 0) return;
        this.canvas.width = wide * devicePixelRatio;
        this.canvas.height = tall * devicePixelRatio;
        const context = this.canvas.getContext("2d")!;
        context.scale(devicePixelRatio, devicePixelRatio);
        context.font = "11px system-ui, sans-serif";
        const theme = themeOf(this.root);
        const height = tall - MARGIN.top - MARGIN.bottom;
        const top = 1.04 * Math.max(1, ...this.curves.map(({ high }) => largest(high)));
        const y = (value: number) => MARGIN.top + height - (height * value) / top;
        this.paintHeights(context, top, y, theme);
        if (this.steps > 0) this.paintSteps(context, height, theme);
        this.curves.forEach(({ high }, side) => this.paintCurve(context, high, side, y, theme));
        this.paintMoments(context, height, y, theme);
        this.paintNames(context, theme);
    }

    private paintHeights(context: CanvasRenderingContext2D, top: number, y: (value: number) => number, theme: Theme): void {
        context.textAlign = "right";
        for (const value of byteTicks(0, top, 3)) {
            const at = Math.round(y(value)) + 0.5;
            context.strokeStyle = theme.line;
            context.lineWidth = 1;
            context.beginPath();
            context.moveTo(MARGIN.left, at);
            context.lineTo(MARGIN.left + this.width, at);
            context.stroke();
            context.fillStyle = theme.quiet;
            context.fillText(tickBytes(value), MARGIN.left - 6, at + 4);
        }
    }

    private paintSteps(context: CanvasRenderingContext2D, height: number, theme: Theme): void {
        const pitch = this.width / this.steps;
        const every = Math.max(1, Math.ceil(STEP_PIXELS / pitch));
        if (this.chosen > 0) {
            context.fillStyle = theme.accent;
            context.globalAlpha = 0.14;
            context.fillRect(MARGIN.left + (this.chosen - 1) * pitch, MARGIN.top, Math.max(2, pitch), height);
            context.globalAlpha = 1;
        }
        context.textAlign = "center";
        for (let step = 0; step < this.steps; step++) {
            const middle = MARGIN.left + (step + 0.5) * pitch;
            const numbered = step % every === 0;
            context.fillStyle = step + 1 === this.chosen ? theme.accent : theme.quiet;
            if (numbered) context.fillText(count(step + 1), middle, MARGIN.top + height + 15);
            if (numbered && step > 0) context.fillRect(Math.round(middle - pitch / 2), MARGIN.top + height, 1, 4);
        }
        context.fillStyle = theme.quiet;
        context.textAlign = "right";
        context.fillText("step", MARGIN.left - 6, MARGIN.top + height + 15);
    }

    private paintCurve(context: CanvasRenderingContext2D, high: Numbers, side: number, y: (value: number) => number, theme: Theme): void {
        context.strokeStyle = side === 0 ? theme.allocated : theme.active;
        context.lineWidth = 1.6;
        context.beginPath();
        high.forEach((value, i) => context.lineTo(MARGIN.left + ((i + 0.5) * this.width) / high.length, y(value)));
        context.stroke();
    }

    // Draws both moments as flags with their letters on the curve.
    private paintMoments(context: CanvasRenderingContext2D, height: number, y: (value: number) => number, theme: Theme): void {
        context.font = "bold 11px system-ui, sans-serif";
        context.textAlign = "center";
        const near = this.moments.length === 2 && Math.abs(this.moments[0].at - this.moments[1].at) * this.width < 18;
        this.moments.forEach(({ letter, at, bytes: held }, i) => {
            const x = MARGIN.left + at * this.width;
            const colour = letter === "A" ? theme.allocated : theme.active;
            context.strokeStyle = context.fillStyle = colour;
            context.lineWidth = 1.5;
            context.beginPath();
            context.moveTo(x, MARGIN.top);
            context.lineTo(x, MARGIN.top + height);
            context.stroke();
            context.beginPath();
            context.arc(x, y(held), 3.5, 0, 7);
            context.fill();
            // Draw two flags that would overlap next to each other.
            const place = near ? Math.min(Math.max(x, MARGIN.left + 17), MARGIN.left + this.width - 17) + (i === 0 ? -9 : 9) : Math.min(Math.max(x, MARGIN.left + 8), MARGIN.left + this.width - 8);
            const middle = Math.round(place);
            context.fillRect(middle - 8, MARGIN.top, 16, 15);
            context.fillStyle = inkOn(parse(colour));
            context.fillText(letter, middle, MARGIN.top + 11);
        });
    }

    private paintNames(context: CanvasRenderingContext2D, theme: Theme): void {
        context.textAlign = "left";
        context.font = "12px system-ui, sans-serif";
        const room = this.width / 2 - 30;
        this.curves.forEach(({ title, high }, side) => {
            const left = MARGIN.left + (side * this.width) / 2;
            context.fillStyle = side === 0 ? theme.allocated : theme.active;
            context.fillRect(left, 6, 14, 3);
            context.fillStyle = theme.text;
            const most = this.width < NARROW ? "" : `, up to ${bytes(largest(high))}`;
            const text = (name: string) => `${this.curves.length > 1 ? `${"AB"[side]}: ` : ""}${name}${most}`;
            let length = title.length;
            while (length > 6 && context.measureText(text(`${title.slice(0, length)}\u2026`)).width > room) length--;
            context.fillText(text(length < title.length ? `${title.slice(0, length)}\u2026` : title), left + 20, 12);
        });
    }
}

const largest = (values: Numbers): number => {
    let most = 0;
    for (const value of values) if (value > most) most = value;
    return most;
};

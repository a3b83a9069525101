// The strip: totals of the whole history, the marks on it, and the window as a brush.
import { clear, el } from "./dom";
import { byteTicks, tickBytes, xTicks } from "./draw/axes";
import { Strip } from "./draw/strip";
import { bytes, count, counted, duration } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { askOnce } from "./once";
import { pinsHere } from "./pins";
import type { Numbers } from "./protocol";
import { clamped, moved, wheelFactor, zoomed } from "./span";
import type { State } from "./state";

type Mark = { kind: string; event: number; time?: number; name: string; end_event?: number; end_time?: number };
type Drag = { kind: "new" | "move" | "from" | "to"; start: number; from: number; to: number; moved: boolean };

const HEADROOM = 10; // pixels above the curve
const GRAB = 6; // pixels on either side of an edge
const MOST_SPANS = 2000;
const SAY_MS = 200; // pause before the text is updated

export class Minimap implements Panel {
    readonly root: HTMLElement;
    private readonly strip = new Strip({ role: "img" });
    private readonly canvas = this.strip.canvas;
    private readonly brush = el("div", { class: "brush" });
    private readonly handles: Record<"from" | "to", HTMLElement>;
    private readonly scale = el("div", { class: "strip-scale" });
    private readonly flags = el("div", { class: "strip-flags" });
    private readonly readout = el("div", { class: "readout", "aria-live": "polite" });
    private curve: Record<string, Numbers> | null = null;
    private marks: Mark[] = [];
    private asked = 0;
    private saying = 0;
    private pixels = 0; // requested
    private drag: Drag | null = null;

    constructor(private readonly frame: Frame) {
        this.handles = { from: this.handle("from", "Beginning of the window"), to: this.handle("to", "End of the window") };
        this.brush.append(this.handles.from, this.handles.to);
        this.scale.setAttribute("aria-hidden", "true"); // the canvas has a label
        this.root = el("div", { class: "minimap", title: "Drag to select a window, turn the wheel to zoom, double-click to show everything" }, this.canvas, this.brush, this.scale, this.flags, this.readout);
        this.root.addEventListener("pointerdown", (event) => this.press(event));
        this.root.addEventListener("pointermove", (event) => this.hover(event));
        this.root.addEventListener("pointerup", (event) => this.release(event));
        this.root.addEventListener("pointercancel", () => (this.drag = null));
        this.root.addEventListener("dblclick", () => frame.setWindow(0, frame.length()));
        this.root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        new ResizeObserver(() => {
            if (Math.round(this.root.clientWidth) !== this.pixels) void this.load();
        }).observe(this.root);
    }

    private handle(side: "from" | "to", label: string): HTMLElement {
        const handle = el("div", { class: `handle ${side}`, role: "slider", tabindex: 0, "aria-label": label });
        handle.addEventListener("keydown", (event) => {
            const step = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
            if (step === undefined) return;
            const span = this.frame.window();
            const by = (step * this.frame.length()) / 200;
            if (side === "from") this.frame.setWindow(Math.min(span.from + by, span.to), span.to);
            else this.frame.setWindow(span.from, Math.max(span.to + by, span.from));
            event.preventDefault();
            event.stopPropagation();
        });
        return handle;
    }

    update(state: State, changed: Changed): void {
        this.root.hidden = !this.frame.device();
        if (this.root.hidden) return;
        const asks: (keyof State)[] = ["rec", "device", "axis"];
        if (changed === null || asks.some((key) => changed.has(key))) void this.load();
        else if (changed.has("dark") || changed.has("event")) this.paint();
        if (changed === null || ["pins", "rec", "device", "axis"].some((key) => changed.has(key as keyof State))) void this.placePins();
        this.place(state);
    }

    private async load(): Promise<void> {
        const device = this.frame.device();
        const pixels = Math.round(this.root.clientWidth);
        if (!device || pixels < 1) return;
        this.pixels = pixels;
        const ticket = ++this.asked;
        const { rec, axis } = this.frame.store.state;
        const common = { rec, device: device.device }; // the same arguments as in marksOf(), to share the answer
        const asked = this.frame.engine.ask({ name: "curve", ...common, axis, pixels: Math.min(pixels, 4096) });
        const marks = askOnce<{ marks: Mark[] }>(this.frame, { name: "marks", ...common });
        const curve = await asked;
        if (ticket !== this.asked) return;
        this.curve = Object.fromEntries(["allocated_high", "active_high", "reserved_high"].map((name) => [name, curve.column(name)]));
        this.marks = [];
        this.paint(); // the marks are added when they are known
        this.place(this.frame.store.state);
        const known = (await marks).json.marks;
        if (ticket !== this.asked || known.length === 0) return;
        this.marks = known;
        this.paint();
    }

    private x(position: number): number {
        return (position / this.frame.length()) * this.root.clientWidth;
    }

    private position(event: MouseEvent): number {
        const box = this.root.getBoundingClientRect();
        return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * this.frame.length();
    }

    private paint(): void {
        const curve = this.curve;
        const { clientWidth: width, clientHeight: height } = this.root;
        if (!curve || width === 0) return;
        const style = getComputedStyle(this.root);
        const colour = (name: string) => style.getPropertyValue(name);
        let top = 1;
        for (const column of Object.values(curve)) for (const value of column) if (value > top) top = value;
        this.drawScale(top, width, height);
        this.strip.fill(0, 0, width, height, devicePixelRatio, (context) => this.paintCurves(context, curve, top, width, height, colour));
        this.canvas.setAttribute("aria-label", `Memory over the whole history, up to ${bytes(top)}; ${counted(this.marks.length, "mark")}`);
    }

    private paintCurves(context: OffscreenCanvasRenderingContext2D, curve: Record<string, Numbers>, top: number, width: number, height: number, colour: (name: string) => string): void {
        const room = height - HEADROOM;
        for (const [name, fill] of [["reserved_high", "--reserved"], ["active_high", "--active"], ["allocated_high", "--allocated"]]) {
            const values = curve[name];
            context.fillStyle = colour(fill);
            context.beginPath();
            context.moveTo(0, height);
            for (let i = 0; i < values.length; i++) {
                const y = height - (Math.max(0, values[i]) / top) * room;
                context.lineTo((i / values.length) * width, y);
                context.lineTo(((i + 1) / values.length) * width, y);
            }
            context.lineTo(width, height);
            context.fill();
        }
        this.paintMarks(context, height, colour);
    }

    // Draws the scales: bytes on the left, position below; few ticks, each with its number on a background.
    private drawScale(top: number, width: number, height: number): void {
        clear(this.scale);
        const room = height - HEADROOM;
        for (const value of byteTicks(0, top, 2).filter((tick) => tick > 0)) {
            const tick = el("span", { class: "tick height" }, tickBytes(value));
            tick.style.bottom = `${Math.min((value / top) * room, height - 15)}px`;
            this.scale.append(tick);
        }
        const length = this.frame.length();
        if (this.frame.device()?.events === 0) return;
        for (const { at, text } of xTicks(0, length, this.frame.store.state.axis === "time", width / 130)) {
            const share = at / length;
            if (share < 0.08 || share > 0.96) continue;
            const tick = el("span", { class: "tick" }, text);
            tick.style.left = `${100 * share}%`;
            this.scale.append(tick);
        }
    }

    private paintMarks(context: OffscreenCanvasRenderingContext2D, height: number, colour: (name: string) => string): void {
        const time = this.frame.store.state.axis === "time";
        context.fillStyle = colour("--accent");
        context.globalAlpha = 0.55;
        for (const mark of this.marks.slice(0, MOST_SPANS)) {
            const from = time ? mark.time : mark.event;
            const to = time ? mark.end_time : mark.end_event;
            if (from === undefined || mark.kind === "oom") continue;
            context.fillRect(this.x(from), 0, to === undefined ? 1 : Math.max(1, this.x(to) - this.x(from) - 1), 4);
        }
        context.globalAlpha = 1;
        context.fillStyle = colour("--alarm");
        for (const mark of this.marks) {
            const at = time ? mark.time : mark.event;
            if (mark.kind === "oom" && at !== undefined) context.fillRect(this.x(at) - 1, 0, 2, height);
        }
    }

    // Places flags with their notes over the curve.
    private async placePins(): Promise<void> {
        const { rec, axis } = this.frame.store.state;
        const device = this.frame.device();
        const flags = await Promise.all(
            pinsHere(this.frame).map(async ({ event, note }) => {
                const at = axis === "time" && device?.has_times ? (await askOnce<{ from: number }>(this.frame, { name: "translate", rec, device: device.device, axis: "event", from: Math.max(0, event), to: Math.max(0, event) + 1 })).json.from : event;
                const flag = el("span", { class: "pin-flag", title: `event ${count(event)}${note ? `: ${note}` : ""}` });
                flag.style.left = `${(100 * Math.max(0, at)) / this.frame.length()}%`;
                return flag;
            }),
        );
        this.flags.replaceChildren(...flags);
    }

    private place(state: State): void {
        const length = this.frame.length();
        const { from, to } = this.frame.window();
        const whole = from <= 0 && to >= length;
        this.brush.classList.toggle("whole", whole);
        this.brush.style.left = `${(100 * from) / length}%`;
        this.brush.style.width = `${(100 * (to - from)) / length}%`;
        clearTimeout(this.saying);
        this.saying = window.setTimeout(() => this.sayWindow(state), SAY_MS);
    }

    // Updates the window's text and announcement, once it rests.
    private sayWindow(state: State): void {
        const length = this.frame.length();
        const { from, to } = this.frame.window();
        const whole = from <= 0 && to >= length;
        const text = (value: number) => (state.axis === "time" ? duration(value) : `event ${count(value)}`);
        for (const [side, value] of [["from", from], ["to", to]] as const) {
            this.handles[side].setAttribute("aria-valuemin", "0");
            this.handles[side].setAttribute("aria-valuemax", String(Math.round(length)));
            this.handles[side].setAttribute("aria-valuenow", String(Math.round(value)));
            this.handles[side].setAttribute("aria-valuetext", text(value));
        }
        clear(this.readout);
        const size = state.axis === "time" ? duration(to - from) : counted(to - from, "event");
        if (this.frame.device()?.events === 0) this.readout.append("no events");
        else this.readout.append(whole ? `all ${size}` : `${text(from)} \u2013 ${text(to)} \u00b7 ${size}`);
    }

    private kindAt(event: PointerEvent): Drag["kind"] {
        const box = this.root.getBoundingClientRect();
        const { from, to } = this.frame.window();
        const x = event.clientX - box.left;
        const whole = from <= 0 && to >= this.frame.length();
        if (Math.abs(x - this.x(from)) <= GRAB) return "from";
        if (Math.abs(x - this.x(to)) <= GRAB) return "to";
        return !whole && x > this.x(from) && x < this.x(to) ? "move" : "new";
    }

    private press(event: PointerEvent): void {
        if (event.button !== 0) return;
        this.drag = { kind: this.kindAt(event), start: this.position(event), ...this.frame.window(), moved: false };
        this.root.setPointerCapture(event.pointerId);
    }

    private hover(event: PointerEvent): void {
        const drag = this.drag;
        if (!drag) {
            this.root.style.cursor = { new: "crosshair", move: "grab", from: "ew-resize", to: "ew-resize" }[this.kindAt(event)];
            return;
        }
        const at = this.position(event);
        const length = this.frame.length();
        if (Math.abs(this.x(at) - this.x(drag.start)) > 3) drag.moved = true;
        if (!drag.moved) return;
        const span = {
            new: { from: Math.min(at, drag.start), to: Math.max(at, drag.start) },
            move: moved(drag, length, at - drag.start),
            from: { from: Math.min(at, drag.to), to: Math.max(at, drag.to) },
            to: { from: Math.min(at, drag.from), to: Math.max(at, drag.from) },
        }[drag.kind];
        const { from, to } = clamped(span, length);
        this.frame.setWindow(from, to);
    }

    // A click outside the window moves it there.
    private release(event: PointerEvent): void {
        const drag = this.drag;
        this.drag = null;
        if (!drag || drag.moved || drag.kind !== "new") return;
        const { from, to } = moved(drag, this.frame.length(), this.position(event) - (drag.from + drag.to) / 2);
        this.frame.setWindow(from, to);
    }

    private wheel(event: WheelEvent): void {
        event.preventDefault();
        const { from, to } = zoomed(this.frame.window(), this.frame.length(), this.position(event), wheelFactor(event));
        this.frame.setWindow(from, to);
    }
}

// Paints a chart's picture. Without a GPU the painting worker makes a bitmap, slightly larger than the visible part, which the compositor
// moves and stretches until a finer one is ready. With a GPU, WebGL2 draws every frame.
import type { Box } from "./axes";
import { parse } from "./colour";
import type { Rgb } from "./palette";
import type { Order, Painted } from "./painting";
import type { Picture } from "./picture";
import type { Emphasis } from "./quads";
import { hasGpu, WebGlPainter } from "./webgl";

// The visible part of the window and the height, and its box.
export type Shown = { from: number; to: number; low: number; high: number; box: Box; ratio: number };

export interface Painter {
    readonly kind: "webgl2" | "canvas2d";
    readonly whole: boolean; // whether it also draws the curves and the layer below the shapes
    // Loads a picture (null: keeps the current one) with an emphasis. Resolves when place() shows it. Only the latest call counts.
    load(picture: Picture | null, shown: Shown, emphasis: Emphasis, ground: Rgb): Promise<boolean>;
    place(shown: Shown, emphasis: Emphasis, ground: Rgb): void;
    clear(): void;
}

class Studio {
    private readonly waiting = new Map<number, (bitmap: ImageBitmap | null) => void>();
    private next = 1;
    private readonly worker: Worker;

    constructor() {
        const code = document.getElementById("painting")?.textContent ?? "";
        this.worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
        this.worker.onmessage = ({ data: { id, bitmap } }: MessageEvent<Painted>) => {
            this.waiting.get(id)?.(bitmap);
            this.waiting.delete(id);
        };
        this.worker.onerror = () => {
            for (const resolve of this.waiting.values()) resolve(null);
            this.waiting.clear();
        };
    }

    paint(order: Omit<Order, "id">): Promise<ImageBitmap | null> {
        const id = this.next++;
        this.worker.postMessage({ ...order, id } satisfies Order);
        return new Promise((resolve) => this.waiting.set(id, resolve));
    }
}

let studio: Studio | undefined;
let charts = 0;

const MOST_HEIGHTS = 2; // maximum height of a bitmap, in boxes: the visible height changes with the window
const MOST_PIXELS = 8192; // per side: the limit of browsers

class WorkerPainter implements Painter {
    readonly kind = "canvas2d";
    readonly whole = true;
    private readonly chart = charts++;
    private readonly context: ImageBitmapRenderingContext;
    private latest = 0;
    private picture: Picture | null = null;
    private held: { from: number; to: number; low: number; high: number } | null = null; // the part that the bitmap shows
    private styled = "";

    constructor(private readonly canvas: HTMLCanvasElement) {
        this.context = canvas.getContext("bitmaprenderer")!;
        canvas.hidden = true;
        studio ??= new Studio();
    }

    async load(picture: Picture | null, shown: Shown, emphasis: Emphasis, ground: Rgb): Promise<boolean> {
        const ticket = ++this.latest;
        const about = picture ?? this.picture;
        if (!about) return false;
        const { box, ratio } = shown;
        const across = (box.width * ratio) / (shown.to - shown.from);
        const up = (box.height * ratio) / (shown.high - shown.low);
        const width = Math.min(MOST_PIXELS, Math.max(1, Math.round((about.to - about.from) * across)));
        // Start half a box below the visible part, so that vertical moves have something to show.
        const low = Math.max(about.low, shown.low - (0.5 * box.height * ratio) / up);
        const rows = (MOST_HEIGHTS * box.height * ratio) | 0;
        const height = Math.min(MOST_PIXELS, rows, Math.max(1, Math.ceil((Math.max(about.high, shown.high) - low) * up)));
        const high = low + height / up;
        const ruleColours = picture ? picture.rules.map(({ colour }) => parse(colour)) : [];
        if (picture) this.rules = ruleColours;
        const bitmap = await studio!.paint({ chart: this.chart, picture, low, high, width, height, ratio, emphasis, ground, ruleColours: this.rules });
        if (ticket !== this.latest || !bitmap) {
            bitmap?.close();
            return false;
        }
        this.picture = about;
        this.held = { from: about.from, to: about.to, low, high };
        [this.canvas.width, this.canvas.height] = [width, height];
        this.context.transferFromImageBitmap(bitmap);
        this.canvas.hidden = false;
        this.canvas.style.width = `${width / ratio}px`;
        this.canvas.style.height = `${height / ratio}px`;
        return true;
    }
    private rules: Rgb[] = [];

    place({ from, to, low, high, box, ratio }: Shown): void {
        const { held } = this;
        if (!held) return;
        const across = box.width / (to - from);
        const up = box.height / (high - low);
        const [x, y] = [(held.from - from) * across, (high - held.high) * up];
        const [wide, tall] = [((held.to - held.from) * across * ratio) / this.canvas.width, ((held.high - held.low) * up * ratio) / this.canvas.height];
        // At rest, bitmap pixels equal screen pixels, so nothing is smoothed.
        const near = (value: number) => (Math.abs(value - 1) * Math.max(this.canvas.width, this.canvas.height) < 0.75 ? 1 : value);
        const whole = (value: number) => (Math.abs(value * ratio - Math.round(value * ratio)) < 0.26 ? Math.round(value * ratio) / ratio : value);
        const style = `translate(${whole(x)}px, ${whole(y)}px) scale(${near(wide)}, ${near(tall)})`;
        if (style !== this.styled) this.canvas.style.transform = this.styled = style;
    }

    clear(): void {
        this.latest++;
        this.held = this.picture = null;
        this.canvas.hidden = true;
    }
}

// `?canvas2d` and `?webgl2` in the address choose the painter.
export function painterFor(canvas: HTMLCanvasElement): Painter {
    const wanted = new URLSearchParams(location.search);
    const webgl = wanted.has("webgl2") || (!wanted.has("canvas2d") && hasGpu());
    return (webgl ? WebGlPainter.create(canvas) : null) ?? new WorkerPainter(canvas);
}

// A canvas that is drawn off-screen and transferred as a bitmap. An unchanged strip costs nothing per frame, unlike a canvas that is drawn
// on.
import { el } from "../dom";

export class Strip {
    readonly canvas: HTMLCanvasElement;
    private readonly shown: ImageBitmapRenderingContext;
    private readonly context: OffscreenCanvasRenderingContext2D;
    private at = "";

    constructor(attributes: Record<string, string>) {
        this.canvas = el("canvas", attributes);
        this.shown = this.canvas.getContext("bitmaprenderer")!;
        this.context = new OffscreenCanvas(1, 1).getContext("2d")!;
    }

    // `draw` uses page pixels, relative to the top left of the strip's container.
    fill(left: number, top: number, width: number, height: number, ratio: number, draw: (context: OffscreenCanvasRenderingContext2D) => void): void {
        const { canvas, context } = this;
        const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
        const at = `${left} ${top} ${w} ${h} ${ratio}`;
        if (at !== this.at) {
            this.at = at;
            [canvas.width, canvas.height] = [context.canvas.width, context.canvas.height] = [w, h];
            [canvas.style.left, canvas.style.top, canvas.style.width, canvas.style.height] = [left, top, width, height].map((value) => `${value}px`);
        }
        context.setTransform(ratio, 0, 0, ratio, -left * ratio, -top * ratio);
        context.clearRect(left, top, width, height);
        draw(context);
        this.shown.transferFromImageBitmap(context.canvas.transferToImageBitmap());
    }
}

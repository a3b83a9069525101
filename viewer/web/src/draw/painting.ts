// The painting worker: makes a bitmap of a chart's picture, so that the page's own thread paints no shapes. Pictures are stored by their
// chart's number, so a new emphasis or part of the same picture need not send it.
import { curvePoints, CURVE_WIDTH, shapesOf, type Picture } from "./picture";
import type { Rgb } from "./palette";
import type { Emphasis, Placing, QuadColumns } from "./quads";
import { rasterQuads, rasterRule, rasterShades, type Bitmap } from "./raster";

// Paint the part [low, high] of the height, over the whole window, on the given device pixels.
export type Order = {
    id: number;
    chart: number;
    picture: Picture | null; // null: the chart's current one
    low: number;
    high: number;
    width: number;
    height: number;
    ratio: number;
    emphasis: Emphasis;
    ground: Rgb;
    ruleColours: Rgb[];
};
export type Painted = { id: number; bitmap: ImageBitmap };

type Kept = { picture: Picture; shapes: QuadColumns };

const kept = new Map<number, Kept>();
const scope = self as unknown as { onmessage: (event: MessageEvent<Order>) => void; postMessage(message: Painted, transfer: Transferable[]): void };

function paint({ picture, shapes }: Kept, order: Order): ImageBitmap {
    const { low, high, width, height, ratio, emphasis, ground } = order;
    const up = height / (high - low);
    const y = (value: number) => height - (value - low) * up;
    const place: Placing = { x: 0, width, y: y(picture.high), height: (picture.high - picture.low) * up };
    const bitmap: Bitmap = { pixels: new Uint32Array(width * height), width, height };
    if (picture.ground) rasterQuads(bitmap, picture.ground, place, null, ground, ratio);
    picture.rules.forEach((rule, i) => rasterRule(bitmap, rule, order.ruleColours[i], y(rule.at), ratio));
    if (picture.shades) rasterShades(bitmap, picture.shades, y(picture.shades.high), y(picture.shades.low));
    rasterQuads(bitmap, shapes, place, emphasis, ground, ratio);
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d")!;
    context.putImageData(new ImageData(new Uint8ClampedArray(bitmap.pixels.buffer), width, height), 0, 0);
    for (const curve of picture.curves) {
        const points = curvePoints(curve, 0, width, (at) => at, y);
        context.strokeStyle = curve.colour;
        context.lineWidth = CURVE_WIDTH * ratio;
        context.setLineDash((curve.dash ?? []).map((length) => length * ratio));
        context.beginPath();
        for (let i = 0; i < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
        context.stroke();
    }
    return canvas.transferToImageBitmap();
}

scope.onmessage = ({ data: order }) => {
    if (order.picture) kept.set(order.chart, { picture: order.picture, shapes: shapesOf(order.picture) });
    const bitmap = paint(kept.get(order.chart)!, order);
    scope.postMessage({ id: order.id, bitmap }, [bitmap]);
};

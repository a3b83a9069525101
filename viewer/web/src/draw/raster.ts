// Rasterizes rectangles without a canvas. A pixel belongs to the shape that covers its centre, so that adjacent shapes leave no seam.
// Follows the rules of the shaders in webgl.ts. Runs in the painting worker.
import { blend, type Rgb } from "./palette";
import { EDGE_LEFT, EDGE_RIGHT, FADED, fades, HATCHED, NO_GROUP, type Emphasis, type Placing, type QuadColumns } from "./quads";
import type { Rule, Shades } from "./picture";

export type Bitmap = { pixels: Uint32Array<ArrayBuffer>; width: number; height: number };

const EDGE_PART = 0.55; // how much of the ground is mixed into an edge
const HATCH_PART = 0.6;
const HATCH_PERIOD = 7; // in page pixels
const HATCH_WIDTH = 2.2;
const LEAST_EDGED = 4; // smaller ones have no edges

// Packs a colour in the byte order of ImageData, which is the same on every machine with WebAssembly (little-endian).
const packed = (r: number, g: number, b: number): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const packedRgb = (colour: Rgb): number => packed(colour[0], colour[1], colour[2]);

function fill({ pixels, width }: Bitmap, x0: number, x1: number, y0: number, y1: number, colour: number): void {
    if (x1 - x0 === 1) {
        for (let at = y0 * width + x0, end = y1 * width; at < end; at += width) pixels[at] = colour;
        return;
    }
    for (let y = y0; y < y1; y++) pixels.fill(colour, y * width + x0, y * width + x1);
}

function hatch({ pixels, width }: Bitmap, x0: number, x1: number, y0: number, y1: number, colour: number, ratio: number): void {
    const [period, line] = [HATCH_PERIOD * ratio, HATCH_WIDTH * ratio];
    for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) if ((x + y) % period < line) pixels[y * width + x] = colour;
}

// Returns the first pixel whose centre is at or after a position, clamped to [0, most].
const first = (at: number, most: number): number => Math.min(most, Math.max(0, Math.ceil(at - 0.5)));

export function rasterQuads(bitmap: Bitmap, quads: QuadColumns, place: Placing, emphasis: Emphasis | null, ground: Rgb, ratio: number): void {
    const { width, height } = bitmap;
    const { rect, colour, info, count } = quads;
    const least = LEAST_EDGED * ratio;
    const line = Math.max(1, Math.round(0.8 * ratio));
    for (let i = 0; i < count; i++) {
        const left = place.x + rect[4 * i] * place.width;
        const right = Math.max(place.x + rect[4 * i + 1] * place.width, left + ratio);
        const top = place.y + (1 - rect[4 * i + 3]) * place.height;
        const bottom = place.y + (1 - rect[4 * i + 2]) * place.height;
        const [x0, x1] = [first(left, width), first(right, width)];
        const [y0, y1] = [first(top, height), first(bottom, height)];
        if (x0 >= x1 || y0 >= y1) continue;
        const bits = info[i];
        let [r, g, b] = [colour[4 * i], colour[4 * i + 1], colour[4 * i + 2]];
        if (emphasis && fades(bits, emphasis)) [r, g, b] = blend([r, g, b], emphasis.faint, FADED);
        fill(bitmap, x0, x1, y0, y1, packed(r, g, b));
        if ((bits & HATCHED) !== 0) hatch(bitmap, x0, x1, y0, y1, packedRgb(blend([r, g, b], ground, HATCH_PART)), ratio);
        if (bits >>> 8 === NO_GROUP || bottom - top <= least) continue;
        const edge = packedRgb(blend([r, g, b], ground, EDGE_PART));
        fill(bitmap, x0, x1, y0, Math.min(y1, y0 + line), edge);
        if (right - left <= least) continue;
        if ((bits & EDGE_LEFT) !== 0 && left >= 0) fill(bitmap, x0, Math.min(x1, x0 + line), y0, y1, edge);
        if ((bits & EDGE_RIGHT) !== 0 && right <= width) fill(bitmap, Math.max(x0, x1 - line), x1, y0, y1, edge);
    }
}

export function rasterRule(bitmap: Bitmap, rule: Rule, colour: Rgb, y: number, ratio: number): void {
    const row = Math.floor(y);
    if (row < 0 || row >= bitmap.height) return;
    const [on, off] = rule.dash ? [rule.dash[0] * ratio, rule.dash[1] * ratio] : [bitmap.width, 0];
    for (let x = 0; x < bitmap.width; x += on + off) fill(bitmap, Math.round(x), Math.min(bitmap.width, Math.round(x + on)), row, row + 1, packedRgb(colour));
}

// Draws the nearest pixel of the shades over the existing ones.
export function rasterShades({ pixels, width, height }: Bitmap, shades: Shades, top: number, bottom: number): void {
    const [y0, y1] = [first(top, height), first(bottom, height)];
    const own = shades.pixels;
    for (let y = y0; y < y1; y++) {
        const row = Math.min(shades.height - 1, Math.floor(((y + 0.5 - top) / (bottom - top)) * shades.height)) * shades.width;
        for (let x = 0; x < width; x++) {
            const at = 4 * (row + Math.floor(((x + 0.5) / width) * shades.width));
            const share = own[at + 3] / 255;
            if (share === 0) continue;
            const under = pixels[y * width + x];
            const mix = (over: number, below: number) => Math.round(below + (over - below) * share);
            pixels[y * width + x] =
                under >>> 24 === 0
                    ? ((own[at + 3] << 24) | (own[at + 2] << 16) | (own[at + 1] << 8) | own[at]) >>> 0
                    : packed(mix(own[at], under & 255), mix(own[at + 1], (under >>> 8) & 255), mix(own[at + 2], (under >>> 16) & 255));
        }
    }
}

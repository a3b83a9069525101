// A chart's picture as data. The painting worker turns it into pixels; a pen draws the parts that WebGL2 does not, and files.
import type { Numbers } from "../protocol";
import type { Box } from "./axes";
import { drawQuads } from "./vector";
import type { Pen } from "./pen";
import type { Rgb } from "./palette";
import type { Emphasis, Placing, QuadColumns } from "./quads";
import { quadsOf, type Stack } from "./shapes";

export type Curve = { name: string; colour: string; values: Numbers; dash?: number[] }; // one value per equal part of the window
export type Rule = { at: number; colour: string; width: number; dash?: number[] }; // a horizontal line through the whole window
export type Shades = { pixels: Uint8ClampedArray<ArrayBuffer>; width: number; height: number; low: number; high: number }; // covers the whole window

// Drawn in this order: quads, rules, shades, curves.
export type Picture = {
    from: number;
    to: number;
    low: number;
    high: number;
    ground: QuadColumns | null;
    rules: Rule[];
    shades: Shades | null;
    shapes: Stack | QuadColumns;
    curves: Curve[];
};

export const shapesOf = ({ shapes }: Picture): QuadColumns => ("rests" in shapes ? quadsOf(shapes) : shapes);

export const CURVE_WIDTH = 1.4;

// Returns the corners of a curve as x0, y0, x1, y1, ...
export function curvePoints({ values }: Curve, from: number, to: number, x: (position: number) => number, y: (value: number) => number): Float64Array {
    const points = new Float64Array(4 * values.length);
    const part = (to - from) / values.length;
    for (let i = 0; i < values.length; i++) {
        const at = y(values[i]);
        points[4 * i] = x(from + part * i);
        points[4 * i + 1] = at;
        points[4 * i + 2] = x(from + part * (i + 1));
        points[4 * i + 3] = at;
    }
    return points;
}

function shadesCanvas({ pixels, width, height }: Shades): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    canvas.getContext("2d")!.putImageData(new ImageData(pixels, width, height), 0, 0);
    return canvas;
}

type Place = { x: (position: number) => number; y: (value: number) => number; placing: Placing; box: Box };

// Draws the layer below the shapes.
export function drawUnder(pen: Pen, picture: Picture, { x, y, placing, box }: Place, ground: Rgb): void {
    if (picture.ground) drawQuads(pen, picture.ground, box.left + box.width, placing, null, ground);
    for (const { at, colour, width, dash } of picture.rules) pen.line([box.left, y(at), box.left + box.width, y(at)], colour, width, dash);
    const { shades } = picture;
    if (shades) pen.image(shadesCanvas(shades), x(picture.from), y(shades.high), x(picture.to) - x(picture.from), y(shades.low) - y(shades.high));
}

export function drawShapes(pen: Pen, picture: Picture, { placing, box }: Place, emphasis: Emphasis, ground: Rgb): void {
    drawQuads(pen, shapesOf(picture), box.left + box.width, placing, emphasis, ground);
}

export function drawCurves(pen: Pen, picture: Picture, { x, y }: Place): void {
    for (const curve of picture.curves) pen.line(curvePoints(curve, picture.from, picture.to, x, y), curve.colour, CURVE_WIDTH, curve.dash);
}

// Draws quads one by one with a pen: for files, and for the layer below shapes that WebGL2 draws.
import { blend, css, type Rgb } from "./palette";
import type { Pen } from "./pen";
import { EDGE_LEFT, EDGE_RIGHT, fades, FADED, HATCHED, NO_GROUP, type Emphasis, type Placing, type QuadColumns } from "./quads";

function hatch(pen: Pen, x0: number, y0: number, x1: number, y1: number, colour: string): void {
    const height = y1 - y0;
    pen.clip(x0, y0, x1 - x0, height, () => {
        for (let x = x0 - height; x < x1; x += 7) pen.line([x, y1, x + height, y0], colour, 1.5);
    });
}

export function drawQuads(pen: Pen, quads: QuadColumns, width: number, placing: Placing, emphasis: Emphasis | null, ground: Rgb): void {
    for (let i = 0; i < quads.count; i++) {
        const [u0, u1, v0, v1] = quads.rect.subarray(4 * i, 4 * i + 4);
        let x0 = placing.x + u0 * placing.width;
        let x1 = placing.x + u1 * placing.width;
        if (x1 < 0 || x0 > width) continue;
        if (x1 - x0 < 1) x1 = x0 + 1;
        x0 = Math.max(x0, -2);
        x1 = Math.min(x1, width + 2);
        const y0 = placing.y + placing.height - v1 * placing.height;
        const y1 = placing.y + placing.height - v0 * placing.height;
        const info = quads.info[i];
        let colour: Rgb = [quads.colour[4 * i], quads.colour[4 * i + 1], quads.colour[4 * i + 2]];
        if (emphasis && fades(info, emphasis)) colour = blend(colour, emphasis.faint, FADED);
        pen.rect(x0, y0, x1 - x0, y1 - y0, css(colour));
        if ((info & HATCHED) !== 0 && x1 - x0 > 4 && y1 - y0 > 4) hatch(pen, x0, y0, x1, y1, css(ground, 0.6));
        if (info >>> 8 === NO_GROUP || y1 - y0 < 4) continue;
        const edge = css(ground, 0.55);
        pen.rect(x0, y0, x1 - x0, 0.8, edge);
        if ((info & EDGE_LEFT) !== 0 && x1 - x0 > 4) pen.rect(x0, y0, 0.8, y1 - y0, edge);
        if ((info & EDGE_RIGHT) !== 0 && x1 - x0 > 4) pen.rect(x1 - 0.8, y0, 0.8, y1 - y0, edge);
    }
}

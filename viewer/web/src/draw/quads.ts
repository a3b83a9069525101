// Columns of thousands of rectangles for a painter. Positions run from 0 to 1 over the requested window and height, so that moving and
// zooming need no new ones.
import type { Rgb } from "./palette";

export const EDGE_LEFT = 1;
export const EDGE_RIGHT = 2;
export const HATCHED = 4;
export const MATCHED = 8;
export const NO_GROUP = 0xffff;

export class Quads {
    rect = new Float32Array(4096); // x0, x1, y0, y1 of each
    colour = new Uint8Array(4096); // r, g, b, 255 of each
    info = new Uint32Array(1024); // the kind in the low 8 bits, the group above them
    count = 0;

    add(x0: number, x1: number, y0: number, y1: number, [r, g, b]: Rgb, kind: number, group: number): void {
        if (this.count === this.info.length) this.grow();
        const i = this.count++;
        this.rect[4 * i] = x0;
        this.rect[4 * i + 1] = x1;
        this.rect[4 * i + 2] = y0;
        this.rect[4 * i + 3] = y1;
        this.colour[4 * i] = r;
        this.colour[4 * i + 1] = g;
        this.colour[4 * i + 2] = b;
        this.colour[4 * i + 3] = 255;
        this.info[i] = kind | (group << 8);
    }

    private grow(): void {
        const wider = <T extends Float32Array | Uint8Array | Uint32Array>(from: T, to: T): T => {
            to.set(from as never);
            return to;
        };
        this.rect = wider(this.rect, new Float32Array(2 * this.rect.length));
        this.colour = wider(this.colour, new Uint8Array(2 * this.colour.length));
        this.info = wider(this.info, new Uint32Array(2 * this.info.length));
    }
}

// Converts quads to pixels: x = offset + scale * position, from the left and from the top.
export type Placing = { x: number; width: number; y: number; height: number };

// The faded shapes: all outside a group, and all that the search did not find.
export type Emphasis = { group: number; matches: boolean; faint: Rgb }; // faint: the colour that others fade to, distinct from free memory and from the ground

export const FADED = 0.82; // share of fading

export function fades(info: number, emphasis: Emphasis): boolean {
    return (emphasis.group >= 0 && info >>> 8 !== emphasis.group) || (emphasis.matches && (info & MATCHED) === 0);
}

// The members of Quads in a message to the painting worker.
export type QuadColumns = Pick<Quads, "rect" | "colour" | "info" | "count">;

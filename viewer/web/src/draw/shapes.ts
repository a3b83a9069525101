// Converts the stacked shapes of an answer to rectangles. Uses no DOM, because the painting worker uses it too.
import type { Numbers } from "../protocol";
import { varied, type Rgb } from "./palette";
import { EDGE_LEFT, EDGE_RIGHT, HATCHED, MATCHED, NO_GROUP, Quads } from "./quads";

const BORN_EARLIER = 4;
const ENDS_LATER = 8;

// The band between the shapes and the total, for allocations without a shape of their own. Bytes are multiplied by `scale` and start at
// `base`.
export type Rest = { drawn: Numbers; total: Numbers; base: number; scale: number };

// The columns are those of the queries `timeline` and `segments`.
export type Stack = {
    from: number;
    to: number;
    top: number; // bytes represented by the whole height
    columns: { row: Numbers; flags: Numbers; bytes: Numbers; end: Numbers; group: Numbers; first_step: Numbers; position: Numbers; base: Numbers };
    requested: Numbers | null; // where the hatching of a shape begins: free requested but not completed
    matched: Uint8Array | null; // 1: found by the search; null: no search
    colours: Rgb[]; // by group
    rests: Rest[];
    restColour: Rgb;
};

function addRest(quads: Quads, { drawn, total, base, scale }: Rest, top: number, colour: Rgb): void {
    const pixels = drawn.length;
    const up = (value: number) => (base + value * scale) / top;
    for (let begin = 0; begin < pixels; ) {
        let end = begin + 1;
        while (end < pixels && drawn[end] === drawn[begin] && total[end] === total[begin]) end++;
        if (total[begin] > drawn[begin]) quads.add(begin / pixels, end / pixels, up(drawn[begin]), up(total[begin]), colour, 0, NO_GROUP);
        begin = end;
    }
}

function addShape(quads: Quads, stack: Stack, i: number, colour: Rgb): void {
    const { first_step, position, base, bytes, end, flags, group } = stack.columns;
    const across = (at: number) => (at - stack.from) / (stack.to - stack.from);
    const matched = stack.matched?.[i] ? MATCHED : 0;
    const requested = stack.requested ? stack.requested[i] : Infinity;
    for (let s = first_step[i]; s < first_step[i + 1]; s++) {
        const last = s + 1 === first_step[i + 1];
        const left = position[s];
        const right = last ? end[i] : position[s + 1];
        let kind = matched;
        if (s === first_step[i] && (flags[i] & BORN_EARLIER) === 0) kind |= EDGE_LEFT;
        if (last && (flags[i] & ENDS_LATER) === 0) kind |= EDGE_RIGHT;
        const low = base[s] / stack.top;
        const high = (base[s] + bytes[i]) / stack.top;
        if (left < requested) quads.add(across(left), across(Math.min(right, requested)), low, high, colour, kind, group[i]);
        if (right > requested) quads.add(across(Math.max(left, requested)), across(right), low, high, colour, kind | HATCHED, group[i]);
    }
}

export function quadsOf(stack: Stack): Quads {
    const quads = new Quads();
    const { row, group } = stack.columns;
    for (const rest of stack.rests) addRest(quads, rest, stack.top, stack.restColour);
    for (let i = 0; i < row.length; i++) addShape(quads, stack, i, varied(stack.colours[group[i]], row[i]));
    return quads;
}

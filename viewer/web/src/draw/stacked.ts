// Answers with stacked shapes (`timeline` and `segments`) as scenes of a chart.
import type { App } from "../app";
import { bytes, count, counted } from "../format";
import type { Answer, Numbers } from "../protocol";
import type { Hit, Line, Scene, Source, Wanted } from "./chart";
import { colourOf, varied, type Rgb, type Theme } from "./colour";
import { EDGE_LEFT, EDGE_RIGHT, HATCHED, MATCHED, NO_GROUP, Quads } from "./quads";
import { detailsFrom, shortened } from "./tips";

export type StackedJson = { from: number; to: number; allocations: number; top_bytes: number; groups: string[]; event_position?: number };

const BORN_EARLIER = 4;
const ENDS_LATER = 8;
const GIVEN_BACK = 0xffffffff; // the row of what was given back before the recording

export type Columns = { [name: string]: Numbers };
export type Given = { from: number; to: number; top: number; total: Numbers; json: StackedJson; columns: Columns; requested: Numbers | null; matched: (i: number) => boolean };

// The band of what is drawn in no shape of its own: between the shapes and the total.
function addRest(quads: Quads, given: Given, theme: Theme): void {
    const { drawn } = given.columns;
    const pixels = drawn.length;
    for (let begin = 0; begin < pixels; ) {
        let end = begin + 1;
        while (end < pixels && drawn[end] === drawn[begin] && given.total[end] === given.total[begin]) end++;
        if (given.total[begin] > drawn[begin]) quads.add(begin / pixels, end / pixels, drawn[begin] / given.top, given.total[begin] / given.top, theme.rest, 0, NO_GROUP);
        begin = end;
    }
}

export function addShape(quads: Quads, given: Given, i: number, colour: Rgb): void {
    const { first_step, position, base, bytes, end, flags, group } = given.columns;
    const across = (at: number) => (at - given.from) / (given.to - given.from);
    const matched = given.matched(i) ? MATCHED : 0;
    const requested = given.requested ? given.requested[i] : Infinity;
    for (let s = first_step[i]; s < first_step[i + 1]; s++) {
        const last = s + 1 === first_step[i + 1];
        const [left, right] = [position[s], last ? end[i] : position[s + 1]];
        let kind = matched;
        if (s === first_step[i] && (flags[i] & BORN_EARLIER) === 0) kind |= EDGE_LEFT;
        if (last && (flags[i] & ENDS_LATER) === 0) kind |= EDGE_RIGHT;
        const [low, high] = [base[s] / given.top, (base[s] + bytes[i]) / given.top];
        if (left < requested) quads.add(across(left), across(Math.min(right, requested)), low, high, colour, kind, group[i]);
        if (right > requested) quads.add(across(Math.max(left, requested)), across(right), low, high, colour, kind | HATCHED, group[i]);
    }
}

// The step of shape i at a position; -1 when it is not there.
function stepAt({ columns }: Given, i: number, at: number): number {
    const { first_step, position, end } = columns;
    if (at < position[first_step[i]] || at >= end[i]) return -1;
    let low = first_step[i];
    let high = first_step[i + 1] - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (position[middle] <= at) low = middle;
        else high = middle - 1;
    }
    return low;
}

// The shape at a point.
export function shapeAt(given: Given, at: number, value: number): Hit | null {
    const { columns, json } = given;
    for (let i = 0; i < columns.row.length; i++) {
        const step = stepAt(given, i, at);
        if (step < 0 || value < columns.base[step] || value >= columns.base[step] + columns.bytes[i]) continue;
        const unknown = columns.row[i] === GIVEN_BACK;
        const facts = unknown ? ["given back before the recording, not yet free"] : columns.mapped?.[i] ? ["mapped, of an expandable segment"] : [];
        return { row: unknown ? -1 : columns.row[i], bytes: columns.bytes[i], group: shortened(json.groups[columns.group[i]] ?? "", 70), facts };
    }
    return null;
}

function hitOf(given: Given, at: number, value: number): Hit | null {
    const { columns } = given;
    const shape = shapeAt(given, at, value);
    if (shape) return shape;
    const pixel = Math.floor(((at - given.from) / (given.to - given.from)) * columns.drawn.length);
    const rest = (given.total[pixel] ?? 0) - (columns.drawn[pixel] ?? 0);
    if (rest <= 0 || value < columns.drawn[pixel] || value >= given.total[pixel]) return null;
    return { row: -1, bytes: rest, group: "in shapes too small to draw", facts: ["Zoom in to see them."] };
}

export function outlineOf({ columns }: Given, row: number): number[] {
    const i = columns.row.indexOf(row as never);
    if (i < 0) return [];
    const { first_step, position, base, bytes, end } = columns;
    const rectangles: number[] = [];
    for (let s = first_step[i]; s < first_step[i + 1]; s++)
        rectangles.push(position[s], s + 1 === first_step[i + 1] ? end[i] : position[s + 1], base[s], base[s] + bytes[i]);
    return rectangles;
}

export function neighbourOf({ columns: { row } }: Given, from: number, step: 1 | -1): number | null {
    if (row.length === 0) return null;
    const i = row.indexOf(from as never);
    return row[i < 0 ? (step > 0 ? 0 : row.length - 1) : Math.min(Math.max(0, i + step), row.length - 1)];
}

const NAMES = ["row", "stack", "flags", "bytes", "end", "group", "first_step", "position", "base", "drawn", "allocated", "active", "reserved"];

// The largest number of the pixels that lie in a part of the window.
export function largestIn(values: Numbers, given: { from: number; to: number }, from: number, to: number): number {
    const scale = values.length / (given.to - given.from);
    const first = Math.max(0, Math.floor((from - given.from) * scale));
    const end = Math.min(values.length, Math.ceil((to - given.from) * scale));
    let largest = 0;
    for (let i = first; i < end; i++) if (values[i] > largest) largest = values[i];
    return largest;
}

export type Kind = { total: "allocated" | "active" | "reserved"; lines(columns: Columns): Line[]; noun: string };

export function stackedScene(answer: Answer<StackedJson>, kind: Kind, theme: Theme, app: App): Scene {
    const { json } = answer;
    const columns: Columns = Object.fromEntries(NAMES.map((name) => [name, answer.column(name)]));
    if ("mapped" in json.columns) columns.mapped = answer.column("mapped");
    const total = columns[kind.total];
    const matches = app.matches();
    const given: Given = {
        from: json.from,
        to: json.to,
        top: json.top_bytes,
        total,
        json,
        columns,
        requested: "requested" in json.columns ? answer.column("requested") : null,
        matched: (i) => matches?.has(columns.row[i], columns.stack[i]) ?? false,
    };
    const quads = new Quads();
    addRest(quads, given, theme);
    const colours = json.groups.map(colourOf);
    for (let i = 0; i < columns.row.length; i++) addShape(quads, given, i, varied(colours[columns.group[i]], columns.row[i]));
    const lines = kind.lines(columns);
    return {
        from: json.from,
        to: json.to,
        low: 0,
        high: json.top_bytes,
        quads,
        groups: json.groups,
        lines,
        moment: json.event_position ?? null,
        allocations: json.allocations,
        shapes: columns.row.length,
        largest: ({ from, to }) => largestIn(total, json, from, to),
        summary:
            `${counted(json.allocations, kind.noun)} in the window, ${count(columns.row.length)} of them drawn each for itself. ` +
            `The largest total is ${bytes(largestIn(total, json, json.from, json.to))}.`,
        show: (from, to) => {
            const drawn = largestIn(total, json, from, to);
            const high = Math.max(drawn, ...lines.map((line) => largestIn(line.values, json, from, to)).filter((value) => value <= 2.5 * drawn));
            return [0, Math.max(1, high) * 1.06];
        },
        hit: (at, value) => hitOf(given, at, value),
        outline: (row) => outlineOf(given, row),
        neighbour: (row, step) => neighbourOf(given, row, step),
    };
}

// What the questions about the device on show have in common.
export function about(app: App): { rec: number; device: number | undefined } {
    return { rec: app.store.state.rec, device: app.device()?.device };
}

const KNOWN_BY = new Set(["site", "stack", "function", "file", "category", "annotation", "pool", "stream", "thread", "context", "metadata", "size"]);
export const byOf = (app: App): string => (KNOWN_BY.has(app.store.state.by) ? app.store.state.by : "site");

export function windowQuestion(app: App, wanted: Wanted): { axis: string; from: number; to: number; pixels: number; height: number; event?: number } {
    const { axis, event } = app.store.state;
    return { axis, ...wanted, event: Number.isNaN(event) ? undefined : event };
}

export function allocationSource(app: App): Source {
    const notion = () => app.store.state.notion;
    return {
        name: "Active memory timeline",
        empty: "This recording has no allocations: neither events nor segments.",
        ask: async (wanted, theme) => {
            const answer = await app.engine.ask<StackedJson>({ name: "timeline", ...about(app), ...windowQuestion(app, wanted), notion: notion(), by: byOf(app), limit: 4000 });
            const kind: Kind = {
                total: notion(),
                noun: "allocation",
                lines: ({ active, reserved }) => [
                    { name: "reserved", colour: "quiet", values: reserved },
                    ...(notion() === "allocated" ? [{ name: "active", colour: "active" as const, values: active, dash: [5, 3] }] : []),
                ],
            };
            return stackedScene(answer, kind, theme, app);
        },
        details: async (row) => detailsFrom(await app.engine.ask({ name: "allocation", ...about(app), row })),
        rowOf: async (label) => {
            if (label.startsWith("s")) return null;
            return (await app.engine.ask<{ row: number }>({ name: "allocation", ...about(app), label })).json.row;
        },
    };
}

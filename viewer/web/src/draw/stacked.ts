// Converts answers with stacked shapes (`timeline` and `segments`) to scenes of a chart.
import type { App } from "../app";
import { bytes, count, counted } from "../format";
import type { Answer, Numbers } from "../protocol";
import type { Hit, Scene, Source, Wanted } from "./chart";
import { colourOf, type Theme } from "./colour";
import type { Curve } from "./picture";
import type { Stack } from "./shapes";
import { seedGroups } from "./seeds";
import { detailsFrom, shortened } from "./tips";

export type StackedJson = { from: number; to: number; allocations: number; top_bytes: number; groups: string[]; event_position?: number };

const GIVEN_BACK = 0xffffffff; // row of memory freed before the recording

export type Columns = { [name: string]: Numbers };
export type Given = { from: number; to: number; top: number; total: Numbers; json: StackedJson; columns: Columns; requested: Numbers | null };

// Returns the data that the painting worker needs.
export function stackOf(given: Given, columns: Columns, rests: Stack["rests"], theme: Theme, app: App): Stack {
    const { row, stack, flags, bytes, end, group, first_step, position, base } = columns;
    const matches = app.matches();
    return {
        from: given.from,
        to: given.to,
        top: given.top,
        columns: { row, flags, bytes, end, group, first_step, position, base },
        requested: given.requested,
        matched: matches ? Uint8Array.from(row, (value, i) => Number(matches.has("mapped" in columns ? NaN : value, stack[i]))) : null,
        colours: given.json.groups.map(colourOf),
        rests,
        restColour: theme.rest,
    };
}

// Finds the shape at a point. Runs at every pointer move, hence the plain loops.
export function shapeAt(given: Given, at: number, value: number): Hit | null {
    const { columns, json } = given;
    const { row, first_step, position, base, bytes, end, group } = columns;
    for (let i = 0; i < row.length; i++) {
        let low = first_step[i];
        let high = first_step[i + 1] - 1;
        if (at < position[low] || at >= end[i]) continue;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (position[middle] <= at) low = middle;
            else high = middle - 1;
        }
        if (value < base[low] || value >= base[low] + bytes[i]) continue;
        const unknown = row[i] === GIVEN_BACK;
        const facts = unknown ? ["freed before the recording began, not reusable yet"] : columns.mapped?.[i] ? ["mapped, of an expandable segment"] : [];
        return { row: unknown ? -1 : row[i], bytes: bytes[i], group: shortened(json.groups[group[i]] ?? "", 70), facts };
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

// Returns the largest of the pixels' values in part of the window.
export function largestIn(values: Numbers, given: { from: number; to: number }, from: number, to: number): number {
    const scale = values.length / (given.to - given.from);
    const first = Math.max(0, Math.floor((from - given.from) * scale));
    const end = Math.min(values.length, Math.ceil((to - given.from) * scale));
    let largest = 0;
    for (let i = first; i < end; i++) if (values[i] > largest) largest = values[i];
    return largest;
}

export type Kind = { total: "allocated" | "active" | "reserved"; curves(columns: Columns): Curve[]; noun: string };

export function stackedScene(answer: Answer<StackedJson>, kind: Kind, theme: Theme, app: App): Scene {
    const { json } = answer;
    const columns: Columns = Object.fromEntries(NAMES.map((name) => [name, answer.column(name)]));
    const total = columns[kind.total];
    const given: Given = {
        from: json.from,
        to: json.to,
        top: json.top_bytes,
        total,
        json,
        columns,
        requested: "requested" in json.columns ? answer.column("requested") : null,
    };
    const curves = kind.curves(columns);
    const rests = [{ drawn: columns.drawn, total, base: 0, scale: 1 }];
    return {
        from: json.from,
        to: json.to,
        low: 0,
        high: json.top_bytes,
        picture: { from: json.from, to: json.to, low: 0, high: json.top_bytes, ground: null, rules: [], shades: null, shapes: stackOf(given, columns, rests, theme, app), curves },
        groups: json.groups,
        moment: json.event_position ?? null,
        allocations: json.allocations,
        shapes: columns.row.length,
        largest: ({ from, to }) => largestIn(total, json, from, to),
        summary:
            `${counted(json.allocations, kind.noun)} in the window, ${count(columns.row.length)} of them drawn individually. ` +
            `The largest total is ${bytes(largestIn(total, json, json.from, json.to))}.`,
        show: (from, to) => {
            const drawn = largestIn(total, json, from, to);
            const high = Math.max(drawn, ...curves.map((curve) => largestIn(curve.values, json, from, to)).filter((value) => value <= 2.5 * drawn));
            return [0, Math.max(1, high) * 1.06];
        },
        hit: (at, value) => hitOf(given, at, value),
        outline: (row) => outlineOf(given, row),
        neighbour: (row, step) => neighbourOf(given, row, step),
    };
}

// Returns the common arguments of queries about the shown device.
export function about(app: App): { rec: number; device: number | undefined } {
    return { rec: app.store.state.rec, device: app.device()?.device };
}

const KNOWN_BY = new Set(["site", "stack", "function", "file", "role", "module", "category", "annotation", "pool", "stream", "thread", "context", "metadata", "size"]);
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
            // Use the current device and window, which may have changed while the colours were queried.
            const question = { name: "timeline", ...about(app), ...windowQuestion(app, wanted), notion: notion(), by: byOf(app), limit: 4000 };
            await seedGroups(app, byOf(app));
            const answer = await app.engine.ask<StackedJson>(question);
            const kind: Kind = {
                total: notion(),
                noun: "allocation",
                curves: ({ active, reserved }) => [
                    { name: "reserved", colour: theme.quiet, values: reserved },
                    ...(notion() === "allocated" ? [{ name: "active", colour: theme.text, values: active, dash: [5, 3] }] : []),
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

// The address map: time across, addresses up. Every allocation is a rectangle, free memory in segments is pale, and allocations too small for
// a rectangle are a shade. Addresses that never belonged to a segment are left out.
import type { App, View } from "../app";
import { csvText, el } from "../dom";
import { bySelect, largestTable } from "../draw/controls";
import { Chart, type Hit, type Scene, type Source, type Wanted } from "../draw/chart";
import { blend, colourOf, parse, varied, type Rgb, type Theme } from "../draw/colour";
import type { Rule, Shades } from "../draw/picture";
import { EDGE_LEFT, EDGE_RIGHT, HATCHED, MATCHED, Quads } from "../draw/quads";
import { seedGroups } from "../draw/seeds";
import { about, byOf, windowQuestion } from "../draw/stacked";
import { count, counted, whole } from "../format";
import type { Answer, Numbers } from "../protocol";
import { prepare, Working } from "../working";
import { detailsFrom, shortened } from "../draw/tips";

type MapJson = { from: number; to: number; allocations: number; groups: string[]; event_position?: number; total: number; low: number; high: number; grid_low: number; grid_high: number };
type Columns = { [name: string]: Numbers };

const CELLS = 256;
const PRIVATE: Rgb = [230, 159, 0]; // tints the memory of private pools
const BORN_EARLIER = 4;
const ENDS_LATER = 8;
const NAMES = ["row", "stack", "flags", "bytes", "end", "group", "begin", "place", "completed", "segment_place", "segment_bytes", "segment_begin", "segment_end", "segment_private", "range_place", "range_address_low", "range_address_high"];

// Converts the grid to an image with one column per pixel of the window.
function shadesOf(answer: Answer<MapJson>, pixels: number, theme: Theme): Shades {
    const { from, to } = answer.json;
    const edges = answer.column("grid_position");
    const grid = answer.column("grid");
    const image = new ImageData(pixels, CELLS);
    const [r, g, b] = theme.rest;
    let column = 0;
    for (let x = 0; x < pixels; x++) {
        const position = from + ((x + 0.5) / pixels) * (to - from);
        while (column + 2 < edges.length && edges[column + 1] <= position) column++;
        if (edges.length < 2 || position < edges[0] || position >= edges[edges.length - 1]) continue;
        for (let k = 0; k < CELLS; k++) {
            const full = grid[column * CELLS + k];
            if (full !== 0) image.data.set([r, g, b, Math.min(255, 40 + full)], 4 * ((CELLS - 1 - k) * pixels + x));
        }
    }
    return { pixels: image.data as Uint8ClampedArray<ArrayBuffer>, width: pixels, height: CELLS, low: answer.json.grid_low, high: answer.json.grid_high };
}

function quadsOf({ json }: Answer<MapJson>, columns: Columns, app: App): Quads {
    const quads = new Quads();
    const matches = app.matches();
    const across = (at: number) => (at - json.from) / (json.to - json.from);
    const up = (place: number) => (place - json.low) / (json.high - json.low);
    const colours = json.groups.map(colourOf);
    const { row, stack, flags, bytes, begin, end, place, completed, group } = columns;
    for (let i = 0; i < row.length; i++) {
        const kind =
            (matches?.has(row[i], stack[i]) ? MATCHED : 0) | ((flags[i] & BORN_EARLIER) === 0 ? EDGE_LEFT : 0) | ((flags[i] & ENDS_LATER) === 0 ? EDGE_RIGHT : 0);
        const [low, high] = [up(place[i]), up(place[i] + bytes[i])];
        if (completed[i] > end[i]) quads.add(across(end[i]), across(completed[i]), low, high, colours[group[i]], kind | HATCHED, group[i]);
        quads.add(across(begin[i]), across(end[i]), low, high, varied(colours[group[i]], row[i]), kind, group[i]);
    }
    return quads;
}

// Returns the reserved memory, as the ground below the allocations.
function groundOf({ json }: Answer<MapJson>, columns: Columns, theme: Theme): Quads {
    const { segment_place: place, segment_bytes: size, segment_begin: begin, segment_end: end, segment_private: own } = columns;
    const reserved = parse(theme.reserved);
    const colours = [reserved, blend(reserved, PRIVATE, 0.3)];
    const quads = new Quads();
    const across = (at: number) => (at - json.from) / (json.to - json.from);
    const up = (at: number) => (at - json.low) / (json.high - json.low);
    for (let i = 0; i < place.length; i++) quads.add(across(begin[i]), across(end[i]), up(place[i]), up(place[i] + size[i]), colours[own[i]], 0, 0);
    return quads;
}

// Returns lines where addresses are left out, unless there are so many that they would hide the picture.
function gapsOf({ range_place: place }: Columns, theme: Theme): Rule[] {
    return place.length > 64 ? [] : Array.from(place.subarray(1), (at) => ({ at, colour: theme.line, width: 1, dash: [6, 4] }));
}

function freeAt(columns: Columns, at: number, value: number): Hit | null {
    const { segment_place: place, segment_bytes: size, segment_begin: begin, segment_end: end, segment_private: own } = columns;
    for (let i = 0; i < place.length; i++) {
        if (at < begin[i] || at >= end[i] || value < place[i] || value >= place[i] + size[i]) continue;
        const facts = [`0x${addressAt(columns, value).toString(16)} is free here, or holds allocations too small to draw`];
        return { row: -1, bytes: size[i], group: own[i] ? "segment of a private pool" : "segment", facts };
    }
    return null;
}

// Returns the address at a position.
function addressAt({ range_place: place, range_address_low: addressLow, range_address_high: addressHigh }: Columns, at: number): bigint {
    let low = 0;
    let high = place.length - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (place[middle] <= at) low = middle;
        else high = middle - 1;
    }
    const offset = Math.floor(place.length === 0 ? at : at - place[low]);
    return BigInt(offset) + (place.length === 0 ? 0n : whole(addressLow[low], addressHigh[low]));
}

function sceneOf(answer: Answer<MapJson>, wanted: Wanted, theme: Theme, app: App): Scene | null {
    const { json } = answer;
    if (json.total === 0) return null;
    const columns: Columns = Object.fromEntries(NAMES.map((name) => [name, answer.column(name)]));
    const { row, bytes, begin, end, place, group } = columns;
    const holds = (i: number, at: number, value: number) => at >= begin[i] && at < end[i] && value >= place[i] && value < place[i] + bytes[i];
    return {
        from: json.from,
        to: json.to,
        low: json.low,
        high: json.high,
        picture: {
            from: json.from,
            to: json.to,
            low: json.low,
            high: json.high,
            ground: groundOf(answer, columns, theme),
            rules: gapsOf(columns, theme),
            shades: shadesOf(answer, Math.min(2048, wanted.pixels), theme),
            shapes: quadsOf(answer, columns, app),
            curves: [],
        },
        groups: json.groups,
        moment: json.event_position ?? null,
        allocations: json.allocations,
        shapes: row.length,
        largest: () => json.total,
        summary: `${counted(json.allocations, "allocation")} in the window, ${count(row.length)} of them drawn as rectangles, the others as shading at their addresses.`,
        show: () => [0, json.total],
        hit: (at, value) => {
            for (let i = row.length; i-- > 0; ) {
                if (holds(i, at, value)) return { row: row[i], bytes: bytes[i], group: shortened(json.groups[group[i]] ?? "", 70), facts: [] };
            }
            return freeAt(columns, at, value);
        },
        outline: (wantedRow) => {
            const i = row.indexOf(wantedRow as never);
            return i < 0 ? [] : [begin[i], end[i], place[i], place[i] + bytes[i]];
        },
        neighbour: (from, step) => {
            const i = row.indexOf(from as never);
            return row.length === 0 ? null : row[i < 0 ? 0 : Math.min(Math.max(0, i + step), row.length - 1)];
        },
        yText: (value) => `0x${addressAt(columns, value).toString(16)}`,
    };
}

function source(app: App, chart: () => Chart, working: Working): Source {
    let prepared = "";
    // Prepares the map's data once per device, in pieces.
    async function prepareOnce(): Promise<void> {
        const of = `${app.store.state.rec} ${app.device()?.device} ${app.device()?.events}`;
        if (of === prepared) return;
        await prepare(app.engine, { name: "map", ...about(app) }, working.tell);
        prepared = of;
    }
    return {
        name: "Address map",
        empty: "This recording has neither segments nor allocations: there are no addresses to show.",
        zoomY: true,
        left: () => 124,
        ask: async (wanted, theme) => {
            await prepareOnce();
            const heights = chart().heights;
            const part = heights ? { low: heights[0], high: heights[1] } : {};
            // Use the current device and window, which may have changed while the colours were queried.
            const question = { name: "map", ...about(app), ...windowQuestion(app, wanted), by: byOf(app), limit: 4000, ...part };
            await seedGroups(app, byOf(app));
            const answer = await app.engine.ask<MapJson>(question);
            return sceneOf(answer, wanted, theme, app);
        },
        details: async (row) => detailsFrom(await app.engine.ask({ name: "allocation", ...about(app), row })),
        rowOf: async (label) => (label.startsWith("s") ? null : (await app.engine.ask<{ row: number }>({ name: "allocation", ...about(app), label })).json.row),
    };
}

export function mapView(app: App): View {
    const working = new Working();
    const chart: Chart = new Chart(
        app,
        source(app, () => chart, working),
    );
    const by = bySelect(app);
    const table = largestTable(app, chart);
    chart.bar.append(by.root, chart.legend);
    const root = el("div", { class: "fill chart-view" }, working.root, chart.root, table.root);
    return {
        id: "map",
        title: "Address map",
        key: "4",
        root,
        keys: [
            ["W S", "zoom the addresses in and out"],
            ["A D", "lower, higher addresses"],
            ["[ ]", "previous and next allocation"],
            ["z", "zoom to the selected allocation"],
        ],
        show: () => {
            by.update();
            chart.show();
            table.update();
        },
        hide: () => chart.leave(),
        update: (state, changed) => {
            by.update();
            chart.update(state, changed);
            table.update();
        },
        onKey: (event) => chart.onKey(event),
        svg: () => chart.svg(`Address map of ${app.recording()?.name ?? ""}`),
        csv: async () => {
            const { header, rows } = await table.rows(8192);
            return csvText(header, rows);
        },
    };
}

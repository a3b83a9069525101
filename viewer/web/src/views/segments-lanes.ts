// The scene of segments in lanes. Each lane has its own baseline and names; the scale is common.
import type { App } from "../app";
import { byteTicks, tickBytes, type Box } from "../draw/axes";
import type { Hit, Scene } from "../draw/chart";
import type { Theme } from "../draw/colour";
import type { Pen } from "../draw/pen";
import type { Curve, Rule } from "../draw/picture";
import { largestIn, neighbourOf, outlineOf, shapeAt, stackOf, type Columns, type Given } from "../draw/stacked";
import { bytes, counted } from "../format";
import type { Answer, Numbers } from "../protocol";

export type Lane = { name: string; peak_bytes: number; base_bytes: number; room_bytes: number; scale: number };
export type LanesJson = { from: number; to: number; allocations: number; top_bytes: number; lanes: Lane[]; event_position?: number };

const NAMES = ["row", "stack", "flags", "bytes", "end", "group", "first_step", "position", "base", "mapped", "lane_total", "lane_drawn", "lane_used", "reserved"];
// Width for the names; less on a narrow screen.
export const namesWidth = (wide: number) => Math.min(196, Math.round(0.36 * wide));
const TWO_LINES = 30; // pixels for a name with its bytes below
const TALL = 90; // minimum pixels of a lane with a scale

const COMMON = ["default pool, ", "pool not recorded, "]; // omitted from the names if all of several lanes begin with it

const ground = (lane: Lane, y: (value: number) => number) => Math.round(y(lane.base_bytes)) + 0.5;

function fitting(pen: Pen, text: string, width: number): string {
    if (pen.textWidth(text) <= width) return text;
    let length = text.length - 1;
    while (length > 4 && pen.textWidth(`${text.slice(0, length)}\u2026`) > width) length--;
    return `${text.slice(0, length)}\u2026`;
}

// Draws left of a lane its name, its peak, and a scale if there is room.
function nameLane(pen: Pen, lane: Lane, name: string, y: (value: number) => number, box: Box, theme: Theme): void {
    const bottom = ground(lane, y);
    const height = bottom - y(lane.base_bytes + lane.room_bytes);
    const right = box.left - 8;
    const most = `up to ${bytes(lane.peak_bytes)}`;
    const upTo = lane.scale === 1 ? most : pen.textWidth(`${most}, magnified`) > box.left - 20 ? `${bytes(lane.peak_bytes)}, magnified` : `${most}, magnified`;
    const text = (at: number, words: string, colour: string) => pen.text(right, at, fitting(pen, words, box.left - 20), colour, { align: "right" });
    pen.line([box.left - 4, bottom, box.left, bottom], theme.quiet);
    if (height < TWO_LINES - 8) return text(bottom - 4, name, theme.text);
    const first = height >= TALL ? bottom - height + 12 : bottom - 14;
    text(first, name, theme.text);
    text(first + 13, upTo, theme.quiet);
    if (height < TALL) return;
    for (const value of byteTicks(0, lane.peak_bytes, height / 46)) {
        const at = y(lane.base_bytes + value * lane.scale);
        if (at < first + 26 || value === 0) continue;
        pen.line([box.left - 4, at, box.left, at], theme.quiet);
        text(at + 4, tickBytes(value), theme.quiet);
    }
}

const lanePixels = (values: Numbers, lane: number, pixels: number): Numbers => values.subarray(lane * pixels, (lane + 1) * pixels);

// Returns the reserved, used and free bytes of the lane at a position.
function envelopeAt(given: Given, lanes: readonly Lane[], at: number, value: number): string[] {
    const i = lanes.findIndex((lane) => value >= lane.base_bytes && value < lane.base_bytes + lane.room_bytes);
    const { reserved, lane_total, lane_used } = given.columns;
    if (i < 0 || !lane_used) return [];
    const pixel = Math.floor(((at - given.from) / (given.to - given.from)) * reserved.length);
    const [held, used] = [lane_total, lane_used].map((values) => lanePixels(values, i, reserved.length)[pixel] ?? 0);
    return [`${lanes[i].name}: ${bytes(held)} held, ${bytes(used)} in use, ${bytes(Math.max(0, held - used))} free`];
}

// Returns the upper edge of the used memory per lane, in its scale; one name for all.
function useCurves(columns: Columns, lanes: readonly Lane[], theme: Theme): Curve[] {
    if (!columns.lane_used) return [];
    const pixels = columns.reserved.length;
    return lanes.map((lane, i) => ({ name: i === 0 ? "in use (below), free (above)" : "", colour: theme.text, values: lanePixels(columns.lane_used, i, pixels).map((value) => lane.base_bytes + value * lane.scale) }));
}

function restAt(given: Given, lanes: readonly Lane[], at: number, value: number): Hit | null {
    const i = lanes.findIndex((lane) => value >= lane.base_bytes && value < lane.base_bytes + lane.room_bytes);
    if (i < 0) return null;
    const pixels = given.columns.reserved.length;
    const pixel = Math.floor(((at - given.from) / (given.to - given.from)) * pixels);
    const [total, drawn] = [given.columns.lane_total, given.columns.lane_drawn].map((values) => lanePixels(values, i, pixels)[pixel] ?? 0);
    const above = (value - lanes[i].base_bytes) / lanes[i].scale;
    if (above < drawn || above >= total) return null;
    return { row: -1, bytes: total - drawn, group: lanes[i].name, facts: ["segments too small to draw: zoom in to see them"] };
}

export function lanesScene(answer: Answer<LanesJson>, theme: Theme, app: App): Scene | null {
    const { json } = answer;
    const { lanes } = json;
    if (lanes.length === 0) return null;
    const columns: Columns = Object.fromEntries(NAMES.filter((name) => name in answer.json.columns).map((name) => [name, answer.column(name)]));
    const groups = lanes.map((lane) => lane.name);
    const sizes = columns.bytes;
    // Shapes are magnified like their lane.
    columns.bytes = Float64Array.from(sizes, (value, i) => value * lanes[columns.group[i]].scale);
    const given: Given = {
        from: json.from,
        to: json.to,
        top: json.top_bytes,
        total: columns.reserved,
        json: { ...json, groups },
        columns,
        requested: null,
    };
    const pixels = columns.reserved.length;
    const rests = lanes.map((lane, i) => ({ total: lanePixels(columns.lane_total, i, pixels), drawn: lanePixels(columns.lane_drawn, i, pixels), base: lane.base_bytes, scale: lane.scale }));
    // A line between lanes, and one at each lane's peak.
    const rules = lanes.flatMap((lane): Rule[] => [
        { at: lane.base_bytes + lane.peak_bytes * lane.scale, colour: theme.line, width: 1, dash: [2, 4] },
        { at: lane.base_bytes, colour: theme.quiet, width: 0.6 },
    ]);
    const common = COMMON.find((words) => lanes.length > 1 && lanes.every((lane) => lane.name.startsWith(words))) ?? "";
    const short = (lane: Lane) => lane.name.slice(common.length);
    return {
        from: json.from,
        to: json.to,
        low: 0,
        high: json.top_bytes,
        picture: { from: json.from, to: json.to, low: 0, high: json.top_bytes, ground: null, rules, shades: null, shapes: stackOf(given, columns, rests, theme, app), curves: useCurves(columns, lanes, theme) },
        groups,
        moment: json.event_position ?? null,
        allocations: json.allocations,
        shapes: columns.row.length,
        largest: ({ from, to }) => largestIn(columns.reserved, json, from, to),
        summary:
            `${counted(json.allocations, "segment")} in the window, in ${counted(lanes.length, "lane")}: ` +
            lanes.map((lane) => `${lane.name}, up to ${bytes(lane.peak_bytes)}`).join("; "),
        show: () => [0, json.top_bytes],
        hit: (at, value) => {
            const shape = shapeAt(given, at, value);
            const around = envelopeAt(given, lanes, at, value);
            const hit = shape ? { ...shape, bytes: sizes[columns.row.indexOf(shape.row as never)] } : restAt(given, lanes, at, value);
            return hit && { ...hit, around };
        },
        outline: (row) => outlineOf(given, row),
        neighbour: (row, step) => neighbourOf(given, row, step),
        axis: (pen, y, box) => lanes.forEach((lane) => nameLane(pen, lane, short(lane), y, box, theme)),
    };
}

// Segments and blocks at one moment, to scale. Memory is laid out like text: every byte takes the same width, and a segment that does not
// fit on a line continues on the next.
import { colourOf, css, type Rgb, type Theme } from "../draw/colour";
import type { Pen } from "../draw/pen";
import { bytes, counted } from "../format";
import type { Answer, Numbers } from "../protocol";
import { hexAddress } from "./state-list";

export type Owner = { stream?: string; kind?: string; expandable?: boolean; pool?: [number, number]; reserved?: boolean };
export type Site = { site: number; name: string; bytes: number; count: number };
export type StateSums = {
    event: number;
    segments: number;
    blocks: number;
    reserved_bytes: number;
    allocated_bytes: number;
    requested_bytes: number;
    pending_bytes: number;
    free_bytes: number;
    free_pieces: number;
    largest_free_bytes: number;
    cached_bytes: number;
    largest_hole_bytes: number;
    outside_bytes: number;
    grain_bytes: number; // neighbours below this are bundled; 0: every block is separate
    owners: Owner[];
    sites: Site[];
};
export const PENDING = 1;
export const ESTIMATED = 2;
export const BEFORE = 4;

const COLUMNS = [
    "segment_low", "segment_high", "segment_bytes", "segment_owner", "segment_first", "segment_stack",
    "block_row", "block_offset", "block_span", "block_at", "block_count", "block_bytes", "block_asked", "block_flags", "block_stack", "block_site", "block_version",
] as const;

// If there are more blocks than a screen shows, a "block" here is a bundle of neighbours too small to see. Its label, stack and call site
// are those of its largest block.
export class Moment {
    readonly json: StateSums;
    private names?: Map<number, string>;
    readonly at: Record<(typeof COLUMNS)[number], Numbers>;
    constructor(answer: Answer<StateSums>) {
        this.json = answer.json;
        this.at = Object.fromEntries(COLUMNS.map((name) => [name, answer.column(name)])) as Moment["at"];
    }
    get segments(): number {
        return this.at.segment_bytes.length;
    }
    // Returns the colour of the call site's name, the same in every view; sites too small to be named get their own colours.
    siteColour(site: number): Rgb {
        this.names ??= new Map(this.json.sites.map((item) => [item.site, item.name]));
        return colourOf(this.names.get(site) ?? String(site));
    }
    owner(segment: number): Owner {
        return this.json.owners[this.at.segment_owner[segment]];
    }
    segmentAddress(segment: number): bigint {
        return (BigInt(this.at.segment_high[segment]) << 32n) | BigInt(this.at.segment_low[segment]);
    }
    segmentLabel(segment: number): string {
        return hexAddress(this.at.segment_high[segment], this.at.segment_low[segment]);
    }
    blockAddress(segment: number, block: number): bigint {
        return this.segmentAddress(segment) + BigInt(this.at.block_at[block]);
    }
    // Returns whether a label means this block, or one in this bundle.
    isPicked(segment: number, block: number, label: string): boolean {
        if (label === "" || this.at.block_count[block] === 1) return label !== "" && this.blockLabel(segment, block) === label;
        const digits = /^b([0-9a-f]+)/.exec(label);
        if (!digits) return false;
        const offset = BigInt(`0x${digits[1]}`) - this.segmentAddress(segment) - BigInt(this.at.block_offset[block]);
        return offset >= 0n && offset < BigInt(this.at.block_span[block]);
    }
    blockLabel(segment: number, block: number): string {
        return `b${this.blockAddress(segment, block).toString(16)}_${this.at.block_version[block]}`;
    }
    // Returns the block at an offset of a segment; -1 for free memory.
    blockAt(segment: number, offset: number): number {
        let low = this.at.segment_first[segment];
        const end = this.at.segment_first[segment + 1];
        let high = end;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.at.block_offset[middle] <= offset) low = middle + 1;
            else high = middle;
        }
        const block = low - 1;
        return block >= this.at.segment_first[segment] && offset < this.at.block_offset[block] + this.at.block_span[block] ? block : -1;
    }
    used(segment: number): number {
        let sum = 0;
        for (let b = this.at.segment_first[segment]; b < this.at.segment_first[segment + 1]; b++) sum += this.at.block_bytes[b];
        return sum;
    }
}

export function poolText(owner: Owner): string {
    if (!owner.pool) return "pool not recorded";
    const [first, second] = owner.pool;
    return first === 0 && second === 0 ? "default pool" : `private pool ${first}, ${second}`;
}
export const streamText = (owner: Owner): string => `stream ${owner.stream === "0" || owner.stream === undefined ? "0" : BigInt(owner.stream) > 0xffffn ? `0x${BigInt(owner.stream).toString(16)}` : owner.stream}`;

export type Sorting = "pool" | "stream" | "size" | "address";

type Group = { title: string; segments: number[] };

export function sorted(moment: Moment, sorting: Sorting): Group[] {
    const all = Array.from({ length: moment.segments }, (_, i) => i);
    const size = moment.at.segment_bytes;
    const bySize = (a: number, b: number) => size[b] - size[a] || a - b;
    if (sorting === "address") return [{ title: "", segments: all }];
    if (sorting === "size") return [{ title: "", segments: all.sort(bySize) }];
    const groups = new Map<string, number[]>();
    for (const segment of all) {
        const owner = moment.owner(segment);
        const key =
            owner.reserved === false
                ? "not known to be reserved"
                : sorting === "stream"
                  ? streamText(owner)
                  : `${poolText(owner)} \u00b7 ${owner.kind === "unknown" ? "" : `${owner.kind}${owner.expandable ? ", expandable" : ""} \u00b7 `}${streamText(owner)}`;
        const list = groups.get(key);
        if (list) list.push(segment);
        else groups.set(key, [segment]);
    }
    const total = (list: number[]) => list.reduce((sum, segment) => sum + size[segment], 0);
    return [...groups]
        .map(([key, segments]) => ({ key, segments: segments.sort(bySize), sum: total(segments) }))
        .sort((a, b) => b.sum - a.sum || (a.key < b.key ? -1 : 1))
        .map(({ key, segments, sum }) => ({ title: `${key} \u00b7 ${counted(segments.length, "segment")}, ${bytes(sum)}`, segments }));
}

const GAP = 3;
const HEADING = 22;
const LEAST = 3;
const LEAST_LINES = 6; // for all groups' segments together

// The positions of segments: on a strip of lines, from `begin` pixels on (line = begin / width).
export type Layout = {
    width: number;
    line: number; // height of a line
    pitch: number;
    perPixel: number; // bytes
    segments: Int32Array; // in strip order
    begin: Float64Array; // by position: pixels from the start of the group's strip
    top: Float64Array; // by position: the y of the group's first line
    headings: { y: number; title: string }[];
    height: number;
};

function attempt(moment: Moment, groups: Group[], width: number, perPixel: number, line: number, pitch: number): Layout {
    const places = moment.segments;
    const layout: Layout = { width, line, pitch, perPixel, segments: new Int32Array(places), begin: new Float64Array(places), top: new Float64Array(places), headings: [], height: 0 };
    let y = 0;
    let place = 0;
    for (const { title, segments } of groups) {
        if (title !== "") {
            layout.headings.push({ y, title });
            y += HEADING;
        }
        let x = 0;
        for (const segment of segments) {
            const length = Math.max(LEAST, moment.at.segment_bytes[segment] / perPixel);
            // A segment that would be broken but fits on one line starts a new line.
            const left = width - (x % width);
            if (x % width !== 0 && length > left && length <= width) x += left;
            layout.segments[place] = segment;
            layout.begin[place] = x;
            layout.top[place++] = y;
            x += length + GAP;
        }
        y += Math.max(1, Math.ceil((x - GAP) / width)) * pitch + (title === "" ? 0 : 6);
    }
    layout.height = y;
    return layout;
}

// Chooses the finest scale at which everything fits. Keeps the previous one if it is nearly as good, so that the picture does not jump
// while stepping.
export function arrange(moment: Moment, sorting: Sorting, width: number, height: number, before: number): Layout {
    const groups = sorted(moment, sorting);
    const line = 17;
    const pitch = line + 5;
    // If headings alone fill the height, the picture is taller and scrolls.
    const room = Math.max(height, attempt(moment, groups, width, Infinity, line, pitch).height + LEAST_LINES * pitch);
    const fits = (perPixel: number) => attempt(moment, groups, width, perPixel, line, pitch).height <= room;
    const least = Math.max(1, moment.json.reserved_bytes + moment.json.outside_bytes) / (width * Math.max(1, Math.floor(room / pitch)));
    if (before >= least && before < least * 1.8 && fits(before)) return attempt(moment, groups, width, before, line, pitch);
    let low = least;
    let high = least * 2;
    for (let i = 0; i < 40 && !fits(high); i++) high *= 2;
    for (let i = 0; i < 8; i++) {
        const middle = (low + high) / 2;
        if (fits(middle)) high = middle;
        else low = middle;
    }
    return attempt(moment, groups, width, high * 1.06, line, pitch);
}

export type Look = { byState: boolean; pick: string; hover: { place: number; block: number } | null; matches: ((row: number, stack: number) => boolean) | null; theme: Theme; rounding: string };

// Calls `draw` for each line touched by the pixels [begin, end) of the strip.
function onLines(layout: Layout, place: number, begin: number, end: number, draw: (x: number, y: number, width: number, first: boolean, last: boolean) => void): void {
    const { width, pitch } = layout;
    for (let at = begin; at < end; ) {
        const line = Math.floor(at / width + 1e-9);
        const stop = Math.min(end, (line + 1) * width);
        draw(at - line * width, layout.top[place] + line * pitch, stop - at, at === begin, stop === end);
        at = stop;
    }
}

export class Picture {
    constructor(
        readonly moment: Moment,
        readonly layout: Layout,
    ) {}

    private length(place: number): number {
        return Math.max(LEAST, this.moment.at.segment_bytes[this.layout.segments[place]] / this.layout.perPixel);
    }

    paint(pen: Pen, look: Look): void {
        const { layout } = this;
        for (const { y, title } of layout.headings) pen.text(0, y + 15, title, look.theme.quiet);
        for (let place = 0; place < layout.segments.length; place++) this.paintSegment(pen, look, place);
    }

    private paintSegment(pen: Pen, look: Look, place: number): void {
        const { layout, moment } = this;
        const segment = layout.segments[place];
        const begin = layout.begin[place];
        const end = begin + this.length(place);
        const { theme } = look;
        const free = moment.owner(segment).reserved === false ? theme.panel : theme.reserved;
        onLines(layout, place, begin, end, (x, y, width) => pen.rect(x, y, width, layout.line, free));
        this.paintBlocks(pen, look, place, segment, begin);
        const hovered = look.hover?.place === place;
        // Where a segment continues on another line, its end stays open.
        onLines(layout, place, begin, end, (x, y, width, first, last) => {
            const [left, right, top, bottom] = [x + 0.5, x + Math.max(1, width) - 0.5, y + 0.5, y + layout.line - 0.5];
            const [colour, weight] = hovered ? [theme.text, 1.5] : [theme.quiet, 0.6];
            pen.line([left, top, right, top], colour, weight);
            pen.line([left, bottom, right, bottom], colour, weight);
            if (first) pen.line([left, top, left, bottom], colour, weight);
            if (last) pen.line([right, top, right, bottom], colour, weight);
        });
    }

    // Merges blocks that are too thin to see and have the same colour.
    private paintBlocks(pen: Pen, look: Look, place: number, segment: number, begin: number): void {
        const { layout, moment } = this;
        const at = moment.at;
        const scale = this.length(place) / at.segment_bytes[segment];
        let runBegin = -1;
        let runEnd = -1;
        let runColour = "";
        const flush = () => {
            if (runBegin >= 0) onLines(layout, place, runBegin, Math.max(runEnd, runBegin + 0.7), (x, y, width) => pen.rect(x, y + 1, width, layout.line - 2, runColour));
            runBegin = -1;
        };
        for (let b = at.segment_first[segment]; b < at.segment_first[segment + 1]; b++) {
            const from = begin + at.block_offset[b] * scale;
            const to = from + at.block_span[b] * scale;
            const colour = this.colour(look, b);
            if (to - from < 3) {
                if (runBegin >= 0 && colour === runColour && from - runEnd < 0.4) runEnd = to;
                else if (runBegin < 0 || to > runEnd + 0.4) {
                    flush();
                    [runBegin, runEnd, runColour] = [from, to, colour];
                }
                continue;
            }
            flush();
            this.paintBlock(pen, look, place, segment, b, from, to, colour);
        }
        flush();
    }

    private paintBlock(pen: Pen, look: Look, place: number, segment: number, b: number, from: number, to: number, colour: string): void {
        const { layout, moment } = this;
        const at = moment.at;
        const wide = to - from > 4;
        onLines(layout, place, from, to - (wide ? 0.8 : 0), (x, y, width) => {
            pen.rect(x, y + 1, width, layout.line - 2, colour);
            if ((at.block_flags[b] & PENDING) !== 0) for (let stripe = x + 2; stripe < x + width; stripe += 6) pen.rect(stripe, y + 1, 2, layout.line - 2, look.theme.panel);
        });
        const lost = ((at.block_bytes[b] - at.block_asked[b]) / at.block_bytes[b]) * (to - from);
        if (lost >= 0.6 && (at.block_flags[b] & PENDING) === 0) onLines(layout, place, to - Math.max(1, lost) - (wide ? 0.8 : 0), to - (wide ? 0.8 : 0), (x, y, width) => pen.rect(x, y + 1, width, layout.line - 2, look.rounding));
        const picked = moment.isPicked(segment, b, look.pick);
        const hovered = look.hover?.place === place && look.hover.block === b;
        if (picked || hovered) onLines(layout, place, from, to, (x, y, width) => pen.frame(x, y, width, layout.line, look.theme.text, picked ? 2 : 1.5));
    }

    private colour(look: Look, b: number): string {
        const at = this.moment.at;
        if (look.matches && !look.matches(at.block_row[b], at.block_stack[b])) return look.theme.unfound;
        if ((at.block_flags[b] & PENDING) !== 0) return look.theme.active;
        return look.byState ? look.theme.allocated : css(this.moment.siteColour(at.block_site[b]));
    }

    // Finds the segment and block at a point of the picture.
    find(x: number, y: number): { place: number; segment: number; offset: number; block: number } | null {
        const { layout, moment } = this;
        if (x < 0 || x >= layout.width) return null;
        for (let place = 0; place < layout.segments.length; place++) {
            const line = Math.floor((y - layout.top[place]) / layout.pitch);
            if (line < 0 || y - layout.top[place] - line * layout.pitch > layout.line) continue;
            const at = line * layout.width + x - layout.begin[place];
            const length = this.length(place);
            if (at < 0 || at >= length) continue;
            const segment = layout.segments[place];
            const offset = (at / length) * moment.at.segment_bytes[segment];
            return { place, segment, offset, block: moment.blockAt(segment, offset) };
        }
        return null;
    }
}

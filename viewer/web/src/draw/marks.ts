// Named moments and spans above a chart: out of memory, annotations, steps, snapshots.
import type { App } from "../app";
import { bytes, count } from "../format";
import { askOnce } from "../once";
import { pinsHere } from "../pins";
import type { Box } from "./axes";
import { colourOf, css, inkOn, parse, type Theme } from "./colour";
import type { Pen } from "./pen";

type MarkJson = { kind: string; event: number; time?: number; name: string; bytes?: number; free_bytes?: number; end_event?: number; end_time?: number };
export type Mark = MarkJson & { title: string; facts: string[] };

function described(mark: MarkJson): Mark {
    const kinds: { [kind: string]: string } = { pin: "Pin", oom: "Out of memory", snapshot: "Snapshot", user: "Mark", label: "Label", annotation: "Annotation", step: "Step" };
    const facts = [`event ${count(mark.event)}${mark.end_event !== undefined ? ` to ${count(mark.end_event)}` : ""}`];
    if (mark.kind === "oom") facts.unshift(`${bytes(mark.bytes ?? 0)} requested${mark.free_bytes === undefined ? "" : `, ${bytes(mark.free_bytes)} free on the device`}`);
    return { ...mark, title: mark.name === "" ? kinds[mark.kind] : `${kinds[mark.kind]}: ${mark.name.slice(0, 200)}`, facts };
}

// Notes about a history whose beginning is missing, because the ring of events overflowed.
const LOST: { [code: string]: string } = { overflow: "Older events are lost", ring_full: "Older events are probably lost" };
type NoteJson = { code: string; device?: number; text: string };

function lost(notes: NoteJson[], device: number | undefined): Mark[] {
    const note = notes.find(({ code, device: of }) => code in LOST && (of === undefined || of === device));
    return note ? [{ kind: "lost", event: 0, time: 0, name: LOST[note.code], title: LOST[note.code], facts: [note.text] }] : [];
}

// Returns the reader's own marks, converted to the time axis if it is shown.
async function pinned(app: App): Promise<Mark[]> {
    const device = app.device();
    const { rec, axis } = app.store.state;
    const time = async (event: number) => (await askOnce<{ from: number }>(app, { name: "translate", rec, device: device?.device, axis: "event", from: event, to: event + 1 })).json.from;
    const marks: Mark[] = [];
    for (const { event, note } of pinsHere(app)) {
        const at = Math.max(0, event);
        marks.push(described({ kind: "pin", event: at, time: axis === "time" && device?.has_times ? await time(at) : undefined, name: note || "pin" }));
    }
    return marks;
}

// Returns the marks of the shown device.
export async function marksOf(app: App): Promise<Mark[]> {
    const device = app.device()?.device;
    const { rec } = app.store.state;
    const [answer, notes] = await Promise.all([
        askOnce<{ marks: MarkJson[] }>(app, { name: "marks", rec, device }),
        askOnce<{ notes: NoteJson[] }>(app, { name: "notes", rec }),
    ]);
    return [...lost(notes.json.notes, device), ...answer.json.marks.map(described), ...(await pinned(app))];
}

const begin = (mark: Mark, byTime: boolean) => (byTime ? (mark.time ?? NaN) : mark.event);
const end = (mark: Mark, byTime: boolean) => (byTime ? mark.end_time : mark.end_event);

// Finds the mark at a position: moments before spans, short spans before long ones.
export function markAt(marks: Mark[], position: number, reach: number, byTime: boolean): Mark | null {
    let best: Mark | null = null;
    let least = Infinity;
    for (const mark of marks) {
        const from = begin(mark, byTime);
        const to = end(mark, byTime) ?? from;
        if (position < from - reach || position > to + reach) continue;
        const size = mark.kind === "oom" ? -1 : to - from;
        if (size < least) [best, least] = [mark, size];
    }
    return best;
}

const LANE = 14;

// Draws a torn edge: everything before it is unknown.
function drawLost(pen: Pen, x: number, top: number, box: Box, theme: Theme): void {
    pen.clip(x, box.top, 7, box.height, () => {
        for (let y = box.top - 8; y < box.top + box.height; y += 7) pen.line([x, y + 8, x + 8, y], theme.alarm, 1.5);
    });
    pen.text(x + 2, top + 11, LOST.overflow, theme.alarm, { size: 10, bold: true });
}

// Draws spans as strips in one lane (inner ones over outer ones) and moments as lines.
export function drawMarks(pen: Pen, marks: Mark[], box: Box, from: number, to: number, byTime: boolean, theme: Theme): void {
    const x = (position: number) => box.left + ((position - from) / (to - from)) * box.width;
    const top = box.top - LANE - 4;
    pen.clip(box.left - 1, 0, box.width + 2, box.top + box.height, () => {
        let labelled = -Infinity;
        let drawn = -Infinity;
        for (const mark of marks) {
            const at = begin(mark, byTime);
            const until = end(mark, byTime);
            if (!(at <= to) || (until ?? at) < from) continue;
            if (until !== undefined) {
                const [left, right] = [Math.max(x(at), box.left - 2), Math.min(x(until), box.left + box.width + 2)];
                if (right - left < 1 && left - drawn < 1) continue;
                drawn = left;
                pen.rect(left, top, Math.max(1, right - left - 1), LANE, css(colourOf(mark.name)));
                pen.rect(left, top, 1, LANE, theme.ground);
                if (right - left > 30) pen.clip(left + 2, top, right - left - 6, LANE, () => pen.text(Math.max(left, box.left) + 5, top + 11, mark.name.slice(0, 120), inkOn(colourOf(mark.name)), { size: 10, bold: true }));
                continue;
            }
            if (mark.kind === "lost") {
                drawLost(pen, x(at), top, box, theme);
                labelled = Math.max(labelled, x(at) + pen.textWidth(LOST.overflow, { size: 10, bold: true }));
                continue;
            }
            const alarm = mark.kind === "oom";
            const pin = mark.kind === "pin";
            const px = x(at);
            if (!alarm && !pin && px - drawn < 2) continue;
            drawn = px;
            pen.line([px, alarm || pin ? top : box.top - 4, px, box.top + box.height], alarm ? theme.alarm : pin ? theme.accent : theme.quiet, alarm ? 1.5 : 0.75, alarm ? [] : [2, 3]);
            const text = alarm ? "OOM" : mark.name.slice(0, 40);
            const width = pen.textWidth(text, { size: 10, bold: true });
            if (px - labelled < 4 && !pin) continue;
            labelled = px + width + 8;
            // At the right end there is only room on the left.
            const left = px + width + 8 > box.left + box.width ? px - width - 8 : px;
            const plate = alarm ? theme.alarm : pin ? theme.accent : null;
            if (plate) pen.rect(left, top, width + 8, LANE, plate);
            pen.text(left + 4, top + 11, text, plate ? inkOn(parse(plate)) : theme.quiet, { size: 10, bold: plate !== null });
        }
    });
}

// Returns the x positions, in pixels, of the moments' lines through the picture; one for lines that coincide.
export function markLines(marks: Mark[], box: Box, from: number, to: number, byTime: boolean): { alarms: number[]; moments: number[] } {
    const lines = { alarms: [] as number[], moments: [] as number[] };
    let drawn = -Infinity;
    for (const mark of marks) {
        const at = begin(mark, byTime);
        if (end(mark, byTime) !== undefined || !(at >= from && at <= to)) continue;
        const px = box.left + ((at - from) / (to - from)) * box.width;
        const alarm = mark.kind === "oom" || mark.kind === "lost";
        if (!alarm && px - drawn < 2) continue;
        drawn = px;
        lines[alarm ? "alarms" : "moments"].push(px);
    }
    return lines;
}

// Computes and draws ticks: bytes in binary steps, events in round numbers, time in round units.
import { count } from "../format";
import type { Theme } from "./colour";
import type { Pen } from "./pen";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// Formats 512 MiB, 1.5 GiB: with only the digits needed.
export function tickBytes(value: number): string {
    let rest = value;
    let unit = 0;
    while (rest >= 1024 && unit < UNITS.length - 1) {
        rest /= 1024;
        unit++;
    }
    return `${Number(rest.toFixed(2))}\u202f${UNITS[unit]}`;
}

// Uses a power of two as step, so that ticks are round in binary units.
export function byteTicks(low: number, high: number, most: number): number[] {
    const step = Math.max(1, 2 ** Math.ceil(Math.log2((high - low) / Math.max(1, most))));
    const ticks: number[] = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value);
    return ticks;
}

function decimalStep(atLeast: number): number {
    const power = 10 ** Math.floor(Math.log10(atLeast));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= atLeast * 0.999)!;
}

const TIME_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((seconds) => seconds * 1e6);

export function timeStep(atLeast: number): number {
    if (atLeast <= 30e6) return Math.max(1, decimalStep(atLeast));
    return TIME_STEPS.find((step) => step >= atLeast) ?? 86400e6 * Math.ceil(atLeast / 86400e6);
}

export function timeText(us: number, step: number): string {
    if (us === 0) return "0";
    const digits = (unit: number) => Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    if (step >= 60e6) {
        const minutes = Math.round(us / 60e6);
        return minutes < 60 ? `${minutes}\u202fmin` : `${Math.floor(minutes / 60)}\u202fh ${minutes % 60}\u202fmin`;
    }
    if (us >= 1e6) return `${(us / 1e6).toFixed(digits(1e6))}\u202fs`;
    if (us >= 1e3) return `${(us / 1e3).toFixed(digits(1e3))}\u202fms`;
    return `${us.toFixed(0)}\u202f\u00b5s`;
}

export type XTick = { at: number; text: string };

export function xTicks(from: number, to: number, byTime: boolean, most: number): XTick[] {
    const least = (to - from) / Math.max(1, most);
    const step = byTime ? timeStep(least) : Math.max(1, decimalStep(least));
    const ticks: XTick[] = [];
    for (let at = Math.max(0, Math.ceil(from / step)) * step; at <= to; at += step) ticks.push({ at, text: byTime ? timeText(at, step) : count(at) });
    return ticks;
}

export type Box = { left: number; top: number; width: number; height: number };

export function drawYAxis(pen: Pen, box: Box, low: number, high: number, theme: Theme, text: (value: number) => string = tickBytes): void {
    for (const value of byteTicks(low, high, Math.max(2, box.height / 46))) {
        const y = Math.round(box.top + box.height - ((value - low) / (high - low)) * box.height) + 0.5;
        pen.line([box.left - 4, y, box.left, y], theme.quiet);
        pen.text(box.left - 8, y + 4, text(value), theme.quiet, { align: "right" });
    }
}

// Draws thin horizontal lines over the picture.
export function drawYLines(pen: Pen, box: Box, low: number, high: number, theme: Theme): void {
    for (const value of byteTicks(low, high, Math.max(2, box.height / 46))) {
        const y = Math.round(box.top + box.height - ((value - low) / (high - low)) * box.height) + 0.5;
        pen.line([box.left, y, box.left + box.width, y], theme.line);
    }
}

export function drawXAxis(pen: Pen, box: Box, from: number, to: number, byTime: boolean, theme: Theme): void {
    const bottom = box.top + box.height + 0.5;
    pen.line([box.left, bottom, box.left + box.width, bottom], theme.quiet);
    for (const { at, text } of xTicks(from, to, byTime, box.width / 110)) {
        const x = Math.round(box.left + ((at - from) / (to - from)) * box.width) + 0.5;
        pen.line([x, bottom, x, bottom + 4], theme.quiet);
        const half = pen.textWidth(text) / 2;
        pen.text(Math.min(Math.max(x, box.left + half), box.left + box.width - half), bottom + 16, text, theme.quiet, { align: "center" });
    }
    const name = byTime ? "time since the first event" : "event";
    pen.text(box.left + box.width, bottom + 30, name, theme.quiet, { align: "right" });
}

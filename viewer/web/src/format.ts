// Formats numbers: binary units, thousands separators, durations.
import { Exact } from "./exact";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// Rounds to one decimal, ties to the even digit as C does, so that the page and the commands agree.
function oneDecimal(value: number): string {
    const quarters = 4 * value; // a tie is x.25 or x.75, which are exact
    if (quarters % 2 !== 1) return value.toFixed(1);
    const tenths = Math.floor(10 * value);
    return ((tenths + (tenths % 2)) / 10).toFixed(1);
}

export function bytes(value: number): string {
    const sign = value < 0 ? "\u2212" : "";
    let rest = Math.abs(value);
    let unit = 0;
    // Use the next unit when one decimal would round up to 1024.0.
    while (rest >= (unit === 0 ? 1024 : 1023.95) && unit < UNITS.length - 1) {
        rest /= 1024;
        unit++;
    }
    return `${sign}${unit === 0 ? rest : oneDecimal(rest)}\u202f${UNITS[unit]}`;
}

// Created once: toLocaleString() creates one at every call, which would dominate the cost of a mouse move.
const THOUSANDS = new Intl.NumberFormat("en-US");

export function count(value: number): string {
    return (value as unknown) instanceof Exact ? value.toLocaleString("en-US") : THOUSANDS.format(Math.round(value));
}

export function counted(value: number, noun: string): string {
    return `${count(value)} ${noun}${Math.round(value) === 1 ? "" : "s"}`;
}

// Three significant digits, never an exponent.
const threeDigits = (value: number): string => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);

export function duration(us: number): string {
    if (us < 0) return `\u2212${duration(-us)}`;
    // A value that rounds up to the next unit is written in that unit.
    if (us < 999.5) return `${Math.round(us)}\u202f\u00b5s`;
    if (us < 999.5e3) return `${threeDigits(us / 1e3)}\u202fms`;
    if (us < 59.95e6) return `${threeDigits(us / 1e6)}\u202fs`;
    const seconds = Math.round(us / 1e6);
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
    return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
}

export function percent(part: number, whole: number): string {
    if (whole === 0) return "\u2013";
    const share = (100 * part) / whole;
    return `${part !== 0 && Math.abs(share) < 0.1 ? "<0.1" : oneDecimal(share)}\u202f%`;
}

// Joins the halves of a 64-bit integer.
export const whole = (low: number, high: number): bigint => (BigInt(high) << 32n) | BigInt(low);
export const addressText = (low: number, high: number): string => `0x${whole(low, high).toString(16)}`;

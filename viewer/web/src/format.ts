// Numbers for people: binary units, thousands apart, durations.
import { Exact } from "./exact";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

export function bytes(value: number): string {
    const sign = value < 0 ? "\u2212" : "";
    let rest = Math.abs(value);
    let unit = 0;
    while (rest >= 1024 && unit < UNITS.length - 1) {
        rest /= 1024;
        unit++;
    }
    return `${sign}${unit === 0 ? rest : rest.toFixed(rest < 10 ? 2 : rest < 100 ? 1 : 0)}\u202f${UNITS[unit]}`;
}

// Made once: a number's own toLocaleString() makes one at every call, which is most of what a move of the mouse would cost.
const THOUSANDS = new Intl.NumberFormat("en-US");

export function count(value: number): string {
    return (value as unknown) instanceof Exact ? value.toLocaleString("en-US") : THOUSANDS.format(Math.round(value));
}

export function counted(value: number, noun: string): string {
    return `${count(value)} ${noun}${Math.round(value) === 1 ? "" : "s"}`;
}

// Three digits that count, never a power of ten.
const threeDigits = (value: number): string => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);

export function duration(us: number): string {
    if (us < 0) return `\u2212${duration(-us)}`;
    // What rounds up to the next unit is written in it.
    if (us < 999.5) return `${Math.round(us)}\u202f\u00b5s`;
    if (us < 999.5e3) return `${threeDigits(us / 1e3)}\u202fms`;
    if (us < 59.95e6) return `${threeDigits(us / 1e6)}\u202fs`;
    const seconds = Math.round(us / 1e6);
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
    return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
}

export function percent(part: number, whole: number): string {
    return whole === 0 ? "\u2013" : `${((100 * part) / whole).toFixed(1)}\u202f%`;
}

// A whole number of 64 bits out of its halves.
export const whole = (low: number, high: number): bigint => (BigInt(high) << 32n) | BigInt(low);
export const addressText = (low: number, high: number): string => `0x${whole(low, high).toString(16)}`;

// Shared texts of charts: short names, lifetimes, the lines of a tip.
import { bytes, count, duration } from "../format";
import type { Answer } from "../protocol";
import { plainSite, shortFunction } from "../sites";
import { stackLines, type StackFrame } from "../stack";

export type Details = { label?: string; title: string; lines: string[]; stack?: string[] };

// Shortens a long path to "…/models/llama.py:210:forward".
export function shortened(full: string, most = 44): string {
    // Keep the function, without its arguments, and cut the path.
    const name = plainSite(full.replace(/^(.*:-?\d+:)(.*)$/s, (_, place: string, called: string) => place + shortFunction(called)));
    if (name.length <= most) return name;
    const parts = /^(.*\/)?([^/]*)$/s.exec(name)!;
    const tail = parts[2].length > most ? parts[2].slice(-most) : parts[2];
    return `\u2026${tail}`;
}

export const lifeText = (from: number | null, to: number | null): string =>
    from === null ? (to === null ? "allocated before the recording, never freed" : `allocated before the recording, freed at event ${count(to)}`)
    : to === null ? `allocated at event ${count(from)}, never freed` : `events ${count(from)} to ${count(to)}`;

type AllocationJson = {
    label?: string;
    bytes: number;
    birth_event: number | null;
    death_event: number | null;
    birth_time_us?: number;
    death_time_us?: number;
    stream?: number;
    category?: string;
    role?: string;
    frames?: StackFrame[];
    site?: number;
};

const STACK_LINES = 30; // in a tip; fits on a screen

// Returns the lines of a tip from the answer to `allocation`.
export function detailsFrom({ json }: Answer<AllocationJson>): Details {
    const lived = json.birth_time_us !== undefined && json.death_time_us !== undefined ? duration(json.death_time_us - json.birth_time_us) : "";
    const frames = json.frames ?? [];
    const lines = [
        json.label ?? "",
        lifeText(json.birth_event, json.death_event) + (lived ? ` (${lived})` : ""),
        [json.role === "unknown" ? "" : json.role?.replaceAll("_", " "), json.category, json.stream === undefined ? "" : `stream ${json.stream}`].filter((text) => text).join(" \u00b7 "),
    ];
    return { label: json.label, title: bytes(json.bytes), lines, stack: stackLines(frames, json.site, STACK_LINES) };
}

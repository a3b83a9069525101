// Divides a device's memory at a failed request into parts, each byte once.
import { el } from "../dom";
import { bytes, count, counted } from "../format";
import type { Demand } from "./oom-remedies";

export type Holder = { site: string; bytes: number; count: number };
export type Process = { pid: number; name: string; bytes: number | null };
// The holders of the memory outside, if the recording lists them.
export type Accounts = {
    context_bytes: number | null;
    module_bytes: number | null;
    driver_bytes: number | null;
    other_bytes: number | null;
    unknown_bytes: number;
    apart: boolean;
    why: string;
    left_out: number;
    processes: Process[];
};
export type Cause = {
    index: number;
    cause: string;
    host?: boolean; // pinned host memory: the system replaces the driver
    text: string;
    advice: string;
    site: string;
    stream: number;
    segment_bytes?: number;
    reserved_bytes?: number;
    allocated_bytes?: number;
    pending_bytes?: number;
    free_bytes?: number;
    largest_free_bytes?: number;
    usable_bytes?: number;
    usable_largest_bytes?: number;
    usable_pieces?: number;
    demand?: Demand;
    other_stream_bytes?: number;
    other_pool_bytes?: number;
    private_pool_bytes?: number;
    driver_pool_bytes?: number;
    outside_bytes?: number;
    device_total_bytes?: number | null;
    limit_bytes?: number | null;
    pin_bytes?: number;
    pin_blocks?: number;
    pin_site?: string | null;
    holders?: Holder[];
    libraries?: Holder[];
    accounts?: Accounts | null;
};

export type Part = { key: string; name: string; bytes: number; why: string };

// Returns the parts of the device's memory, each byte once.
export function partsOf(cause: Cause, free: number | null): Part[] {
    const held = cause.allocated_bytes ?? 0;
    const inside = cause.free_bytes ?? 0;
    const usable = cause.usable_bytes ?? 0;
    const rest = Math.max(0, (cause.reserved_bytes ?? 0) - held - (cause.pending_bytes ?? 0) - inside);
    return [
        { key: "allocated", name: "allocated", bytes: held, why: "held by the program" },
        { key: "rounding", name: "rounding", bytes: rest, why: "beyond what was requested" },
        { key: "pending", name: "pending", bytes: cause.pending_bytes ?? 0, why: "freed, but another stream may still use it" },
        { key: "usable", name: "free for this request", bytes: usable, why: `in ${counted(cause.usable_pieces ?? 0, "gap")}; the largest is ${bytes(cause.usable_largest_bytes ?? 0)}` },
        { key: "beyond", name: "free for other streams", bytes: cause.other_stream_bytes ?? 0, why: "cached blocks are not shared between streams" },
        { key: "beyond", name: "free for the other size class", bytes: cause.other_pool_bytes ?? 0, why: "requests of up to 1 MiB and larger requests use separate pools" },
        { key: "beyond", name: "free in private pools", bytes: cause.private_pool_bytes ?? 0, why: "kept for CUDA graphs or memory pools" },
        { key: "beyond", name: "free in the driver's pools", bytes: cause.driver_pool_bytes ?? 0, why: "fragmented, or still waiting for streams" },
        ...outsideOf(cause),
        cause.host
            ? { key: "driver", name: "available to the system", bytes: free ?? 0, why: `the request was for ${bytes(cause.segment_bytes ?? 0)}` }
            : { key: "driver", name: "free in the driver", bytes: free ?? 0, why: `a new segment would have needed ${bytes(cause.segment_bytes ?? 0)}` },
    ].filter((part) => part.bytes > 0);
}

// Returns the parts that neither the program nor the driver's free memory accounts for.
function outsideOf(cause: Cause): Part[] {
    const accounts = cause.accounts;
    if (cause.host) return [{ key: "outside", name: "the rest of the system", bytes: cause.outside_bytes ?? 0, why: "other processes, and this process's unpinned memory" }];
    if (!accounts) return [{ key: "outside", name: "outside", bytes: cause.outside_bytes ?? 0, why: "held by other processes, or by this one outside the allocator" }];
    const own: [string, number | null][] = [["contexts", accounts.context_bytes], ["modules", accounts.module_bytes], ["other driver memory", accounts.driver_bytes]];
    const named = own.filter(([, size]) => size).map(([name, size]) => `${name} ${bytes(size!)}`);
    return [
        { key: "context", name: "context", bytes: own.reduce((sum, [, size]) => sum + (size ?? 0), 0), why: `also held by this process: ${named.join(", ")}` },
        { key: "outside", name: "others", bytes: accounts.other_bytes ?? 0, why: accounts.apart ? "other processes" : "other processes, possibly including this one" },
        { key: "unknown", name: "not known", bytes: accounts.unknown_bytes, why: accounts.driver_bytes === null ? "this process's context and other processes" : "owner not known" },
    ];
}

export function bar(parts: Part[]): HTMLElement {
    const row = el("div", { class: "oom-bar", role: "img", "aria-label": parts.map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ") });
    for (const part of parts) {
        const item = el("span", { class: `oom-part is-${part.key}`, title: `${part.name}: ${bytes(part.bytes)}${part.why ? `, ${part.why}` : ""}` });
        item.style.flexGrow = String(part.bytes / 2 ** 20);
        row.append(item);
    }
    return row;
}

export const sentence = (text: string) => (text === "" ? "" : `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`);

export function partsTable(parts: Part[]): HTMLElement {
    const rows = parts.map((part) => el("tr", {}, el("td", {}, el("i", { class: `swatch oom-part is-${part.key}` }), part.name), el("td", { class: "number", title: `${count(part.bytes)} bytes` }, bytes(part.bytes)), el("td", { class: "quiet-text" }, part.why)));
    return el("table", { class: "plain-table" }, el("tbody", {}, ...rows));
}

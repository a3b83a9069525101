// Out of memory: what each failed request asked for, what was free, and why none of it could serve.
import type { App, View } from "../app";
import { add, clear, csvText, el } from "../dom";
import { bytes, count, percent } from "../format";
import type { State } from "../state";

type Holder = { site: string; bytes: number; count: number };
type Process = { pid: number; name: string; bytes: number | null };
// Who held what lies outside, where the recording says so.
type Accounts = {
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
type Cause = {
    index: number;
    cause: string;
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
    other_stream_bytes?: number;
    other_pool_bytes?: number;
    private_pool_bytes?: number;
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
type Ooms = { oom: { index: number; size: number; device_free: number | null }[]; oom_causes: Cause[]; peak_bytes: number; peak_event: number; reserved_peak_bytes: number; reserved_peak_event: number };

const TITLES: Record<string, string> = {
    limit: "A limit of the process",
    fragmented: "Fragmentation",
    pinned: "Fragmentation: few blocks hold much apart",
    other_streams: "Free, but for other streams",
    other_pools: "Free, but for the other size class",
    private_pools: "Free, but in private pools",
    pending: "Freed, but another stream may still use it",
    outside: "Held outside this allocator",
    full: "The memory was in use",
    contradictory: "The recording contradicts itself",
    unknown: "Not examined",
};

type Part = { key: string; name: string; bytes: number; why: string };

// Where the device's memory was, each byte once.
function partsOf(cause: Cause, free: number | null): Part[] {
    const held = cause.allocated_bytes ?? 0;
    const inside = cause.free_bytes ?? 0;
    const usable = cause.usable_bytes ?? 0;
    const rest = Math.max(0, (cause.reserved_bytes ?? 0) - held - (cause.pending_bytes ?? 0) - inside);
    return [
        { key: "allocated", name: "allocated", bytes: held, why: "held by the program" },
        { key: "rounding", name: "rounding", bytes: rest, why: "given beyond what was asked for" },
        { key: "pending", name: "pending", bytes: cause.pending_bytes ?? 0, why: "freed, but another stream may still use it" },
        { key: "usable", name: "free in reach", bytes: usable, why: `in ${count(cause.usable_pieces ?? 0)} pieces; the largest is ${bytes(cause.usable_largest_bytes ?? 0)}` },
        { key: "beyond", name: "free for other streams", bytes: cause.other_stream_bytes ?? 0, why: "a block of one stream is not given to another" },
        { key: "beyond", name: "free for the other size class", bytes: cause.other_pool_bytes ?? 0, why: "requests up to 1 MiB and larger ones have pools of their own" },
        { key: "beyond", name: "free in private pools", bytes: cause.private_pool_bytes ?? 0, why: "kept for CUDA graphs or memory pools" },
        ...outsideOf(cause),
        { key: "driver", name: "free at the driver", bytes: free ?? 0, why: `a new segment would have needed ${bytes(cause.segment_bytes ?? 0)}` },
    ].filter((part) => part.bytes > 0);
}

// What neither the program nor the driver had of the device.
function outsideOf(cause: Cause): Part[] {
    const accounts = cause.accounts;
    if (!accounts) return [{ key: "outside", name: "outside", bytes: cause.outside_bytes ?? 0, why: "of other processes, or of this one past the allocator" }];
    const own: [string, number | null][] = [["contexts", accounts.context_bytes], ["modules", accounts.module_bytes], ["what else the driver took", accounts.driver_bytes]];
    const named = own.filter(([, size]) => size).map(([name, size]) => `${name} ${bytes(size!)}`);
    return [
        { key: "context", name: "context", bytes: own.reduce((sum, [, size]) => sum + (size ?? 0), 0), why: `of this process besides: ${named.join(", ")}` },
        { key: "outside", name: "others", bytes: accounts.other_bytes ?? 0, why: accounts.apart ? "other processes" : "other processes, not told apart from this one" },
        { key: "unknown", name: "not known", bytes: accounts.unknown_bytes, why: accounts.driver_bytes === null ? "this process's context, and whoever else holds the device" : "nobody says whose" },
    ];
}

export function oomView(app: App): View {
    const body = el("div", { class: "scroll-body oom-view" });
    const root = el("div", { class: "fill scroll" }, body);
    let shown: Ooms | null = null;
    let asked = 0;
    let of = "";

    async function load(): Promise<void> {
        const device = app.device();
        if (!device) return;
        const { rec } = app.store.state;
        if (of === `${rec} ${device.device}`) return;
        of = `${rec} ${device.device}`;
        const ticket = ++asked;
        clear(body);
        add(body, el("p", { class: "quiet-text", role: "status" }, "Working it out\u2026"));
        try {
            const answer = await app.engine.ask<Ooms>({ name: "oom", rec, device: device.device });
            if (ticket !== asked) return;
            shown = answer.json;
            paint();
        } catch (error) {
            of = "";
            app.say((error as Error).message);
        }
    }

    const go = (event: number) => app.store.set({ view: "state", event });

    function paint(): void {
        if (!shown) return;
        clear(body);
        if (shown.oom.length === 0) return none(shown);
        const many = shown.oom.length;
        add(body, el("h2", {}, many === 1 ? "One request ran out of memory" : `${count(many)} requests ran out of memory`));
        // The last one is what usually ended the program: it comes first, open.
        [...shown.oom_causes].reverse().slice(0, 200).forEach((cause, i) => {
            const { size, device_free } = shown!.oom[many - 1 - i];
            body.append(card(cause, size, device_free, i === 0));
        });
        if (many > 200) add(body, el("p", { class: "quiet-text" }, `${count(many - 200)} earlier ones are in the list of events (2).`));
    }

    function none(facts: Ooms): void {
        const device = app.device()!;
        add(body, el("h2", {}, "Nothing ran out of memory"));
        const peak = el("button", { type: "button", class: "link", onclick: () => go(facts.peak_event) }, `event ${count(facts.peak_event)}`);
        add(body, el("p", {}, `${device.host ? "The pinned memory" : `Device ${device.device}`} reached ${bytes(facts.peak_bytes)} allocated at `, peak, `, with at most ${bytes(facts.reserved_peak_bytes)} reserved from the driver.`));
        const size = el("input", { type: "number", min: 1, step: 1, value: Math.max(1, cardSize(facts.reserved_peak_bytes)), "aria-label": "Memory of the device in GiB" });
        const verdict = el("p", { class: "oom-room", role: "status" });
        const measure = () => {
            const total = Number(size.value) * 2 ** 30;
            const room = total - facts.reserved_peak_bytes;
            clear(verdict);
            add(verdict, bar([{ key: "allocated", name: "allocated", bytes: facts.peak_bytes, why: "" }, { key: "usable", name: "reserved beyond", bytes: Math.max(0, facts.reserved_peak_bytes - facts.peak_bytes), why: "" }, { key: "driver", name: "left", bytes: Math.max(0, room), why: "" }]));
            add(verdict, room >= 0 ? `${bytes(room)} (${percent(room, total)}) would have been left.` : `${bytes(-room)} more than that was reserved.`);
        };
        size.addEventListener("input", measure);
        add(body, el("label", { class: "oom-size" }, "On a device with ", size, " GiB:"), verdict);
        measure();
    }

    const cardSize = (reserved: number) => [4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 141, 192, 288].find((gib) => gib * 2 ** 30 > reserved) ?? Math.ceil(reserved / 2 ** 30);

    function bar(parts: Part[]): HTMLElement {
        const row = el("div", { class: "oom-bar", role: "img", "aria-label": parts.map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ") });
        for (const part of parts) {
            const item = el("span", { class: `oom-part is-${part.key}`, title: `${part.name}: ${bytes(part.bytes)}${part.why ? `, ${part.why}` : ""}` });
            item.style.flexGrow = String(part.bytes / 2 ** 20);
            row.append(item);
        }
        return row;
    }

    function card(cause: Cause, size: number, free: number | null, open: boolean): HTMLElement {
        const head = el("summary", {}, el("b", {}, `${bytes(size)} asked for`), ` \u00b7 ${TITLES[cause.cause] ?? cause.cause} \u00b7 event ${count(cause.index)}`);
        const box = el("details", { class: "oom-card", open, "data-event": cause.index, "data-cause": cause.cause }, head);
        add(box, el("p", { class: "oom-why" }, `${sentence(cause.text)}${cause.advice ? ` ${sentence(cause.advice)}` : ""}`));
        if (cause.site) add(box, el("p", { class: "quiet-text" }, `asked for at ${cause.site}, stream ${cause.stream}`));
        if (cause.reserved_bytes !== undefined) {
            const parts = partsOf(cause, free);
            add(box, bar(parts), table(parts), request(cause, size));
            if (cause.pin_bytes && cause.pin_blocks) add(box, el("p", {}, `${bytes(cause.pin_bytes)} in ${count(cause.pin_blocks)} block${cause.pin_blocks === 1 ? "" : "s"} would have had to go for it to fit${cause.pin_site ? `; the largest was made at ${cause.pin_site}` : ""}.`));
        }
        if (cause.accounts) add(box, others(cause.accounts));
        if (cause.libraries?.length) add(box, el("h3", {}, "Who asked for it"), holders(cause.libraries));
        if (cause.holders?.length) add(box, el("h3", {}, "What held the memory"), holders(cause.holders));
        add(box, el("p", {}, el("button", { type: "button", onclick: () => go(cause.index) }, "Show segments and blocks at that moment")));
        return box;
    }

    const sentence = (text: string) => (text === "" ? "" : `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`);

    // The request beside the largest piece it could have had, to one scale.
    function request(cause: Cause, size: number): HTMLElement {
        const largest = cause.usable_largest_bytes ?? 0;
        const scale = Math.max(size, largest, 1);
        const line = (name: string, value: number, kind: string) => {
            const fill = el("span", { class: `oom-fill is-${kind}` });
            fill.style.width = `${(100 * value) / scale}%`;
            return [el("dt", {}, name), el("dd", {}, fill, el("span", {}, bytes(value)))];
        };
        return el("dl", { class: "oom-request" }, ...line("asked for", size, "asked"), ...line("largest free piece in reach", largest, "usable"));
    }

    function table(parts: Part[]): HTMLElement {
        const rows = parts.map((part) => el("tr", {}, el("td", {}, el("i", { class: `swatch oom-part is-${part.key}` }), part.name), el("td", { class: "number", title: `${count(part.bytes)} bytes` }, bytes(part.bytes)), el("td", { class: "quiet-text" }, part.why)));
        return el("table", { class: "plain-table" }, el("tbody", {}, ...rows));
    }

    // Names are other processes' own: they go in as text.
    function others(accounts: Accounts): HTMLElement {
        const box = el("div", { class: "oom-others" });
        if (accounts.other_bytes === null) return add(box, el("p", { class: "quiet-text" }, `Other processes are not known${accounts.why ? `: ${accounts.why}` : ""}.`)), box;
        if (accounts.processes.length === 0) return box;
        const rows = accounts.processes.map((process) => el("tr", {}, el("td", { class: "number" }, process.bytes === null ? "not told" : bytes(process.bytes)), el("td", {}, `process ${process.pid}${process.name ? ` (${process.name})` : ""}`)));
        add(box, el("h3", {}, accounts.apart ? "Other processes" : "Processes on the device, of which this may be one"), el("table", { class: "plain-table" }, el("tbody", {}, ...rows)));
        if (accounts.left_out) add(box, el("p", { class: "quiet-text" }, `and ${count(accounts.left_out)} more`));
        return box;
    }

    function holders(list: Holder[]): HTMLElement {
        const most = Math.max(...list.map((holder) => holder.bytes));
        const rows = list.map((holder) => {
            const fill = el("span", { class: "oom-fill is-allocated" });
            fill.style.width = `${(100 * holder.bytes) / most}%`;
            return el("tr", {}, el("td", { class: "number" }, bytes(holder.bytes)), el("td", { class: "number quiet-text" }, `\u00d7 ${count(holder.count)}`), el("td", { class: "oom-holder" }, fill, el("span", {}, holder.site)));
        });
        return el("table", { class: "plain-table" }, el("tbody", {}, ...rows));
    }

    return {
        id: "oom",
        title: "Out of memory",
        key: "7",
        root,
        show: () => void load(),
        update: (_state: State, changed: ReadonlySet<keyof State>) => {
            if (changed.has("rec") || changed.has("device")) void load();
        },
        csv: () =>
            csvText(
                ["event", "requested_bytes", "driver_free_bytes", "cause", "site", "reserved_bytes", "allocated_bytes", "pending_bytes", "free_bytes", "usable_bytes", "usable_largest_bytes", "text"],
                (shown?.oom_causes ?? []).map((cause, i) => [cause.index, shown!.oom[i].size, shown!.oom[i].device_free, cause.cause, cause.site, cause.reserved_bytes, cause.allocated_bytes, cause.pending_bytes, cause.free_bytes, cause.usable_bytes, cause.usable_largest_bytes, cause.text]),
            ),
    };
}

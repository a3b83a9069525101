// One failed request: what it asked for, where the memory was, who held it.
import { add, el } from "../dom";
import { bytes, count, counted } from "../format";
import { bar, partsOf, partsTable, type Accounts, type Cause, type Holder } from "./oom-parts";

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

// With `cure` what would have let it fit stands below why it did not.
export function oomCard(cause: Cause, size: number, free: number | null, open: boolean, go: (event: number) => void, cure: HTMLElement | null): HTMLElement {
    const head = el("summary", {}, el("b", {}, `${bytes(size)} asked for`), ` \u00b7 ${TITLES[cause.cause] ?? cause.cause} \u00b7 event ${count(cause.index)}`);
    const box = el("details", { class: "oom-card", open, "data-event": cause.index, "data-cause": cause.cause }, head);
    add(box, el("p", { class: "oom-why" }, sentence(cause.text), cause.advice ? el("span", { class: "oom-advice" }, ` ${sentence(cause.advice)}`) : null));
    if (cause.site) add(box, el("p", { class: "quiet-text" }, `asked for at ${cause.site}, stream ${cause.stream}`));
    add(box, cure);
    if (cause.reserved_bytes !== undefined) {
        const parts = partsOf(cause, free);
        add(box, bar(parts), partsTable(parts), request(cause, size));
        if (cause.pin_bytes && cause.pin_blocks) add(box, el("p", {}, `${bytes(cause.pin_bytes)} in ${counted(cause.pin_blocks, "block")} would have had to go for it to fit${cause.pin_site ? `; the largest was made at ${cause.pin_site}` : ""}.`));
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

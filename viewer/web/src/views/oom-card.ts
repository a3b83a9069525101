// Describes one failed request: its size, the use of the memory, and the holders.
import { copyText } from "../save";
import { plainSite } from "../sites";
import { framesList, type StackFrame } from "../stack";
import { add, el } from "../dom";
import { bytes, count, counted } from "../format";
import { bar, partsOf, partsTable, sentence, type Accounts, type Cause, type Holder } from "./oom-parts";
import { demandTitle, remediesBox } from "./oom-remedies";

// Titles for pinned host memory.
const HOST_TITLES: Record<string, string> = {
    limit: "Pinned host memory: a limit refused it",
    full: "Pinned host memory was in use",
    outside: "The system's memory was in use elsewhere",
    growth: "Pinned host memory grows from step to step",
};

const TITLES: Record<string, string> = {
    limit: "A limit of the process",
    fragmented: "Fragmentation",
    pinned: "Fragmentation: a few blocks split the free memory",
    other_streams: "Free, but only for other streams",
    other_pools: "Free, but only for the other size class",
    private_pools: "Free, but in private pools",
    pending: "Freed, but another stream may still use it",
    outside: "Held outside this allocator",
    full: "The memory was in use",
    growth: "Memory grows from step to step",
    driver_pools: "Free in the driver's own pools",
    room_unknown: "The available memory was not recorded",
    contradictory: "The recording contradicts itself",
    unknown: "Not examined",
};

export type RequestStack = { frames?: StackFrame[]; site?: number };
export type CardWays = { go(event: number): void; blocks(event: number, site: string): void; all(event: number): void; stack(event: number): Promise<RequestStack> };

// With `cure`, also shows the settings with which it would have fitted.
export function oomCard(cause: Cause, size: number, free: number | null, open: boolean, ways: CardWays, cure: HTMLElement | null): HTMLElement {
    const head = el("summary", {}, el("b", {}, `${bytes(size)} requested`), ` \u00b7 ${(cause.host && HOST_TITLES[cause.cause]) || (cause.cause === "full" && demandTitle(cause.demand)) || (TITLES[cause.cause] ?? cause.cause)} \u00b7 event ${count(cause.index)}`);
    const box = el("details", { class: "oom-card", open, "data-event": cause.index, "data-cause": cause.cause }, head);
    add(box, el("p", { class: "oom-why" }, sentence(cause.text), cause.advice ? el("span", { class: "oom-advice" }, ` ${sentence(cause.advice)}`) : null));
    if (cause.site) add(box, el("p", { class: "quiet-text" }, `requested at ${plainSite(cause.site)}, stream ${cause.stream}`));
    add(box, requestStack(cause.index, ways), cure, remediesBox(cause.demand, ways.go));
    if (cause.reserved_bytes !== undefined) {
        const parts = partsOf(cause, free);
        add(box, bar(parts), partsTable(parts), request(cause, size));
        if (cause.pin_bytes && cause.pin_blocks) add(box, el("p", {}, `${bytes(cause.pin_bytes)} in ${counted(cause.pin_blocks, "block")} would have had to be freed for the request to fit${cause.pin_site ? `; the largest was allocated at ${plainSite(cause.pin_site)}` : ""}.`));
    }
    if (cause.accounts) add(box, others(cause.accounts));
    if (cause.libraries?.length) add(box, el("h3", {}, "By library"), holders(cause.libraries, null));
    if (cause.holders?.length) add(box, el("h3", {}, "What held the memory"), holders(cause.holders, (site) => ways.blocks(cause.index, site), restOf(cause, ways)));
    const copy = el("button", { type: "button", title: "Copy the card's text", onclick: () => void copyText(cardText(box)) }, "Copy as text for an issue");
    add(box, el("p", { class: "oom-ways" }, el("button", { type: "button", onclick: () => ways.go(cause.index) }, "Show segments and blocks at that moment"), " ", copy));
    return box;
}

// Draws the request and the largest piece it could have used, to the same scale.
function request(cause: Cause, size: number): HTMLElement {
    const largest = cause.usable_largest_bytes ?? 0;
    const scale = Math.max(size, largest, 1);
    const line = (name: string, value: number, kind: string) => {
        const fill = el("span", { class: `oom-fill is-${kind}` });
        fill.style.width = `${(100 * value) / scale}%`;
        return [el("dt", {}, name), el("dd", {}, fill, el("span", {}, bytes(value)))];
    };
    return el("dl", { class: "oom-request" }, ...line("requested", size, "asked"), ...line("largest free gap for this request", largest, "usable"));
}

// Lists other processes. Their names are foreign, so they are inserted as text.
function others(accounts: Accounts): HTMLElement {
    const box = el("div", { class: "oom-others" });
    if (accounts.other_bytes === null) return add(box, el("p", { class: "quiet-text" }, `Other processes are not known${accounts.why ? `: ${accounts.why}` : ""}.`)), box;
    if (accounts.processes.length === 0) return box;
    const rows = accounts.processes.map((process) => el("tr", {}, el("td", { class: "number" }, process.bytes === null ? "not known" : bytes(process.bytes)), el("td", {}, `process ${process.pid}${process.name ? ` (${process.name})` : ""}`)));
    add(box, el("h3", {}, accounts.apart ? "Other processes" : "Processes on the device, possibly including this one"), el("table", { class: "plain-table" }, el("tbody", {}, ...rows)));
    if (accounts.left_out) add(box, el("p", { class: "quiet-text" }, `and ${count(accounts.left_out)} more`));
    return box;
}

const unfolded = new Set<number>(); // events whose stack is open

// The failed request's stack, queried when it is opened.
function requestStack(event: number, ways: CardWays): HTMLElement {
    const body = el("div", {});
    // A card that is created again has the same parts open as before.
    const remember = () => (box.open ? unfolded.delete(event) : unfolded.add(event)); // a click comes before its effect
    const box = el("details", { class: "oom-stack", open: unfolded.has(event) }, el("summary", { onclick: remember }, "The request's call stack"), body);
    box.addEventListener("toggle", () => {
        if (!box.open || body.childElementCount > 0) return;
        void ways.stack(event).then(
            ({ frames, site }) => body.replaceChildren(framesList(frames ?? [], site)),
            (error: Error) => body.replaceChildren(el("p", { class: "quiet-text" }, error.message)),
        );
    });
    return box;
}

// Returns the card's text without buttons; a table row is one line.
export function cardText(box: HTMLElement): string {
    const lines = [...box.querySelectorAll<HTMLElement>("summary, p:not(.oom-ways), h3, tr, dt, li")].filter((part) => !part.closest("li.fold") && !(part.tagName === "P" && part.closest("td")));
    const text = (part: HTMLElement) => (part.tagName === "TR" ? [...part.querySelectorAll("td, th")].map((cell) => cell.textContent!.trim()).join("  ") : part.tagName === "DT" ? `${part.textContent}: ${part.nextElementSibling?.textContent ?? ""}` : part.textContent!);
    return lines.map((part) => `${part.tagName === "SUMMARY" && part.parentElement === box ? "### " : part.tagName === "H3" ? "\n**" : part.tagName === "P" ? "" : "- "}${text(part).trim()}${part.tagName === "H3" ? "**" : ""}`).join("\n");
}

// Returns a row for the memory outside the listed sites, with a link to all sites.
function restOf(cause: Cause, ways: CardWays): HTMLElement | null {
    const rest = (cause.allocated_bytes ?? 0) - cause.holders!.reduce((sum, holder) => sum + holder.bytes, 0);
    if (rest <= 0) return null;
    return el("tr", {}, el("td", { class: "number" }, bytes(rest)), el("td", {}), el("td", { class: "oom-holder" }, el("button", { type: "button", class: "link", title: "What held the memory at that moment", onclick: () => ways.all(cause.index) }, "all others")));
}

function holders(list: Holder[], lead: ((site: string) => void) | null, rest: HTMLElement | null = null): HTMLElement {
    const most = Math.max(...list.map((holder) => holder.bytes));
    const rows = list.map((holder) => {
        const fill = el("span", { class: "oom-fill is-allocated" });
        fill.style.width = `${(100 * holder.bytes) / most}%`;
        return el("tr", { "data-site": holder.site }, el("td", { class: "number" }, bytes(holder.bytes)), el("td", { class: "number quiet-text" }, `\u00d7 ${count(holder.count)}`), el("td", { class: "oom-holder" }, fill, lead && !holder.site.startsWith("<") ? el("button", { type: "button", class: "link", title: "Its blocks at that moment", onclick: () => lead(holder.site) }, plainSite(holder.site)) : el("span", {}, plainSite(holder.site))));
    });
    return el("table", { class: "plain-table" }, el("tbody", {}, ...rows, rest));
}

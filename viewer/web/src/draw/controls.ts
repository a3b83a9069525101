// The controls around a chart: the choice of colours, and a table of the canvas's contents.
import type { App } from "../app";
import { clear, el } from "../dom";
import { bytes, whole } from "../format";
import type { Answer, Numbers } from "../protocol";
import type { Chart } from "./chart";
import { about, byOf } from "./stacked";
import { lifeText, shortened } from "./tips";

const GROUPINGS: readonly [string, string][] = [
    ["site", "call site"],
    ["stack", "call stack"],
    ["function", "function"],
    ["file", "file"],
    ["role", "role"],
    ["module", "module"],
    ["category", "category"],
    ["annotation", "annotation"],
    ["pool", "pool"],
    ["stream", "stream"],
    ["thread", "thread"],
    ["size", "size"],
    ["context", "compile context"],
    ["metadata", "metadata"],
];

export function bySelect(app: App): { root: HTMLElement; update(): void } {
    const select = el("select", { "aria-label": "Colour by" }, ...GROUPINGS.map(([value, text]) => el("option", { value }, text)));
    select.addEventListener("change", () => app.store.set({ by: select.value, legend: "" }));
    return {
        root: el("label", { class: "chart-by" }, el("span", { class: "quiet" }, "Colour by"), select),
        update: () => {
            select.value = byOf(app);
        },
    };
}

export const ROWS_HEADER = ["label", "bytes", "birth_event", "death_event", "birth_time_us", "death_time_us", "stream", "call_site"] as const;
type Row = [string, number, number | null, number | null, number | null, number | null, string, string];

function rowsOf(answer: Answer<{ groups: string[] }>): Row[] {
    const column = (name: string): Numbers => answer.column(name);
    const [low, high, version, size, birth, death] = ["address_low", "address_high", "version", "bytes", "birth", "death"].map(column);
    const [born, died, streamLow, streamHigh, hasStream, group] = ["birth_time", "death_time", "stream_low", "stream_high", "stream_known", "group"].map(column);
    const known = (value: number) => (Number.isNaN(value) ? null : value);
    return Array.from({ length: low.length }, (_, i) => [
        `b${whole(low[i], high[i]).toString(16)}_${version[i]}`,
        size[i],
        known(birth[i]),
        known(death[i]),
        known(born[i]),
        known(died[i]),
        hasStream[i] === 0 ? "" : String(BigInt.asIntN(64, whole(streamLow[i], streamHigh[i]))),
        answer.json.groups[group[i]] ?? "",
    ]);
}

// A table of the largest allocations in the window, folded by default.
export function largestTable(app: App, chart: Chart): { root: HTMLDetailsElement; update(): void; rows(limit: number): Promise<{ header: readonly string[]; rows: Row[] }> } {
    const body = el("tbody", {});
    const head = el("tr", {}, ...["Allocation", "Size", "Lifetime", "Call site"].map((text) => el("th", { scope: "col" }, text)));
    const root = el("details", { class: "chart-table" }, el("summary", {}, "Table: the largest allocations in the window"), el("div", { class: "chart-scroll" }, el("table", {}, el("thead", {}, head), body)));
    let asked = "";
    async function rows(limit: number): Promise<{ header: readonly string[]; rows: Row[] }> {
        const { from, to } = app.window();
        const { axis, notion } = app.store.state;
        const answer = await app.engine.ask<{ groups: string[] }>({ name: "allocations", ...about(app), axis, from, to, notion, limit, by: "site" });
        return { header: ROWS_HEADER, rows: rowsOf(answer).sort((a, b) => b[1] - a[1]) };
    }
    async function fill(): Promise<void> {
        const { from, to } = app.window();
        const { axis, notion, rec, device } = app.store.state;
        const key = JSON.stringify([from, to, axis, notion, rec, device]);
        if (!root.open || key === asked || !app.device()) return;
        asked = key;
        const largest = (await rows(100)).rows;
        if (key !== asked) return;
        clear(body);
        for (const [label, size, birth, death, , , , site] of largest) {
            const pick = el("button", { type: "button", class: "link" }, label);
            pick.addEventListener("click", () => app.store.set({ pick: label }));
            body.append(el("tr", {}, el("td", {}, pick), el("td", { class: "number" }, bytes(size)), el("td", {}, lifeText(birth, death)), el("td", { title: site }, shortened(site, 80))));
        }
    }
    root.addEventListener("toggle", () => {
        void fill().catch((error) => app.say((error as Error).message));
        chart.schedule();
    });
    return { root, update: () => void fill().catch((error) => app.say((error as Error).message)), rows };
}

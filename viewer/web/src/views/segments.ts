// Segments over time: memory reserved from the driver, and mapped memory of expandable segments, in a lane per pool, size class and stream.
import type { App, View } from "../app";
import { clear, csvText, el } from "../dom";
import { Chart, type Source } from "../draw/chart";
import { about, windowQuestion } from "../draw/stacked";
import { addressText, bytes, duration } from "../format";
import type { Answer } from "../protocol";
import { lanesScene, namesWidth, type LanesJson } from "./segments-lanes";
import { lifeText, type Details } from "../draw/tips";

type SegmentJson = {
    row: number;
    label: string;
    bytes: number;
    birth_event: number | null;
    death_event: number | null;
    birth_time_us?: number;
    death_time_us?: number;
    stream: number;
    pool_name: string;
    mapped: boolean;
};

const reservedAt = (birth: number | null, death: number | null) => lifeText(birth, death).replace("allocated at", "reserved at").replace("freed", "given back");

function source(app: App, hear: (answer: Answer<LanesJson>) => void): Source {
    return {
        name: "Segments over time",
        empty: "This recording has no segments.",
        left: namesWidth,
        ask: async (wanted, theme) => {
            const answer = await app.engine.ask<LanesJson>({ name: "segments", ...about(app), ...windowQuestion(app, wanted), lanes: 1, limit: 4000 });
            hear(answer);
            return lanesScene(answer, theme, app);
        },
        details: async (row): Promise<Details> => {
            const { json } = await app.engine.ask<SegmentJson>({ name: "allocation", ...about(app), segment: row });
            const lived = json.birth_time_us !== undefined && json.death_time_us !== undefined ? ` (${duration(json.death_time_us - json.birth_time_us)})` : "";
            const what = json.mapped ? "mapped, of an expandable segment" : "a segment";
            return { label: json.label, title: `${bytes(json.bytes)} ${what}`, lines: [json.label, `${json.pool_name}, stream ${json.stream}`, reservedAt(json.birth_event, json.death_event) + lived] };
        },
        rowOf: async (label) => {
            if (!label.startsWith("s")) return null;
            return (await app.engine.ask<{ row: number }>({ name: "allocation", ...about(app), label })).json.row;
        },
    };
}

type Listed = { row: number; address: string; bytes: number; birth: number | null; death: number | null; mapped: boolean; lane: string };

function listed(answer: Answer<LanesJson>): Listed[] {
    const [row, size, group, birth, death, low, high, mapped] = ["row", "bytes", "group", "birth", "death", "address_low", "address_high", "mapped"].map((name) => answer.column(name));
    const known = (value: number) => (Number.isNaN(value) ? null : value);
    return Array.from(row, (_, i) => ({ row: row[i], address: addressText(low[i], high[i]), bytes: size[i], birth: known(birth[i]), death: known(death[i]), mapped: mapped[i] !== 0, lane: answer.json.lanes[group[i]].name }));
}

// Tables of the lanes and the largest segments, folded by default.
class Table {
    private readonly lanes = el("tbody", {});
    private readonly segments = el("tbody", {});
    readonly root: HTMLDetailsElement;
    private answer: Answer<LanesJson> | null = null;

    constructor(private readonly choose: (row: number) => void) {
        const table = (label: string, titles: string[], body: HTMLElement) => el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, ...titles.map((text) => el("th", { scope: "col" }, text)))), body);
        this.root = el(
            "details",
            { class: "chart-table" },
            el("summary", {}, "Table: lanes, and the largest segments in the window"),
            el("div", { class: "chart-scroll" }, table("Lanes", ["Lane", "At most"], this.lanes), table("Segments", ["Segment", "Lane", "Size", "Lifetime"], this.segments)),
        );
        this.root.addEventListener("toggle", () => this.fill());
    }

    show(answer: Answer<LanesJson>): void {
        this.answer = answer;
        this.fill();
    }

    private fill(): void {
        if (!this.root.open || !this.answer) return;
        clear(this.lanes);
        clear(this.segments);
        for (const lane of this.answer.json.lanes) this.lanes.append(el("tr", {}, el("td", {}, lane.name), el("td", { class: "number", "data-bytes": lane.peak_bytes }, bytes(lane.peak_bytes))));
        for (const item of listed(this.answer).sort((a, b) => b.bytes - a.bytes).slice(0, 100)) {
            const pick = el("button", { type: "button", class: "link", onclick: () => this.choose(item.row) }, item.address);
            this.segments.append(el("tr", {}, el("td", {}, pick), el("td", {}, item.lane + (item.mapped ? ", mapped" : "")), el("td", { class: "number" }, bytes(item.bytes)), el("td", {}, reservedAt(item.birth, item.death))));
        }
    }
}

export function segmentsView(app: App): View {
    const table = new Table((row) => void chart.pick(row));
    let shown: Answer<LanesJson> | null = null;
    const chart: Chart = new Chart(
        app,
        source(app, (answer) => {
            shown = answer;
            table.show(answer);
        }),
    );
    chart.bar.append(el("span", { class: "quiet" }, "one lane per pool, size class and stream; the line shows memory in use"), chart.legend);
    const root = el("div", { class: "fill chart-view" }, chart.root, table.root);
    let lane = -1;

    // Picks the first segment of the next lane that has one.
    function walkLanes(by: 1 | -1): void {
        const all = shown ? listed(shown) : [];
        const lanes = shown?.json.lanes ?? [];
        for (let at = lane + by; at >= 0 && at < lanes.length; at += by) {
            const first = all.find((item) => item.lane === lanes[at].name);
            if (!first) continue;
            lane = at;
            return void chart.pick(first.row);
        }
    }

    return {
        id: "segments",
        title: "Segments over time",
        tab: "Segments",
        key: "3",
        root,
        keys: [
            ["[ ]", "previous and next segment"],
            ["{ }", "the lane above, the lane below"],
            ["z", "zoom to the selected segment"],
        ],
        show: () => chart.show(),
        hide: () => chart.leave(),
        update: (state, changed) => {
            if (changed.has("rec") || changed.has("device")) lane = -1;
            chart.update(state, changed);
        },
        onKey: (event) => {
            if (event.key === "{" || event.key === "}") {
                walkLanes(event.key === "}" ? 1 : -1);
                return true;
            }
            return chart.onKey(event);
        },
        svg: () => chart.svg(`Segments over time of ${app.recording()?.name ?? ""}`),
        csv: async () => {
            const { from, to } = app.window();
            const answer = await app.engine.ask<LanesJson>({ name: "segments", ...about(app), axis: app.store.state.axis, from, to, lanes: 1, limit: 8192, pixels: 1 });
            const lines = listed(answer).map((item) => [item.address, item.bytes, item.birth, item.death, item.mapped ? 1 : 0, item.lane]);
            return csvText(["address", "bytes", "birth_event", "death_event", "mapped", "lane"], lines);
        },
    };
}

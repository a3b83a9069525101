// Segments over time: what was reserved from the driver, and of expandable segments what was mapped, by pool and stream.
import type { App, View } from "../app";
import { csvText, el } from "../dom";
import { Chart, lifeText, type Details, type Source } from "../draw/chart";
import { about, stackedScene, windowQuestion, type Kind, type StackedJson } from "../draw/stacked";
import { bytes, duration } from "../format";

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

function source(app: App): Source {
    const kind: Kind = {
        total: "reserved",
        noun: "segments",
        lines: ({ allocated, active }) => [
            { name: "active", colour: "active", values: active, dash: [5, 3] },
            { name: "allocated", colour: "text", values: allocated },
        ],
    };
    return {
        name: "Segments over time",
        empty: "This recording has no segments.",
        ask: async (wanted, theme) =>
            stackedScene(await app.engine.ask<StackedJson>({ name: "segments", ...about(app), ...windowQuestion(app, wanted), limit: 4000 }), kind, theme, app),
        details: async (row): Promise<Details> => {
            const { json } = await app.engine.ask<SegmentJson>({ name: "allocation", ...about(app), segment: row });
            const lived = json.birth_time_us !== undefined && json.death_time_us !== undefined ? ` (${duration(json.death_time_us - json.birth_time_us)})` : "";
            const what = json.mapped ? "mapped, of an expandable segment" : "a segment";
            const life = lifeText(json.birth_event, json.death_event).replace("allocated at", "reserved at");
            return { label: json.label, title: `${bytes(json.bytes)} ${what}`, lines: [json.label, `${json.pool_name}, stream ${json.stream}`, life + lived] };
        },
        rowOf: async (label) => {
            if (!label.startsWith("s")) return null;
            return (await app.engine.ask<{ row: number }>({ name: "allocation", ...about(app), label })).json.row;
        },
    };
}

export function segmentsView(app: App): View {
    const chart = new Chart(app, source(app));
    chart.bar.append(el("span", { class: "quiet" }, "By pool and stream"), chart.legend);
    const root = el("div", { class: "fill chart-view" }, chart.root);
    return {
        id: "segments",
        title: "Segments over time",
        key: "3",
        root,
        keys: [
            ["[ ]", "previous and next segment"],
            ["z", "zoom to the picked segment"],
        ],
        show: () => chart.show(),
        update: (state, changed) => chart.update(state, changed),
        onKey: (event) => chart.onKey(event),
        svg: () => chart.svg(`Segments over time of ${app.recording()?.name ?? ""}`),
        csv: async () => {
            const { from, to } = app.window();
            const answer = await app.engine.ask<StackedJson>({ name: "segments", ...about(app), axis: app.store.state.axis, from, to, limit: 8192, pixels: 1 });
            const [row, size, group] = ["row", "bytes", "group"].map((name) => answer.column(name));
            const [birth, death, address, mapped] = ["birth", "death", "address", "mapped"].map((name) => answer.column(name));
            const known = (value: number) => (Number.isNaN(value) ? null : value);
            const lines = Array.from(row, (_, i) => [`0x${address[i].toString(16)}`, size[i], known(birth[i]), known(death[i]), mapped[i], answer.json.groups[group[i]]]);
            return csvText(["address", "bytes", "birth_event", "death_event", "mapped", "pool_and_stream"], lines);
        },
    };
}


// The active memory timeline: a shape for every allocation in the window, stacked in order of allocation.
import type { App, View } from "../app";
import { csvText, el } from "../dom";
import { Chart } from "../draw/chart";
import { bySelect, largestTable } from "../draw/controls";
import { RangeFacts } from "../draw/range";
import { allocationSource } from "../draw/stacked";

export function timelineView(app: App): View {
    const chart = new Chart(app, allocationSource(app));
    const by = bySelect(app);
    const table = largestTable(app, chart);
    const range = new RangeFacts(app);
    chart.bar.append(by.root, chart.legend);
    const root = el("div", { class: "fill chart-view" }, chart.root, range.root, table.root);

    return {
        id: "timeline",
        title: "Active memory timeline",
        tab: "Timeline",
        key: "1",
        root,
        keys: [
            ["w s", "zoom in and out"],
            ["a d", "earlier, later"],
            ["[ ]", "previous and next allocation"],
            ["z", "zoom to the selected allocation"],
            ["Esc", "pick nothing"],
        ],
        show: () => {
            by.update();
            chart.show();
            table.update();
            range.update();
        },
        hide: () => chart.leave(),
        update: (state, changed) => {
            by.update();
            chart.update(state, changed);
            table.update();
            range.update();
        },
        onKey: (event) => chart.onKey(event),
        svg: () => chart.svg(`Active memory timeline of ${app.recording()?.name ?? ""}`),
        csv: async () => {
            const { header, rows } = await table.rows(8192);
            return csvText(header, rows);
        },
    };
}

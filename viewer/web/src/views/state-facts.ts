// The numbers of a moment, and the meaning of its colours.
import { add, clear, el } from "../dom";
import { css } from "../draw/colour";
import { bytes, count, counted, percent } from "../format";
import { plainSite } from "../sites";
import type { Moment, StateSums } from "./state-picture";

export function describe(facts: HTMLElement, sums: StateSums, events: number): void {
    const exact = (value: number) => el("dd", { title: `${count(value)} bytes`, "data-bytes": value }, bytes(value));
    // Memory in wholly free segments is cached, not fragmented.
    const holes = sums.free_bytes - sums.cached_bytes;
    const rows: [key: string, name: string, value: HTMLElement, title?: string][] = [
        ["event", "after event", el("dd", {}, sums.event < 0 ? "none" : `${count(sums.event)} of ${count(events)}`)],
        ["allocated", "allocated", exact(sums.requested_bytes), "requested and not freed"],
        ["rounding", "rounding", exact(Math.max(0, sums.allocated_bytes - sums.requested_bytes)), "block sizes beyond what was requested"],
        ["active", "active", exact(sums.allocated_bytes + sums.pending_bytes), "blocks in use or waiting for another stream, including rounding"],
        ["reserved", "reserved", exact(sums.reserved_bytes)],
        ["free", "free inside", exact(sums.free_bytes)],
        ["largest", "largest free block", exact(sums.largest_free_bytes)],
        ["cached", "cached", exact(sums.cached_bytes), "of the free memory: in completely free segments, which empty_cache() releases"],
        ["fragmentation", "fragmentation", el("dd", {}, holes === 0 ? percent(0, 1) : percent(holes - sums.largest_hole_bytes, holes)), "of the free memory in partly used segments, the fraction outside the largest free piece"],
    ];
    if (sums.outside_bytes > 0) rows.push(["outside", "in no segment", exact(sums.outside_bytes), "blocks whose segment the recording does not name"]);
    clear(facts);
    for (const [key, name, value, title] of rows) add(facts, el("div", { "data-fact": key, title }, el("dt", {}, name), value));
}

function siteSwatch(moment: Moment, site: number): HTMLElement {
    const swatch = el("canvas", { class: "swatch", width: 10, height: 10 });
    const context = swatch.getContext("2d")!;
    context.fillStyle = css(moment.siteColour(site));
    context.fillRect(0, 0, 10, 10);
    return swatch;
}

export function explain(legend: HTMLElement, moment: Moment, byState: boolean, searching: boolean, lineBytes: number): void {
    const sums = moment.json;
    const key = (style: string, text: string) => el("span", { class: "legend-item" }, el("i", { class: `swatch ${style}` }), text);
    clear(legend);
    if (byState) add(legend, key("is-allocated", "allocated"));
    add(legend, key("is-pending", "freed, waiting for another stream"), key("is-rounding", "rounding"), key("is-free", "free"));
    if (searching) add(legend, key("is-unfound", "live, not found by the search"));
    add(legend, el("span", { class: "quiet-text" }, `one line \u2248 ${bytes(lineBytes)}`));
    if (sums.grain_bytes > 0) add(legend, el("span", { class: "quiet-text" }, `${counted(sums.blocks, "block")}: neighbours below ${bytes(sums.grain_bytes)} are drawn as one`));
    if (byState) return;
    for (const site of sums.sites.slice(0, 6)) add(legend, el("span", { class: "legend-item", title: site.name }, siteSwatch(moment, site.site), `${plainSite(site.name).split("/").at(-1)} ${bytes(site.bytes)}`));
}

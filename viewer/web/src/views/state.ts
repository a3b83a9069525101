// Allocator state history: the list of events, and segments and blocks as they were after the chosen one.
import type { App, View } from "../app";
import { add, clear, csvText, el } from "../dom";
import { css, themeOf, type Theme } from "../draw/colour";
import { CanvasPen, SvgPen } from "../draw/pen";
import type { Question } from "../engine";
import { bytes, count, percent } from "../format";
import { latest } from "../latest";
import { download } from "../save";
import type { State } from "../state";
import { EventList } from "./state-list";
import { arrange, BEFORE, ESTIMATED, Moment, PENDING, Picture, poolText, streamText, type Sorting, type StateSums } from "./state-picture";

const FILTERS: readonly (readonly [string, string])[] = [
    ["all events", ""],
    ["alloc and free", "alloc,free_requested,free_completed,free"],
    ["alloc", "alloc"],
    ["segments", "segment_alloc,segment_free,segment_map,segment_unmap"],
    ["out of memory", "oom"],
    ["marks", "snapshot,user_defined,annotate"],
];

// The vermilion of Okabe and Ito: what rounding takes.
const ROUNDING = "#d55e00";

export function stateView(app: App): View {
    const facts = el("dl", { class: "state-facts", "aria-live": "polite" });
    const canvas = el("canvas", { role: "img", tabindex: 0, "aria-label": "Segments and blocks" });
    const tip = el("div", { class: "state-tip", role: "tooltip", hidden: true });
    const legend = el("div", { class: "state-legend" });
    const stage = el("div", { class: "state-stage" }, canvas, tip);
    const scrub = el("input", { type: "range", class: "state-scrub", min: -1, "aria-label": "Moment: after which event" });
    const filter = el("select", { "aria-label": "Which events" }, ...FILTERS.map(([title, value]) => el("option", { value }, title)));
    const found = el("input", { type: "checkbox", id: "state-found" });
    const shown = el("span", { class: "quiet-text" });
    const saveList = el("button", { type: "button", class: "quiet", title: "Save the list of events as CSV", onclick: () => void saveEvents() }, "CSV");
    const sorting = el("select", { "aria-label": "Order of segments" }, ...["pool", "stream", "size", "address"].map((name) => el("option", { value: name }, `by ${name}`)));
    const colouring = el("select", { "aria-label": "Colour of blocks" }, el("option", { value: "state" }, "coloured by state"), el("option", { value: "site" }, "coloured by call site"));
    const ask = latest<StateSums>(app.engine);
    let picture: Picture | null = null;
    let perPixel = 0;
    let hover: { place: number; block: number } | null = null;
    let ooms: number[] = [];
    let oomsOf = "";
    let scheduled = false;

    const list = new EventList(
        app,
        (event) => app.store.set({ event }),
        (some, all) => (shown.textContent = some === all ? `${count(all)} events` : `${count(some)} of ${count(all)} events`),
    );
    const button = (text: string, title: string, go: () => void) => el("button", { type: "button", class: "quiet", title, onclick: go }, text);
    const jumps = el(
        "div",
        { class: "state-jumps", role: "group", "aria-label": "Jump to" },
        button("start", "Before the first event (Home)", () => choose(-1)),
        button("peak", "The moment of the peak (m)", () => choose(app.device()?.peak_event ?? -1)),
        button("\u2039 OOM", "The out-of-memory event before (p)", () => jumpOom(-1)),
        button("OOM \u203a", "The next out-of-memory event (n)", () => jumpOom(1)),
        button("end", "After the last event (End)", () => choose(last())),
    );
    const root = el(
        "div",
        { class: "fill state-view" },
        el("div", { class: "state-left" }, el("div", { class: "state-tools" }, filter, el("label", { for: "state-found" }, found, " found only"), shown, saveList), list.root),
        el("div", { class: "state-right" }, el("div", { class: "state-tools" }, jumps, scrub, sorting, colouring), facts, stage, legend),
    );

    async function saveEvents(): Promise<void> {
        saveList.disabled = true;
        try {
            download(new Blob(await list.csv(), { type: "text/csv" }), "events.csv");
        } catch (error) {
            app.say((error as Error).message);
        }
        saveList.disabled = false;
    }

    const last = () => (app.device()?.events ?? 0) - 1;
    const moment = () => (Number.isNaN(app.store.state.event) ? last() : Math.max(-1, Math.min(app.store.state.event, last())));
    const choose = (event: number) => app.store.set({ event: Math.max(-1, Math.min(event, last())) });

    function question(): Question {
        const { rec, search, regex } = app.store.state;
        const text = found.checked && search !== "" ? search : undefined;
        return { name: "events", rec, device: app.device()?.device, action: filter.value || undefined, text, regex: text !== undefined && regex ? 1 : undefined };
    }

    async function jumpOom(by: number): Promise<void> {
        const at = moment();
        const next = by > 0 ? ooms.find((event) => event > at) : ooms.filter((event) => event < at).at(-1);
        if (next !== undefined) choose(next);
    }

    async function findOoms(): Promise<void> {
        const { rec } = app.store.state;
        const device = app.device();
        if (!device || oomsOf === `${rec} ${device.device}`) return;
        oomsOf = `${rec} ${device.device}`;
        ooms = [];
        const answer = await app.engine.ask({ name: "events", rec, device: device.device, action: "oom", count: 65536 });
        ooms = [...answer.column("event")];
        for (const item of jumps.querySelectorAll("button")) if (item.textContent!.includes("OOM")) item.disabled = ooms.length === 0;
    }

    async function load(): Promise<void> {
        const device = app.device();
        if (!device) return;
        scrub.max = String(last());
        scrub.value = String(moment());
        try {
            void list.show(question(), moment());
            void findOoms();
            const answer = await ask({ name: "state", rec: app.store.state.rec, device: device.device, event: moment() });
            if (!answer) return;
            arrangeAnew(new Moment(answer));
        } catch (error) {
            app.say((error as Error).message);
        }
    }

    function arrangeAnew(shownMoment: Moment): void {
        const width = Math.max(50, stage.clientWidth - 2);
        const height = Math.max(60, stage.clientHeight - 4);
        const layout = arrange(shownMoment, sorting.value as Sorting, width, height, perPixel);
        perPixel = layout.perPixel;
        picture = new Picture(shownMoment, layout);
        hover = null;
        tip.hidden = true;
        describe(shownMoment.json);
        explain(shownMoment.json);
        paint();
    }

    function describe(sums: StateSums): void {
        clear(facts);
        const exact = (value: number) => el("dd", { title: `${count(value)} bytes`, "data-bytes": value }, bytes(value));
        const fragmented = sums.free_bytes === 0 ? 0 : sums.free_bytes - sums.largest_free_bytes;
        add(facts, el("div", { "data-fact": "event" }, el("dt", {}, "after event"), el("dd", {}, sums.event < 0 ? "none" : `${count(sums.event)} of ${count(last() + 1)}`)));
        const rows: [string, string, HTMLElement][] = [
            ["allocated", "allocated", exact(sums.allocated_bytes)],
            ["rounding", "rounding", exact(Math.max(0, sums.allocated_bytes - sums.requested_bytes))],
            ["active", "active", exact(sums.allocated_bytes + sums.pending_bytes)],
            ["reserved", "reserved", exact(sums.reserved_bytes)],
            ["free", "free inside", exact(sums.free_bytes)],
            ["largest", "largest free block", exact(sums.largest_free_bytes)],
        ];
        for (const [key, name, value] of rows) add(facts, el("div", { "data-fact": key }, el("dt", {}, name), value));
        add(facts, el("div", { "data-fact": "fragmentation", title: "share of the free memory that is not the largest piece" }, el("dt", {}, "fragmentation"), el("dd", {}, percent(fragmented, sums.free_bytes))));
        if (sums.outside_bytes > 0) add(facts, el("div", { "data-fact": "outside", title: "blocks whose segment the recording does not name" }, el("dt", {}, "in no segment"), exact(sums.outside_bytes)));
        canvas.setAttribute("aria-label", `${count(sums.segments)} segments with ${count(sums.blocks)} blocks: ${bytes(sums.allocated_bytes)} allocated of ${bytes(sums.reserved_bytes)} reserved`);
    }

    function explain(sums: StateSums): void {
        clear(legend);
        const key = (style: string, text: string, title = "") => el("span", { class: "legend-item", title }, el("i", { class: `swatch ${style}` }), text);
        if (colouring.value === "state") add(legend, key("is-allocated", "allocated"));
        add(legend, key("is-pending", "freed, waits for another stream"), key("is-rounding", "rounding"), key("is-free", "free"));
        add(legend, el("span", { class: "quiet-text" }, `one line \u2248 ${bytes(perPixel * (picture?.layout.width ?? 0))}`));
        if (colouring.value === "site") for (const site of sums.sites.slice(0, 6)) add(legend, el("span", { class: "legend-item", title: site.name }, siteSwatch(site.site), `${site.name.split("/").at(-1)} ${bytes(site.bytes)}`));
    }

    function siteSwatch(site: number): HTMLElement {
        const swatch = el("canvas", { class: "swatch", width: 10, height: 10 });
        const context = swatch.getContext("2d")!;
        context.fillStyle = css(picture!.moment.siteColour(site));
        context.fillRect(0, 0, 10, 10);
        return swatch;
    }

    function look(theme: Theme) {
        const matches = app.matches();
        const { search, pick } = app.store.state;
        return { byState: colouring.value === "state", pick, hover, matches: matches && search !== "" ? (row: number, stack: number) => matches.has(row, stack) : null, theme, rounding: ROUNDING };
    }

    function paint(): void {
        if (scheduled) return;
        scheduled = true;
        requestAnimationFrame(() => {
            scheduled = false;
            if (!picture) return;
            const ratio = devicePixelRatio;
            const { width, height } = picture.layout;
            const tall = Math.max(height, stage.clientHeight - 4);
            canvas.width = Math.round((width + 2) * ratio);
            canvas.height = Math.round(tall * ratio);
            canvas.style.height = `${tall}px`;
            const context = canvas.getContext("2d")!;
            context.scale(ratio, ratio);
            picture.paint(new CanvasPen(context), look(themeOf(root)));
        });
    }

    function onMove(event: PointerEvent): void {
        const hit = picture?.find(event.offsetX, event.offsetY) ?? null;
        const before = hover;
        hover = hit && { place: hit.place, block: hit.block };
        if (before?.place !== hover?.place || before?.block !== hover?.block) paint();
        tip.hidden = !hit;
        if (!hit) return;
        fillTip(hit.segment, hit.block, hit.offset);
        const box = stage.getBoundingClientRect();
        const x = event.clientX - box.left;
        const y = event.clientY - box.top;
        tip.style.left = `${Math.min(x + 14, stage.clientWidth - tip.offsetWidth - 4)}px`;
        tip.style.top = `${y + 18 + tip.offsetHeight > stage.clientHeight ? Math.max(0, y - tip.offsetHeight - 10) : y + 18}px`;
    }

    function fillTip(segment: number, block: number, offset: number): void {
        const { moment: now } = picture!;
        const at = now.at;
        const owner = now.owner(segment);
        const line = (text: string) => el("div", {}, text);
        clear(tip);
        if (block >= 0) {
            const flags = at.block_flags[block];
            const site = now.json.sites.find((item) => item.site === at.block_site[block]);
            const lost = at.block_bytes[block] - at.block_asked[block];
            add(tip, el("b", {}, now.blockLabel(segment, block)), line(`${bytes(at.block_asked[block])} asked for, ${flags & ESTIMATED ? "about " : ""}${bytes(at.block_bytes[block])} given${lost > 0 ? ` (${bytes(lost)} rounding)` : ""}`));
            if (flags & PENDING) add(tip, line("freed, but another stream may still use it"));
            if (flags & BEFORE) add(tip, line("from before the recording"));
            if (site) add(tip, el("div", { class: "quiet-text" }, site.name));
        } else {
            add(tip, el("b", {}, "free"), line(`${bytes(freeAt(segment, offset))} in one piece`));
        }
        add(tip, line(`in segment ${now.segmentLabel(segment)}: ${bytes(at.segment_bytes[segment])}, ${percent(now.used(segment), at.segment_bytes[segment])} used`));
        add(tip, line(owner.reserved === false ? "the recording does not name its segment" : `${poolText(owner)}, ${owner.kind}${owner.expandable ? ", expandable" : ""}, ${streamText(owner)}`));
    }

    function freeAt(segment: number, offset: number): number {
        const at = picture!.moment.at;
        let from = 0;
        for (let b = at.segment_first[segment]; b < at.segment_first[segment + 1]; b++) {
            if (at.block_offset[b] > offset) return at.block_offset[b] - from;
            from = at.block_offset[b] + at.block_bytes[b];
        }
        return at.segment_bytes[segment] - from;
    }

    function onClick(event: MouseEvent): void {
        const hit = picture?.find(event.offsetX, event.offsetY);
        app.store.set({ pick: hit && hit.block >= 0 ? picture!.moment.blockLabel(hit.segment, hit.block) : "" });
    }

    // Picks the next or previous block, for those without a mouse.
    function walkBlocks(by: number): void {
        if (!picture) return;
        const { moment: now, layout } = picture;
        const order: [number, number][] = [];
        for (const segment of layout.segments) for (let b = now.at.segment_first[segment]; b < now.at.segment_first[segment + 1]; b++) order.push([segment, b]);
        const at = order.findIndex(([segment, block]) => now.blockLabel(segment, block) === app.store.state.pick);
        const next = order[Math.max(0, Math.min(order.length - 1, at < 0 ? 0 : at + by))];
        if (next) app.store.set({ pick: now.blockLabel(...next) });
    }

    async function step(by: number): Promise<void> {
        if (by < 0 && list.position === 0 && !filter.value) return choose(-1);
        const event = await list.step(by);
        if (event !== undefined) choose(event);
    }

    const KEYS: Record<string, () => unknown> = {
        ArrowUp: () => step(-1),
        ArrowDown: () => step(1),
        PageUp: () => step(-list.page()),
        PageDown: () => step(list.page()),
        Home: () => choose(-1),
        End: () => choose(last()),
        n: () => jumpOom(1),
        p: () => jumpOom(-1),
        m: () => choose(app.device()?.peak_event ?? -1),
        ",": () => walkBlocks(-1),
        ".": () => walkBlocks(1),
    };

    scrub.addEventListener("input", () => choose(Number(scrub.value)));
    filter.addEventListener("change", () => void list.show(question(), moment()));
    found.addEventListener("change", () => void list.show(question(), moment()));
    sorting.addEventListener("change", () => picture && arrangeAnew(picture.moment));
    colouring.addEventListener("change", () => picture && arrangeAnew(picture.moment));
    canvas.addEventListener("pointermove", onMove);
    canvas.addEventListener("pointerleave", () => {
        hover = null;
        tip.hidden = true;
        paint();
    });
    canvas.addEventListener("click", onClick);
    new ResizeObserver(() => {
        if (picture) arrangeAnew(picture.moment);
        void list.show(question(), moment());
    }).observe(stage);

    function svg(): string {
        if (!picture) return "";
        const pen = new SvgPen(picture.layout.width + 2, picture.layout.height + 2);
        picture.paint(pen, { ...look(themeOf(root)), hover: null });
        return pen.document(themeOf(root).panel);
    }

    function csv(): string {
        const rows: (string | number)[][] = [];
        if (!picture) return "";
        const { moment: now } = picture;
        for (let s = 0; s < now.json.segments; s++) {
            const owner = now.owner(s);
            for (let b = now.at.segment_first[s]; b < now.at.segment_first[s + 1]; b++)
                rows.push([now.segmentLabel(s), now.blockLabel(s, b), now.at.block_bytes[b], now.at.block_asked[b], now.at.block_flags[b] & PENDING ? "pending" : "allocated", owner.stream ?? "", owner.pool?.join(" ") ?? "", owner.kind ?? ""]);
        }
        return csvText(["segment", "block", "bytes", "requested_bytes", "state", "stream", "pool", "kind"], rows);
    }

    return {
        id: "state",
        title: "State history",
        key: "2",
        root,
        show: () => {
            void load();
        },
        update: (_state: State, changed: ReadonlySet<keyof State>) => {
            if (["event", "rec", "device"].some((key) => changed.has(key as keyof State))) void load();
            else if (changed.has("found") || changed.has("search")) {
                paint();
                void list.show(question(), moment());
            } else paint();
        },
        onKey: (event) => {
            const act = event.shiftKey ? undefined : KEYS[event.key];
            if (act) void act();
            return act !== undefined;
        },
        keys: [
            ["\u2191 \u2193", "one event back or on"],
            ["Page up, Page down", "a page of events back or on"],
            ["Home End", "before the first event, after the last one"],
            ["n p", "the next out-of-memory event, the one before"],
            ["m", "the moment of the peak"],
            [", .", "pick the block before or after"],
        ],
        svg,
        csv,
    };
}

// The canvas for segments and blocks of a moment: painting, pointing, picking.
import type { App } from "../app";
import { add, clear, el } from "../dom";
import { themeOf } from "../draw/colour";
import { CanvasPen, SvgPen } from "../draw/pen";
import { bytes, count, counted, percent } from "../format";
import { explain } from "./state-facts";
import { arrange, BEFORE, ESTIMATED, type Look, type Moment, PENDING, Picture, poolText, type Sorting, streamText } from "./state-picture";

// The vermilion of Okabe and Ito, for bytes lost to rounding.
const ROUNDING = "#d55e00";
const SORTINGS: readonly Sorting[] = ["pool", "stream", "size", "address"];

export class Stage {
    readonly sorting = el("select", { "aria-label": "Order of segments" }, ...SORTINGS.map((name) => el("option", { value: name }, `by ${name}`)));
    readonly colouring = el("select", { "aria-label": "Colour of blocks" }, el("option", { value: "state" }, "coloured by state"), el("option", { value: "site" }, "coloured by call site"));
    readonly legend = el("div", { class: "state-legend" });
    readonly root: HTMLElement;
    private readonly canvas = el("canvas", { role: "img", tabindex: 0, "aria-label": "Segments and blocks" });
    private readonly tip = el("div", { class: "state-tip", role: "tooltip", hidden: true });
    private picture: Picture | null = null;
    private perPixel = 0;
    private hover: Look["hover"] = null;
    private scheduled = false;

    constructor(private readonly app: App) {
        this.root = el("div", { class: "state-stage" }, this.canvas, this.tip);
        this.sorting.addEventListener("change", () => this.again());
        this.colouring.addEventListener("change", () => this.again());
        this.canvas.addEventListener("pointermove", (event) => this.onMove(event));
        this.canvas.addEventListener("pointerleave", () => this.leave());
        this.canvas.addEventListener("click", (event) => this.onClick(event));
        this.root.addEventListener("scroll", () => this.leave());
    }

    show(moment: Moment): void {
        const width = Math.max(50, this.root.clientWidth - 2);
        const height = Math.max(60, this.root.clientHeight - 4);
        const layout = arrange(moment, this.sorting.value as Sorting, width, height, this.perPixel);
        this.perPixel = layout.perPixel;
        this.picture = new Picture(moment, layout);
        this.hover = null;
        this.tip.hidden = true;
        const { segments, blocks, requested_bytes, reserved_bytes } = moment.json;
        this.canvas.setAttribute("aria-label", `${counted(segments, "segment")} with ${counted(blocks, "block")}: ${bytes(requested_bytes)} allocated of ${bytes(reserved_bytes)} reserved`);
        this.explain();
        this.paint();
    }

    private explain(): void {
        if (this.picture) explain(this.legend, this.picture.moment, this.byState(), this.look().matches !== null, this.perPixel * this.picture.layout.width);
    }

    // The matches of the search have changed.
    mark(): void {
        this.explain();
        this.paint();
    }

    // Shows the same moment after a change of size, order or colour.
    again(): void {
        if (this.picture) this.show(this.picture.moment);
    }

    paint(): void {
        if (this.scheduled) return;
        this.scheduled = true;
        requestAnimationFrame(() => {
            this.scheduled = false;
            this.paintNow();
        });
    }

    private paintNow(): void {
        if (!this.picture) return;
        const ratio = devicePixelRatio;
        const { width, height } = this.picture.layout;
        const tall = Math.max(height, this.root.clientHeight - 4);
        this.canvas.width = Math.round((width + 2) * ratio);
        this.canvas.height = Math.round(tall * ratio);
        this.canvas.style.height = `${tall}px`;
        const context = this.canvas.getContext("2d")!;
        context.scale(ratio, ratio);
        this.picture.paint(new CanvasPen(context), this.look());
    }

    svg(): string {
        if (!this.picture) return "";
        const { width, height } = this.picture.layout;
        const pen = new SvgPen(width + 2, height + 2);
        this.picture.paint(pen, { ...this.look(), hover: null });
        return pen.document(themeOf(this.root).panel);
    }

    // Picks the next or previous block, for use without a mouse.
    walk(by: number): void {
        if (!this.picture) return;
        const { moment, layout } = this.picture;
        const { pick } = this.app.store.state;
        const order: [number, number][] = [];
        for (const segment of layout.segments) for (let b = moment.at.segment_first[segment]; b < moment.at.segment_first[segment + 1]; b++) order.push([segment, b]);
        const at = order.findIndex(([segment, block]) => moment.isPicked(segment, block, pick));
        const next = order[Math.max(0, Math.min(order.length - 1, at < 0 ? 0 : at + by))];
        if (next) this.app.store.set({ pick: moment.blockLabel(...next) });
    }

    private byState(): boolean {
        return this.colouring.value === "state";
    }

    private look(): Look {
        const matches = this.app.matches();
        const { search, pick } = this.app.store.state;
        return { byState: this.byState(), pick, hover: this.hover, matches: matches && search !== "" ? (row, stack) => matches.has(row, stack) : null, theme: themeOf(this.root), rounding: ROUNDING };
    }

    leave(): void {
        this.hover = null;
        this.tip.hidden = true;
        this.paint();
    }

    private onMove(event: PointerEvent): void {
        const hit = this.picture?.find(event.offsetX, event.offsetY) ?? null;
        const before = this.hover;
        this.hover = hit && { place: hit.place, block: hit.block };
        if (before?.place !== this.hover?.place || before?.block !== this.hover?.block) this.paint();
        this.tip.hidden = !hit;
        if (!hit) return;
        this.fillTip(hit.segment, hit.block, hit.offset);
        const { left, top } = this.root.getBoundingClientRect();
        const [x, y] = [event.clientX - left, event.clientY - top];
        const { offsetWidth: width, offsetHeight: height } = this.tip;
        this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.root.clientWidth - width - 4))}px`;
        this.tip.style.top = `${y + 18 + height > this.root.clientHeight ? Math.max(0, y - height - 10) : y + 18}px`;
    }

    private onClick(event: MouseEvent): void {
        const hit = this.picture?.find(event.offsetX, event.offsetY);
        this.app.store.set({ pick: hit && hit.block >= 0 ? this.picture!.moment.blockLabel(hit.segment, hit.block) : "" });
    }

    private fillTip(segment: number, block: number, offset: number): void {
        const { moment } = this.picture!;
        const owner = moment.owner(segment);
        const line = (text: string) => el("div", {}, text);
        clear(this.tip);
        if (block >= 0) this.describeBlock(moment, segment, block);
        else add(this.tip, el("b", {}, "free"), line(`${bytes(freeAt(moment, segment, offset))} in one piece`));
        add(this.tip, line(`in segment ${moment.segmentLabel(segment)}: ${bytes(moment.at.segment_bytes[segment])}, ${percent(moment.used(segment), moment.at.segment_bytes[segment])} used`));
        add(this.tip, line(owner.reserved === false ? "the recording does not name its segment" : `${poolText(owner)}, ${owner.kind}${owner.expandable ? ", expandable" : ""}, ${streamText(owner)}`));
    }

    private describeBlock(moment: Moment, segment: number, block: number): void {
        const at = moment.at;
        const line = (text: string) => el("div", {}, text);
        const flags = at.block_flags[block];
        const many = at.block_count[block];
        const site = moment.json.sites.find((item) => item.site === at.block_site[block]);
        const lost = at.block_bytes[block] - at.block_asked[block];
        const title = many > 1 ? `${count(many)} blocks too small to draw` : moment.blockLabel(segment, block);
        add(this.tip, el("b", {}, title), line(`${bytes(at.block_asked[block])} requested, ${flags & ESTIMATED ? "about " : ""}${bytes(at.block_bytes[block])} block size${lost > 0 ? ` (${bytes(lost)} rounding)` : ""}`));
        if (many > 1) add(this.tip, line(`the largest is ${moment.blockLabel(segment, block)}`));
        if (flags & PENDING) add(this.tip, line(`freed, but another stream may still use ${many > 1 ? "most of it" : "it"}`));
        if (flags & BEFORE) add(this.tip, line("from before the recording"));
        if (site) add(this.tip, el("div", { class: "quiet-text" }, site.name));
    }
}

// Returns the size of the free piece at an offset of a segment.
function freeAt({ at }: Moment, segment: number, offset: number): number {
    let from = 0;
    for (let b = at.segment_first[segment]; b < at.segment_first[segment + 1]; b++) {
        if (at.block_offset[b] > offset) return at.block_offset[b] - from;
        from = at.block_offset[b] + at.block_span[b];
    }
    return at.segment_bytes[segment] - from;
}

// Draws a tree of call stacks as an icicle (outermost frames on top) or a flame graph (outermost at the bottom). A click zooms; keys move.
import { clear, el, xmlText } from "../dom";
import { bytes, counted, percent } from "../format";
import type { Answer, Numbers } from "../protocol";
import { frameName } from "../sites";
import { placeText, type StackFrame } from "../stack";
import { blend, colourOf, css, inkOn, parse, themeOf, varied, type Rgb } from "./colour";

export type TreeJson = { frames: StackFrame[]; nodes: number; bytes: number; allocations: number; event: number };

const ROW = 20;
const LEAST_PIXELS = 0.7;
const GREY: Rgb = [128, 128, 128];
const CALLERS = 3; // number of callers named above a zoomed part

type Tree = { frames: StackFrame[]; parent: Numbers; frame: Numbers; stack: Numbers; bytes: Numbers; own: Numbers; count: Numbers; other?: Numbers; children: number[][] };
type Box = { node: number; x: number; width: number; depth: number };

export class Flame {
    readonly root: HTMLElement;
    upwards = false; // put the root at the bottom
    matches: (stack: number) => boolean = () => false; // for the search
    groupOf: (frame: StackFrame | null) => string | null = () => null; // the group that the frame names, for its colour in the table
    private readonly canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Call stacks" });
    private readonly path = el("div", { class: "flame-path" });
    private readonly line = el("p", { class: "flame-line", "aria-live": "polite" });
    private readonly scroll = el("div", { class: "flame-scroll" }, this.canvas);
    private tree: Tree | null = null;
    private boxes: Box[] = [];
    private twins: ReadonlySet<number> = new Set(); // boxes with another of the same name in their row
    private top = 0; // the node that fills the width
    private focus = 0;

    constructor(private readonly onHighlight: (frame: StackFrame) => void) {
        this.root = el("div", { class: "flame" }, this.path, this.scroll, this.line);
        this.canvas.addEventListener("mousemove", (event) => this.look(this.at(event)));
        this.canvas.addEventListener("mouseleave", () => this.look(this.focus));
        this.canvas.addEventListener("click", (event) => this.zoom(this.at(event)));
        this.canvas.addEventListener("keydown", (event) => this.onKey(event));
        new ResizeObserver(() => this.draw()).observe(this.scroll);
    }

    show(answer: Answer<TreeJson>): void {
        const [parent, frame, stack, size, own, number] = ["parent", "frame", "stack", "bytes", "own", "count"].map((name) => answer.column(name));
        const children: number[][] = Array.from(parent, () => []);
        for (let i = 1; i < parent.length; i++) children[parent[i]].push(i);
        const other = "other_bytes" in answer.json.columns ? answer.column("other_bytes") : undefined;
        this.tree = { frames: answer.json.frames, parent, frame, stack, bytes: size, own, count: number, other, children };
        this.top = this.focus = 0;
        this.draw();
        this.look(0);
    }

    private weight(node: number): number {
        const tree = this.tree!;
        return Math.max(tree.bytes[node], tree.other ? tree.other[node] : 0);
    }

    private name(node: number): string {
        const frame = this.tree!.frame[node];
        if (frame >= 0) return frameName(this.tree!.frames[frame][0], this.tree!.frames[frame][1]) || "?";
        return node === 0 ? "all" : "no frames";
    }

    private place(node: number): string {
        const frame = this.tree!.frame[node];
        return frame >= 0 ? placeText(this.tree!.frames[frame]) : "";
    }

    // Returns a box's label: its name, and its place if there is room. If its row has another box of the same name, the place takes
    // precedence.
    private label(node: number, width: number, widthOf: (text: string) => number): string {
        const [name, place] = [this.name(node), this.place(node)];
        const file = place.split("/").at(-1)!;
        const line = /:\d+$/.exec(file)?.[0] ?? "";
        const choices = place === "" ? [name] : this.twins.has(node) ? [`${name} ${place}`, file, line || name] : [`${name} ${place}`, name];
        return choices.find((choice) => widthOf(choice) <= width) ?? choices.at(-1)!;
    }

    private text(node: number): string {
        const tree = this.tree!;
        const frame = tree.frame[node];
        const where = frame >= 0 ? `${this.name(node)} ${placeText(tree.frames[frame], true)}`.trim() : this.name(node);
        const share = `${bytes(tree.bytes[node])} (${percent(tree.bytes[node], tree.bytes[0])}), ${counted(tree.count[node], "allocation")}`;
        if (!tree.other) return `${where}: ${share}`;
        const change = tree.other[node] - tree.bytes[node];
        return `${where}: ${bytes(tree.bytes[node])} \u2192 ${bytes(tree.other[node])} (${change === 0 ? "no change" : `${change > 0 ? "+" : ""}${bytes(change)}`})`;
    }

    // Returns the visible boxes from the node that fills the width; its callers are named above.
    private layout(width: number): Box[] {
        const tree = this.tree!;
        const boxes: Box[] = [{ node: this.top, x: 0, width, depth: 0 }];
        const scale = width / Math.max(1, this.weight(this.top));
        const todo = [boxes[boxes.length - 1]];
        while (todo.length > 0) {
            const box = todo.pop()!;
            let x = box.x;
            for (const child of tree.children[box.node]) {
                const part = this.weight(child) * scale;
                if (part < LEAST_PIXELS) continue;
                const placed = { node: child, x, width: Math.min(part, Math.max(0, box.x + box.width - x)), depth: box.depth + 1 };
                x += part;
                boxes.push(placed);
                todo.push(placed);
            }
        }
        return boxes;
    }

    private findTwins(boxes: readonly Box[]): void {
        const rows = new Map<string, number[]>();
        for (const { node, depth } of boxes) {
            const key = `${depth} ${this.name(node)}`;
            rows.set(key, [...(rows.get(key) ?? []), node]);
        }
        this.twins = new Set([...rows.values()].filter((nodes) => nodes.length > 1).flat());
    }

    private colour(node: number, ground: Rgb): Rgb {
        const tree = this.tree!;
        if (node === 0) return blend(ground, GREY, 0.35);
        if (tree.other) {
            const change = (tree.other[node] - tree.bytes[node]) / Math.max(1, this.weight(node));
            if (change === 0) return blend(ground, GREY, 0.3);
            return blend(ground, change > 0 ? [213, 94, 0] : [0, 114, 178], 0.16 + 0.7 * Math.min(1, Math.abs(change)));
        }
        const frame = tree.frame[node];
        const group = this.groupOf(frame < 0 ? null : tree.frames[frame]);
        if (group !== null) return colourOf(group);
        // Frames that lead to the groups are pale: one shade per file, slightly varied per function.
        const [name, file] = frame < 0 ? ["", ""] : tree.frames[frame];
        return blend(varied(varied(GREY, shade(file)), shade(name)), ground, 0.62);
    }

    draw(): void {
        const width = this.scroll.clientWidth;
        if (!this.tree || width === 0) return;
        this.boxes = this.layout(width);
        this.findTwins(this.boxes);
        const depth = this.boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
        const height = Math.max(depth * ROW, this.upwards ? this.scroll.clientHeight - 2 : 0);
        const ratio = devicePixelRatio;
        this.canvas.width = width * ratio;
        this.canvas.height = height * ratio;
        this.canvas.style.height = `${height}px`;
        const context = this.canvas.getContext("2d")!;
        context.scale(ratio, ratio);
        context.font = "12px system-ui, sans-serif";
        context.textBaseline = "middle";
        const theme = themeOf(this.root);
        const ground = parse(theme.panel);
        for (const box of this.boxes) {
            const y = this.upwards ? height - (box.depth + 1) * ROW : box.depth * ROW;
            const found = this.tree.stack[box.node] >= 0 && this.matches(this.tree.stack[box.node]);
            context.fillStyle = css(this.colour(box.node, ground));
            context.fillRect(box.x, y, Math.max(0.5, box.width - 1), ROW - 1);
            if (found || box.node === this.focus) {
                context.strokeStyle = found ? theme.alarm : theme.text;
                context.lineWidth = 1.5;
                context.strokeRect(box.x + 0.75, y + 0.75, Math.max(0.5, box.width - 2.5), ROW - 2.5);
            }
            if (box.width < 28) continue;
            context.fillStyle = inkOn(this.colour(box.node, ground));
            const label = this.label(box.node, box.width - 8, (text) => context.measureText(text).width);
            context.fillText(fitted(context, label, box.width - 8), box.x + 4, y + ROW / 2);
        }
        this.drawPath();
    }

    private drawPath(): void {
        clear(this.path);
        if (this.top === 0) return;
        this.path.append(el("button", { type: "button", onclick: () => this.zoom(0) }, "\u2190 all stacks"));
        const line: number[] = [];
        for (let node = this.tree!.parent[this.top]; node > 0; node = this.tree!.parent[node]) line.unshift(node);
        for (const node of line.slice(-CALLERS)) this.path.append(el("button", { type: "button", class: "caller", title: this.text(node), onclick: () => this.zoom(node) }, this.name(node)), "\u203a ");
        this.path.append(el("span", {}, this.name(this.top)));
        const frame = this.tree!.frame[this.top];
        if (frame >= 0) this.path.append(el("button", { type: "button", onclick: () => this.onHighlight(this.tree!.frames[frame]) }, "Highlight in every view"));
    }

    private at(event: MouseEvent): number {
        const { left, top, height } = this.canvas.getBoundingClientRect();
        const y = event.clientY - top;
        const depth = Math.floor((this.upwards ? height - y : y) / ROW);
        const x = event.clientX - left;
        return this.boxes.find((box) => box.depth === depth && x >= box.x && x < box.x + box.width)?.node ?? this.focus;
    }

    private look(node: number): void {
        this.line.textContent = this.tree ? this.text(node) : "";
    }

    private zoom(node: number): void {
        if (!this.tree) return;
        this.top = this.focus = node;
        this.draw();
        this.look(node);
    }

    private onKey(event: KeyboardEvent): void {
        const tree = this.tree;
        if (!tree) return;
        const parent = tree.parent[this.focus];
        const siblings = parent < 0 ? [0] : tree.children[parent];
        const place = siblings.indexOf(this.focus);
        const inwards = this.upwards ? "ArrowUp" : "ArrowDown";
        const outwards = this.upwards ? "ArrowDown" : "ArrowUp";
        let next: number | undefined;
        if (event.key === inwards) next = tree.children[this.focus][0];
        else if (event.key === outwards) next = parent < 0 ? 0 : parent;
        else if (event.key === "ArrowRight") next = siblings[place + 1];
        else if (event.key === "ArrowLeft") next = siblings[place - 1];
        else if (event.key === "Enter") this.zoom(this.focus);
        else if (event.key === "Backspace") this.zoom(Math.max(0, tree.parent[this.top]));
        else if (event.key === "h" && tree.frame[this.focus] >= 0) this.onHighlight(tree.frames[tree.frame[this.focus]]);
        else return;
        event.preventDefault();
        event.stopPropagation();
        if (next === undefined) return;
        this.focus = next;
        this.draw();
        this.look(next);
    }

    svg(title: string): string {
        if (!this.tree) return `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>`;
        const width = 1200;
        const boxes = this.layout(width);
        this.findTwins(boxes);
        const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
        const theme = themeOf(this.root);
        const ground = parse(theme.panel);
        const parts = boxes.map((box) => {
            const colour = this.colour(box.node, ground);
            const y = 30 + (this.upwards ? depth - 1 - box.depth : box.depth) * ROW;
            const room = Math.floor((box.width - 8) / 6.6);
            const name = this.label(box.node, room, (text) => text.length);
            const label = room < 3 ? "" : `<text x="${(box.x + 4).toFixed(1)}" y="${y + 14}" fill="${inkOn(colour)}">${xmlText(name.length > room ? name.slice(0, room - 1) + "\u2026" : name)}</text>`;
            return `<g><title>${xmlText(this.text(box.node))}</title><rect x="${box.x.toFixed(1)}" y="${y}" width="${Math.max(0.5, box.width - 1).toFixed(1)}" height="${ROW - 1}" fill="${css(colour)}"/>${label}</g>`;
        });
        const height = 40 + depth * ROW;
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="${theme.text}"><rect width="${width}" height="${height}" fill="${theme.panel}"/><text x="6" y="19" font-weight="600">${xmlText(title)}</text>${parts.join("")}</svg>`;
    }
}

function shade(text: string): number {
    let value = 7;
    for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) | 0;
    return value;
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
    if (context.measureText(text).width <= width) return text;
    let length = Math.max(0, Math.floor((text.length * width) / context.measureText(text).width) - 1);
    while (length > 1 && context.measureText(text.slice(0, length) + "\u2026").width > width) length--;
    return length < 2 ? "" : `${text.slice(0, length)}\u2026`;
}

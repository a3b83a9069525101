// The tip at the pointer: shows the picture's facts at once, and the engine's facts shortly after.
import { el } from "../dom";
import type { Details } from "./tips";

const REST_MS = 60;

// Lines whose elements are kept when only their text changes, as at every mouse move.
class Lines {
    private readonly texts: Text[] = [];
    constructor(readonly root: HTMLElement) {}

    set(lines: readonly string[]): void {
        while (this.texts.length > lines.length) this.texts.pop()!.parentElement!.remove();
        lines.forEach((line, i) => {
            const text = (this.texts[i] ??= this.root.appendChild(el("div", {})).appendChild(document.createTextNode("")));
            if (text.data !== line) text.data = line;
        });
        this.root.hidden = lines.length === 0;
    }
}

export class Tip {
    private readonly title = document.createTextNode("");
    private readonly lines = new Lines(el("section", {}));
    private readonly stack = new Lines(el("section", { class: "tip-stack" }));
    readonly root = el("div", { class: "chart-tip", hidden: true, role: "status" }, el("strong", {}, this.title), this.lines.root, this.stack.root);
    private about = NaN; // the row described
    private at: [number, number] = [0, 0];
    private resting = 0;
    private busy = false;
    private next: (() => void) | null = null;

    constructor(
        private readonly room: () => { width: number; height: number },
        private readonly details: (row: number) => Promise<Details>,
    ) {}

    hide(): void {
        this.root.hidden = true;
        this.about = NaN;
    }

    // Shows the tip. Without a row (negative or NaN) the engine is not queried.
    show(x: number, y: number, row: number, title: string, lines: readonly string[], around: readonly string[] = []): void {
        const same = row === this.about && !this.root.hidden;
        if (!same) {
            this.about = row;
            this.fill(title, [...lines, ...around]);
            this.root.hidden = false;
        }
        this.place(x, y);
        this.at = [x, y];
        if (same || !(row >= 0)) return;
        clearTimeout(this.resting);
        this.resting = window.setTimeout(() => void this.tellMore(row, around), REST_MS);
    }

    // Adds the facts that only the engine has, once the pointer rests on a shape.
    private async tellMore(row: number, around: readonly string[]): Promise<void> {
        if (this.about !== row) return;
        const found = await this.ask(row);
        if (!found || this.about !== row || this.root.hidden) return;
        this.fill(found.title, [...found.lines, ...around], found.stack);
        this.place(...this.at);
    }

    // Asks one question at a time. Of the questions that wait, asks only the latest.
    private ask(row: number): Promise<Details | null> {
        return new Promise((resolve) => {
            const run = () => {
                this.busy = true;
                this.details(row)
                    .then(resolve, () => resolve(null))
                    .finally(() => {
                        this.busy = false;
                        const { next } = this;
                        this.next = null;
                        next?.();
                    });
            };
            if (this.busy) this.next = run;
            else run();
        });
    }

    private fill(title: string, lines: readonly string[], stack: readonly string[] = []): void {
        if (this.title.data !== title) this.title.data = title;
        this.lines.set(lines.filter((line) => line !== ""));
        this.stack.set(stack);
    }

    // Places the tip on the side with room, without measuring; only the compositor moves it.
    private place(x: number, y: number): void {
        const { width, height } = this.room();
        const { style } = this.root;
        const across = x > width / 2 ? `calc(${x - 14}px - 100%)` : `${x + 14}px`;
        const down = y > height / 2 ? `${y - 14}px - 100%` : `${y + 14}px`;
        // A tall tip starts at the top.
        style.transform = `translate(${across}, max(2px, min(${down}, ${Math.round(height)}px - 100%)))`;
        const most = `${Math.min(520, Math.round(width / 2) - 22)}px`;
        if (style.maxWidth !== most) style.maxWidth = most;
    }
}

// What is said beside the pointer: at once what the picture knows, a moment later what the engine knows.
import { add, clear, el } from "../dom";
import type { Details } from "./tips";

export class Tip {
    readonly root = el("div", { class: "chart-tip", hidden: true, role: "status" });
    private about = NaN; // the row it speaks of
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

    // Without a row (negative or NaN) there is nothing to ask.
    show(x: number, y: number, row: number, title: string, lines: readonly string[], around: readonly string[] = []): void {
        const same = row === this.about && !this.root.hidden;
        if (!same) {
            this.about = row;
            this.fill(title, [...lines, ...around]);
            this.root.hidden = false;
        }
        this.place(x, y);
        if (same || !(row >= 0)) return;
        void this.ask(row).then((found) => {
            if (found && this.about === row && !this.root.hidden) {
                this.fill(found.title, [...found.lines, ...around], found.stack);
                this.place(x, y);
            }
        });
    }

    // One question at a time; of those that wait only the latest is asked.
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
        clear(this.root);
        add(this.root, el("strong", {}, title), ...lines.filter((line) => line !== "").map((line) => el("div", {}, line)));
        if (stack.length > 0) add(this.root, el("div", { class: "tip-stack" }, ...stack.map((line) => el("div", {}, line))));
    }

    // Held at the side that has room, so that nothing has to be measured: that would be a layout for every move.
    private place(x: number, y: number): void {
        const { width, height } = this.room();
        const { style } = this.root;
        const [left, above] = [x > width * 0.6, y > height * 0.6];
        style.left = left ? "auto" : `${x + 14}px`;
        style.right = left ? `${width - x + 14}px` : "auto";
        style.top = above ? "auto" : `${y + 14}px`;
        style.bottom = above ? `${height - y + 14}px` : "auto";
        style.maxWidth = `${Math.min(520, (left ? x : width - x) - 22)}px`;
    }
}

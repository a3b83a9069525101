// The search box for a text or an expression. Matches are highlighted in every view.
import type { Matches } from "./app";
import { el } from "./dom";
import { bytes, count } from "./format";
import type { Changed, Frame, Panel } from "./frame";
import { latest } from "./latest";
import type { State } from "./state";

type Found = { allocations: number; bytes: number; stacks: number; peak_allocations: number; peak_bytes: number };

const PAUSE_MS = 120; // after the last key

export class SearchBox implements Panel {
    readonly root: HTMLElement;
    private readonly input = el("input", {
        type: "search",
        placeholder: "Search address, frame, file\u2026",
        title: "Enter goes to the next match, Shift+Enter to the previous one",
        "aria-label": "Search addresses, frames, files, categories",
        spellcheck: "false",
        autocomplete: "off",
    });
    private readonly regex = el("button", { type: "button", class: "regex", "aria-pressed": "false", title: "Regular expression", "aria-label": "Regular expression" }, ".*");
    private readonly result = el("output", { class: "found", "aria-live": "polite" });
    private readonly ways: HTMLElement;
    private readonly ask;
    private timer = 0;
    private rows: ArrayLike<number> = []; // a bit for each matching allocation
    private at = -1; // the current match
    private failed = false;

    constructor(private readonly frame: Frame) {
        this.ask = latest<Found>(frame.engine);
        const way = (text: string, label: string, by: 1 | -1) => el("button", { type: "button", class: "found-way", "aria-label": label, title: label, onclick: () => void this.step(by) }, text);
        this.ways = el("span", { class: "found-ways", hidden: true }, way("\u2039", "Previous match", -1), way("\u203a", "Next match", 1));
        this.root = el("div", { class: "search", role: "search" }, this.input, this.result, this.ways, this.regex);
        this.input.addEventListener("input", () => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => frame.store.set({ search: this.input.value }), PAUSE_MS);
        });
        this.input.addEventListener("keydown", (event) => {
            if (event.key === "Enter" && this.input.value.trim() === frame.store.state.search.trim()) void this.step(event.shiftKey ? -1 : 1);
            else if (event.key === "Enter") frame.store.set({ search: this.input.value });
            if (event.key === "Escape") {
                frame.store.set({ search: "" });
                this.input.value = "";
                this.input.blur();
            }
        });
        this.regex.addEventListener("click", () => frame.store.set({ regex: !frame.store.state.regex }));
    }

    // Picks the next or previous match, wrapping around.
    private async step(by: 1 | -1): Promise<void> {
        const bits = 8 * this.rows.length;
        const { rec, notion } = this.frame.store.state;
        let row = this.at < 0 && by < 0 ? bits : this.at;
        for (let tried = 0; tried < bits; tried++) {
            row = (row + by + bits) % bits;
            if ((this.rows[row >> 3] >> (row & 7)) % 2 === 1) break;
            if (tried === bits - 1) return;
        }
        if (bits === 0) return;
        this.at = row;
        const { json } = await this.frame.engine.ask<{ label: string; birth_event: number | null }>({ name: "allocation", rec, device: this.frame.device()?.device, notion, row });
        this.frame.store.set({ pick: json.label, event: json.birth_event ?? -1 });
    }

    focus(): void {
        this.input.focus();
        this.input.select();
    }

    update(state: State, changed: Changed): void {
        this.regex.setAttribute("aria-pressed", String(state.regex));
        if (document.activeElement !== this.input && this.input.value !== state.search) this.input.value = state.search;
        const asks: (keyof State)[] = ["search", "regex", "rec", "device", "notion"];
        if (changed === null || asks.some((key) => changed.has(key))) void this.search(state);
    }

    private async search(state: State): Promise<void> {
        const device = this.frame.device();
        const text = state.search.trim();
        this.input.removeAttribute("aria-invalid");
        if (this.failed) this.frame.say("");
        this.failed = false;
        if (!device || text === "") return this.tell(undefined, "");
        try {
            const answer = await this.ask({ name: "search", rec: state.rec, device: device.device, notion: state.notion, text, regex: state.regex ? 1 : 0 });
            if (!answer) return;
            const rows = answer.column("row_bits");
            const stacks = answer.column("stack_bits");
            const bit = (bits: ArrayLike<number>, index: number) => index >= 0 && ((bits[index >> 3] ?? 0) >> (index & 7)) % 2 === 1;
            const { allocations, bytes: total } = answer.json;
            const { peak_allocations: live, peak_bytes: liveBytes } = answer.json;
            const found = allocations === 0 ? "none" : `${count(allocations)} \u00b7 ${bytes(total)}${live === 0 ? "" : ` \u00b7 ${bytes(liveBytes)} at the peak`}`;
            this.rows = rows;
            this.at = -1;
            this.tell({ text, allocations, bytes: total, has: (row, stack) => (row === row ? bit(rows, row) : bit(stacks, stack)) }, found);
        } catch (error) {
            this.input.setAttribute("aria-invalid", "true");
            this.tell(undefined, "error");
            this.frame.say(`Search: ${(error as Error).message}`); // the field is too narrow for the full message
            this.failed = true;
        }
    }

    private tell(matches: Matches | undefined, text: string): void {
        const before = this.frame.matches();
        this.ways.hidden = !matches || matches.allocations === 0;
        this.result.textContent = text;
        this.result.title = text;
        if (before === undefined && matches === undefined) return;
        this.frame.setMatches(matches);
        this.frame.store.set({ found: this.frame.store.state.found + 1 });
    }
}

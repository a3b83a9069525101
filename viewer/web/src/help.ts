// The help: all keys, and the meaning of words and colours.
import { add, clear, el } from "./dom";
import type { KeyHelp } from "./app";
import type { Frame } from "./frame";

const FRAME_KEYS: readonly KeyHelp[] = [
    ["1 \u2026 9", "switch to a view"],
    ["/", "search; Esc clears it"],
    ["a d  \u2190 \u2192", "move the window (with Shift: by its whole width)"],
    ["w s  + \u2212", "zoom in and out"],
    ["0", "show the whole history"],
    ["e", "axis: events or real time"],
    ["v", "allocated or active memory"],
    ["<  >", "the previous or next device"],
    ["{  }", "the previous or next recording"],
    ["b", "pin the selected moment, with a note"],
    ["i", "show or hide the details"],
    ["x", "save the picture or the table"],
    ["l", "light or dark"],
    ["o", "open files"],
    ["?", "this help"],
    ["Esc", "close, or clear the selection"],
];

const WORDS: readonly (readonly [string, string, string])[] = [
    ["allocated", "--allocated", "held by the program, from request to free"],
    ["active", "--active", "freed, but another stream may still use it: not reusable yet"],
    ["reserved", "--reserved", "taken from the driver; what is not allocated or active is cached"],
    ["out of memory", "--alarm", "a request that could not be served"],
];

export class Help {
    readonly root = el("dialog", { class: "help", "aria-label": "Help" });

    constructor(private readonly frame: Frame) {
        this.root.addEventListener("click", (event) => {
            if (event.target === this.root) this.root.close();
        });
    }

    toggle(): void {
        if (this.root.open) return this.root.close();
        clear(this.root);
        const shown = this.frame.view();
        const close = el("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => this.root.close() }, "\u00d7");
        const columns = el("div", { class: "help-columns" }, keyTable("Everywhere", FRAME_KEYS));
        const right = el("div", {});
        add(columns, right);
        if (shown.keys?.length) right.append(keyTable(shown.title, shown.keys));
        right.append(keyTable("Views", this.frame.views.filter((view) => view.available?.() ?? true).map((view) => [view.key, view.title] as const)));
        right.append(words());
        const about = el("p", { class: "quiet-text" }, "Mouse: drag in the strip at the top to select the window, turn the wheel to zoom, double-click to show everything. Recordings stay on this computer: the page has no network access.");
        add(this.root, close, el("h2", {}, "Keys and words"), columns, about);
        this.root.showModal();
    }
}

function keyTable(title: string, keys: readonly KeyHelp[]): HTMLElement {
    const body = el("tbody", {});
    for (const [names, meaning] of keys) {
        const cell = el("th", { scope: "row" });
        for (const name of names.split(/\s+/)) cell.append(name === "\u2026" ? "\u2026" : el("kbd", {}, name), " ");
        body.append(el("tr", {}, cell, el("td", {}, meaning)));
    }
    return el("section", {}, el("h3", {}, title), el("table", { class: "keys" }, body));
}

function words(): HTMLElement {
    const list = el("dl", { class: "words" });
    for (const [word, colour, meaning] of WORDS) {
        const swatch = el("span", { class: "swatch" });
        swatch.style.setProperty("background", `var(${colour})`);
        list.append(el("dt", {}, swatch, word), el("dd", {}, meaning));
    }
    return el("section", {}, el("h3", {}, "Words and colours"), list);
}

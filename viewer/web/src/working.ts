// Work that takes longer than a blink is done by the engine in pieces: the page stays free, and says how far it is.
import { el } from "./dom";
import type { Engine, Question } from "./engine";

const PATIENCE_MS = 120;

// "Working it out: 43 %", once it has taken long enough to be worth saying.
export class Working {
    private readonly bar = el("progress", { max: 1 });
    private readonly text = el("span", {});
    readonly root = el("p", { class: "working", role: "status", hidden: true }, this.text, this.bar);
    private since = 0;

    constructor(private readonly what = "Working it out") {
        this.bar.setAttribute("aria-label", what);
    }

    // How much is done; null when nothing is under way.
    tell = (share: number | null): void => {
        const now = performance.now();
        if (share === null) this.since = 0;
        else if (this.since === 0) this.since = now;
        this.root.hidden = share === null || now - this.since < PATIENCE_MS;
        if (share === null) return;
        this.bar.value = share;
        this.text.textContent = `${this.what}: ${Math.floor(100 * share)}\u202f%`;
    };
}

// Has the engine work out what an answer is made of, a piece per question. False when `overtaken` says that nobody wants it any more.
export async function prepare(engine: Engine, { name, ...rest }: Question, tell: (share: number | null) => void, overtaken: () => boolean = () => false): Promise<boolean> {
    try {
        for (;;) {
            const { json } = await engine.ask<{ ready: boolean; share: number }>({ ...rest, name: "prepare", for: name });
            if (overtaken()) return false;
            if (json.ready) return true;
            tell(json.share);
        }
    } finally {
        tell(null);
    }
}

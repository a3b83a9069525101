// Long work, which the engine does in pieces so that the page stays responsive and shows progress.
import { el } from "./dom";
import type { Engine, Question } from "./engine";

const PATIENCE_MS = 120;

// Shows "Working it out: 43 %" once the work has taken noticeably long.
export class Working {
    private readonly bar = el("progress", { max: 1 });
    private readonly text = el("span", {});
    readonly root = el("p", { class: "working", role: "status", hidden: true }, this.text, this.bar);
    private since = 0;

    constructor(private readonly what = "Working it out") {
        this.bar.setAttribute("aria-label", what);
    }

    // Sets the share done; null when nothing is in progress.
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

// Prepares the basis of an answer, one piece per question. Returns false if `overtaken` returns true, because the answer is no longer
// needed.
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

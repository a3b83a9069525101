// Shows the memory that paged memory would have saved: a chip next to the tabs if it is significant, and sentences in the out-of-memory
// view.
import { clear, el } from "./dom";
import type { Engine } from "./engine";
import type { Changed, Frame, Panel } from "./frame";
import type { State } from "./state";
import { prepare } from "./working";

type Saving = { text: string | null; headline: string | null };
type About = { rec: number; device: number };

// Replays the history in pieces, between other questions. Returns null if there is nothing to say, or if `overtaken` returns true.
async function findSaving(engine: Engine, about: About, overtaken: () => boolean): Promise<Saving | null> {
    const question = { name: "paged", ...about };
    if (!(await prepare(engine, question, () => {}, overtaken))) return null;
    const { json } = await engine.ask<{ paged: Saving | null }>(question);
    return json.paged?.text ? json.paged : null;
}

export class SavingText {
    readonly root = el("div", { class: "saving", role: "status", hidden: true });
    private known = false;

    constructor(private readonly engine: Engine, private readonly about: About) {}

    async find(): Promise<void> {
        if (this.known) return;
        const found = await findSaving(this.engine, this.about, () => !this.root.isConnected).catch(() => null);
        this.known = this.root.isConnected;
        this.root.textContent = found?.text ?? "";
        this.root.hidden = found === null;
    }
}

export class SavingChip implements Panel {
    readonly root = el("button", { type: "button", class: "chip saving-chip", hidden: true });
    private of = "";

    constructor(private readonly frame: Frame) {
        this.root.addEventListener("click", () => frame.store.set({ view: "oom" }));
    }

    update(state: State, _changed: Changed): void {
        const device = this.frame.device();
        const key = device && !this.frame.partial ? `${this.frame.recording()?.name} ${state.rec} ${device.device} ${device.events}` : "";
        if (key === this.of) return;
        this.of = key;
        this.root.hidden = true;
        if (key !== "" && device!.ooms === 0) void this.find(key, { rec: state.rec, device: device!.device });
    }

    private async find(key: string, about: About): Promise<void> {
        const found = await findSaving(this.frame.engine, about, () => key !== this.of).catch(() => null);
        if (!found?.headline || key !== this.of) return;
        clear(this.root);
        this.root.append(found.headline);
        this.root.title = found.text!;
        this.root.hidden = false;
    }
}

// Shows missing facts and contradictions of the recording: a chip next to the tabs, with sentences below.
import { clear, el } from "./dom";
import type { Changed, Frame, Panel } from "./frame";
import { askOnce } from "./once";
import type { State } from "./state";

type Note = { kind: "missing" | "contradiction"; device?: number; code: string; text: string };

// Notes that affect conclusions, with their names on the chip. Others are only counted.
const GRAVE: Record<string, string> = {
    overflow: "oldest events lost",
    ring_full: "oldest events probably lost",
    cut: "file cut off",
    not_closed: "not closed",
    no_history: "no history",
    no_stacks: "no call stacks",
    no_allocations: "no allocations recorded",
    history_and_state: "history and final state differ",
};

export class Notes implements Panel {
    readonly root = el("div", { class: "notes" });
    readonly chip = el("button", { type: "button", class: "chip", hidden: true, "aria-expanded": "false", "aria-controls": "notes-list" });
    private readonly list = el("ul", { id: "notes-list", class: "notes-list", hidden: true });
    private rec = -1;

    constructor(private readonly frame: Frame) {
        this.root.append(this.list);
        this.chip.addEventListener("click", () => {
            this.list.hidden = !this.list.hidden;
            this.chip.setAttribute("aria-expanded", String(!this.list.hidden));
        });
    }

    update(state: State, changed: Changed): void {
        if (!this.frame.recording() || this.frame.partial) this.show([]);
        else if (changed === null || state.rec !== this.rec) void this.ask(state.rec);
        this.rec = state.rec;
    }

    private async ask(rec: number): Promise<void> {
        const { json } = await askOnce<{ notes: Note[] }>(this.frame, { name: "notes", rec });
        if (rec === this.frame.store.state.rec) this.show(json.notes);
    }

    private show(notes: Note[]): void {
        const several = (this.frame.recording()?.devices.length ?? 0) > 1;
        const grave = notes.filter((note) => note.code in GRAVE);
        this.chip.hidden = notes.length === 0;
        this.chip.classList.toggle("grave", grave.length !== 0);
        const rest = notes.length - Math.min(1, grave.length);
        const more = rest === 0 ? "" : ` +${rest}`;
        this.chip.textContent = grave.length !== 0 ? `\u26a0 ${GRAVE[grave[0].code]}${more}` : `${notes.length} ${notes.length === 1 ? "note" : "notes"}`;
        clear(this.list);
        for (const note of notes) {
            const where = several && note.device !== undefined ? `device ${note.device}: ` : "";
            this.list.append(el("li", { class: note.kind, "data-code": note.code }, `${where}${note.text}`));
        }
        if (notes.length === 0) this.list.hidden = true;
    }
}

// Searches for settings with which the last failed request would have fitted, by replaying the history, one replay per question, while the
// view is shown.
import { add, clear, el } from "../dom";
import type { Engine } from "../engine";
import { copyText } from "../save";
import { SavingText } from "../saving";
import { prepare, Working } from "../working";

export type Cure = { verdict: string; conf: string | null; variable: string; index: number; text: string; usual?: string | null; room_bytes: number; needed_bytes: number };
type Answer = { cure: Cure | null; text?: string };

// Shows the setting as it is typed, with a button to copy it.
export function settingLine(variable: string, conf: string): HTMLElement {
    const line = conf === "" ? `unset ${variable}` : `${variable}=${conf}`;
    const copy: HTMLButtonElement = el("button", { type: "button", title: "Copy the setting", onclick: () => void copyText(line).then(() => (copy.textContent = "Copied")) }, "Copy");
    return el("span", { class: "oom-setting" }, el("code", {}, line), copy);
}

export class CureBox {
    private readonly working = new Working("Looking for a setting that would have fit");
    private readonly said = el("div", { role: "status" });
    private readonly saving: SavingText;
    readonly root = el("section", { class: "oom-cure", "aria-label": "Cure" }, el("h3", {}, "Cure"), this.working.root, this.said);
    private known = false;
    private busy = false;

    constructor(private readonly engine: Engine, private readonly about: { rec: number; device: number }) {
        this.saving = new SavingText(engine, about);
    }

    // Continues the search until the cure is known or the view is left.
    async find(): Promise<void> {
        if (this.known) return this.saving.find();
        if (this.busy) return;
        this.busy = true;
        try {
            const question = { name: "cure", ...this.about };
            if (!(await prepare(this.engine, question, this.working.tell, () => !this.root.isConnected))) return;
            const { json } = await this.engine.ask<Answer>(question);
            this.known = true;
            this.tell(json);
            await this.saving.find();
        } catch (error) {
            this.known = true;
            this.tell({ cure: null, text: `The search for a cure failed here: ${(error as Error).message}. Run \`vram report\` for the cure.` });
        } finally {
            this.busy = false;
        }
    }

    private tell({ cure, text }: Answer): void {
        clear(this.said);
        if (cure?.verdict === "setting") add(this.said, settingLine(cure.variable, cure.conf ?? ""));
        add(this.said, el("p", {}, text), this.saving.root);
        this.root.dataset.verdict = cure?.verdict ?? "";
        // As in the report, a setting that helps makes other advice unnecessary.
        for (const advice of this.root.parentElement?.querySelectorAll<HTMLElement>(".oom-advice") ?? []) advice.hidden = cure?.verdict === "setting";
        for (const remedies of this.root.parentElement?.querySelectorAll<HTMLElement>(".oom-remedies") ?? []) remedies.hidden = cure?.verdict === "setting";
    }
}

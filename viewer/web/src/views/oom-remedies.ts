// What to change in the program where no setting helps: what would lower the demand, and what that is computed from.
import { el } from "../dom";

type Remedy = { text: string; basis: string; fits: boolean };
export type Demand = { demand: string; text: string; remedies: Remedy[] };

// What stands out in what was in use, as a title.
const TITLES: Record<string, string> = {
    request: "One request is too large",
    forward_only: "A forward pass keeps its graph",
    optimizer_first_step: "The optimizer's first step",
    held_gradients: "Gradients live through the forward pass",
    rounding: "Blocks are larger than was asked for",
};

export const demandTitle = (demand: Demand | null | undefined): string | undefined => (demand ? TITLES[demand.demand] : undefined);

const capital = (text: string) => `${text[0].toUpperCase()}${text.slice(1)}.`;

export function remediesBox(demand: Demand | null | undefined): HTMLElement | null {
    if (!demand?.remedies.length) return null;
    const rows = demand.remedies.map((remedy) => el("li", { class: remedy.fits ? "is-enough" : "" }, capital(remedy.text), el("span", { class: "quiet-text" }, ` ${capital(remedy.basis)}`)));
    return el("section", { class: "oom-remedies", "aria-label": "What to change" }, el("h3", {}, "What to change in the program"), el("ol", {}, ...rows));
}

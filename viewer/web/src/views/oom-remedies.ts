// Shows the changes to the program that would lower the demand if no setting helps, and the figures behind them.
import { el } from "../dom";
import { count } from "../format";

type Remedy = { text: string; basis: string; fits: boolean; site: string | null; next_peak_event: number | null };
export type Demand = { demand: string; text: string; sites: { site: string }[]; remedies: Remedy[] };

// Titles of unusual demands.
const TITLES: Record<string, string> = {
    request: "One request is too large",
    forward_only: "A forward pass keeps its autograd graph",
    optimizer_first_step: "The optimizer's first step",
    held_gradients: "Gradients live through the forward pass",
    rounding: "Blocks are larger than requested",
};

export const demandTitle = (demand: Demand | null | undefined): string | undefined => (demand ? TITLES[demand.demand] : undefined);

const capital = (text: string) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// Notes that the saving is smaller because another moment becomes the peak.
function nextPeak(event: number, go: (event: number) => void): HTMLElement {
    const name = event < 0 ? "the beginning" : `event ${count(event)}`;
    return el("span", { class: "oom-next" }, " The peak then moves to ", el("button", { type: "button", class: "link", title: "Segments and blocks at that moment", onclick: () => go(event) }, name), ".");
}

export function remediesBox(demand: Demand | null | undefined, go: (event: number) => void): HTMLElement | null {
    if (!demand?.remedies.length) return null;
    const basis = (text: string) => capital(text.replace(/; the peak is then (after event [\d,]+|before the first event)$/, ""));
    const rows = demand.remedies.map((remedy) => el("li", { class: remedy.fits ? "is-enough" : "" }, capital(remedy.text), typeof remedy.next_peak_event === "number" && nextPeak(remedy.next_peak_event, go), el("span", { class: "quiet-text" }, ` ${basis(remedy.basis)}`)));
    return el("section", { class: "oom-remedies", "aria-label": "What to change" }, el("h3", {}, "What to change in the program"), el("ol", {}, ...rows));
}

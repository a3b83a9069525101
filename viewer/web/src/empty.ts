// The page before a recording is open: which files it opens, and how to make one.
import { el } from "./dom";
import type { Frame } from "./frame";

const KINDS: readonly (readonly [string, string])[] = [
    [".pickle", "PyTorch's memory snapshot, of any version"],
    [".vram", "a recording by vram: the fastest to open"],
    [".json", "a snapshot as JSON"],
    [".html", "a page of PyTorch's own viewer, with the snapshot inside"],
    [".gz", "any of these, compressed with gzip"],
];
const RECIPE = `import torch
torch.cuda.memory._record_memory_history()
\u2026                  # the part that interests you
torch.cuda.memory._dump_snapshot("snapshot.pickle")`;

export function emptyState(frame: Frame): HTMLElement {
    const kinds = el("dl", { class: "kinds" });
    for (const [extension, meaning] of KINDS) kinds.append(el("dt", {}, el("code", {}, extension)), el("dd", {}, meaning));
    const zone = frame.canOpen
        ? el("div", { class: "zone" }, el("p", { class: "zone-title" }, "Drop a recording here"), el("p", {}, "or ", el("button", { type: "button", class: "primary", onclick: () => frame.chooseFiles() }, "choose files\u2026")), kinds)
        : el("div", { class: "zone" }, el("p", { class: "zone-title" }, "Nothing is open"), el("p", {}, "The server has no recording that could be read."));
    return el(
        "section",
        { class: "empty", "aria-label": "Nothing to show" },
        el("p", { class: "empty-why", role: "status", hidden: true }),
        zone,
        el("div", { class: "recipes" }, el("h2", {}, "To record one"), el("pre", {}, RECIPE), el("p", {}, "or any CUDA program, unchanged:"), el("pre", {}, "vram run -o job.vram -- ./program"), el("p", { class: "quiet-text" }, "Several files can be open at once, such as the ranks of a job. Nothing leaves this computer: the page has no network access.")),
    );
}

// Replaces the empty state while a file is being read.
export function openingState(names: string): HTMLElement {
    return el("section", { class: "empty", "aria-label": "Opening" }, el("div", { class: "zone" }, el("p", { class: "zone-title opening" }, `Opening ${names}\u2026`)));
}

// Explains why an open recording shows nothing.
export function explainEmpty(root: HTMLElement, recording: string | undefined): void {
    const why = root.querySelector<HTMLElement>(".empty-why")!;
    why.hidden = recording === undefined;
    why.textContent = recording === undefined ? "" : `${recording} has neither segments nor events to show.`;
}

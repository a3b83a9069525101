// A call stack as a list: the call site first, frames outside the program folded. The engine decides which frames these are.
import { el } from "./dom";
import { frameName } from "./sites";

// The last part is the kind of frames with which a frame is folded (docs/reference/formats/queries.md, allocation); "" for the program's own frames.
export type StackFrame = [name: string, file: string, line: number, fold?: string];

export function frameText([name, file, line]: StackFrame): string {
    return `${file}:${line}:${name}`;
}

// Returns a frame's location for display: empty if unknown, without a line if there is none.
export function placeText([, file, line]: StackFrame, full = false): string {
    if (file === "" || file === "??") return "";
    const shown = full ? file : file.split(/[/\\]/).slice(-2).join("/");
    return line > 0 ? `${shown}:${line}` : shown;
}

type Run = { frames: StackFrame[]; folded: boolean };

// Joins consecutive frames outside the program into runs, except the call site.
export function folded(frames: readonly StackFrame[], site?: number): Run[] {
    const runs: Run[] = [];
    frames.forEach((frame, i) => {
        const fold = (frame[3] ?? "") !== "" && i !== site;
        const last = runs.at(-1);
        if (last && last.folded === fold) last.frames.push(frame);
        else runs.push({ frames: [frame], folded: fold });
    });
    for (const run of runs) if (run.frames.length < 2) run.folded = false;
    return runs;
}

// Describes a fold: "12 frames: PyTorch, dispatcher, allocator".
export const foldText = (frames: readonly StackFrame[]): string => `${frames.length} frames: ${[...new Set(frames.map((frame) => frame[3]))].join(", ")}`;

// The way to open a source line: a URL with {file} and {line}, which the reader enters and the browser stores.
const TEMPLATE_KEY = "vram.source";
const SCHEMES = /^(https?|vscode|vscode-insiders|vscodium|cursor|zed|idea|pycharm|subl|txmt|file):/i;

export function sourceTemplate(): string {
    try {
        return localStorage.getItem(TEMPLATE_KEY) ?? "";
    } catch {
        return ""; // a page loaded from a file may have no storage
    }
}

// Returns false for an invalid URL; "" removes it.
export function setSourceTemplate(template: string): boolean {
    if (template !== "" && !(SCHEMES.test(template) && template.includes("{file}"))) return false;
    try {
        localStorage.setItem(TEMPLATE_KEY, template);
    } catch {
        return false;
    }
    return true;
}

export function sourceLink(file: string, line: number, template = sourceTemplate()): string | null {
    if (template === "" || !SCHEMES.test(template) || file === "" || file.startsWith("<") || file === "??") return null;
    const path = file.split(/[/\\]/).map(encodeURIComponent).join("/");
    return template.replaceAll("{file}", path).replaceAll("{line}", String(line));
}

function place(frame: StackFrame): HTMLElement {
    const [, file, line] = frame;
    const link = sourceLink(file, line);
    const facts = { class: "frame-place", title: placeText(frame, true) };
    return link ? el("a", { ...facts, href: link, rel: "noreferrer", target: "_blank" }, placeText(frame)) : el("span", facts, placeText(frame));
}

const item = (frame: StackFrame): HTMLElement => el("li", {}, el("span", { class: "frame-name", title: frame[0] }, frameName(frame[0], frame[1]) || "?"), " ", place(frame));

export function framesList(frames: readonly StackFrame[], site?: number): HTMLElement {
    if (frames.length === 0) return el("p", { class: "quiet-text" }, "No call stack: it was not recorded, or the allocation is older than the recording.");
    const list = el("ol", { class: "stack", "aria-label": "Call stack, innermost first" });
    const own = site === undefined ? undefined : frames[site];
    // The innermost frame is on top already.
    if (own && site !== 0) list.append(el("li", { class: "frame-site" }, el("span", { class: "frame-word" }, "call site"), el("span", { class: "frame-name", title: own[0] }, frameName(own[0], own[1]) || "?"), " ", place(own)));
    for (const run of folded(frames, site)) {
        if (!run.folded) list.append(...run.frames.map(item));
        else list.append(el("li", { class: "fold" }, el("details", {}, el("summary", {}, foldText(run.frames)), el("ol", {}, ...run.frames.map(item)))));
    }
    return list;
}

// Returns the stack as lines for a tip: the call site, then its callers; a fold is one line.
export function stackLines(frames: readonly StackFrame[], site: number | undefined, most: number): string[] {
    const line = (frame: StackFrame) => `${frameName(frame[0], frame[1]) || "?"}  ${placeText(frame)}`.trim();
    const lines = folded(frames, site).flatMap((run) => (run.folded ? [`(${foldText(run.frames)})`] : run.frames.map(line)));
    const head = site !== undefined && site > 0 ? [`\u2192 ${line(frames[site])}`] : [];
    const rest = lines.length > most ? [`and ${lines.length - most} more`] : [];
    return [...head, ...lines.slice(0, most), ...rest];
}

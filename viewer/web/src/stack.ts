// A call stack as a list: the frames of the allocator's own machinery and repeated ones are folded.
import { el } from "./dom";
import { shortFunction } from "./sites";

export type StackFrame = [name: string, file: string, line: number];

export function frameText([name, file, line]: StackFrame): string {
    return `${file}:${line}:${name}`;
}

// Which frame stands for a stack that was recorded, as the engine chooses it (profile.md): the program's own Python, else the innermost
// frame, or where that one only recorded the stack torch's Python, the node of the graph, the outermost operator, what is not the allocator.
export function siteFrame(frames: readonly StackFrame[]): StackFrame | undefined {
    const python = ([, file]: StackFrame): boolean => file.endsWith(".py") && !file.startsWith("<");
    const native = (pattern: RegExp) => (frame: StackFrame): boolean => !python(frame) && pattern.test(frame[0]);
    const recorded = native(/^torch::(unwind|CapturedTraceback)::/);
    const own = frames.find((frame) => python(frame) && !frame[1].includes("/torch/"));
    if (own || !frames[0] || !recorded(frames[0])) return own ?? frames[0];
    return (
        frames.find(python) ??
        frames.find(native(/^torch::autograd::.*::apply\(/s)) ??
        [...frames].reverse().find(native(/^at::_ops::.*::call\(/s)) ??
        frames.find((frame) => !native(/^(torch::(unwind|CapturedTraceback|cuda)::|c10::|at::detail::|at::TensorBase at::detail::)/)(frame)) ??
        frames.find((frame) => !recorded(frame)) ??
        frames[0]
    );
}

// Frames that say where memory is allocated, not who wanted it.
const MACHINERY = /(^|\/)(torch|c10|aten|ATen|caffe2|pybind11)\/|CUDACachingAllocator|site-packages\/torch|^\?\?$|libcuda|libtorch|CPython|Python\/ceval|Objects\/(call|methodobject)/;

function isMachinery([name, file]: StackFrame): boolean {
    return MACHINERY.test(file) || (file === "??" && /^(torch|c10|at|PyObject|_Py|cfunction|method_)/.test(name)) || (file === "" && name === "");
}

type Run = { frames: StackFrame[]; folded: boolean };

// Consecutive frames of machinery become one run when there are at least three of them and others remain.
export function folded(frames: readonly StackFrame[]): Run[] {
    const runs: Run[] = [];
    for (const frame of frames) {
        const fold = isMachinery(frame);
        const last = runs.at(-1);
        if (last && last.folded === fold) last.frames.push(frame);
        else runs.push({ frames: [frame], folded: fold });
    }
    const all = runs.every((run) => run.folded);
    for (const run of runs) if (all || run.frames.length < 3) run.folded = false;
    return runs;
}

// Where a line of a source is opened: an address with {file} and {line} in it, which the reader gives; kept by the browser.
const TEMPLATE_KEY = "vram.source";
const SCHEMES = /^(https?|vscode|vscode-insiders|vscodium|cursor|zed|idea|pycharm|subl|txmt|file):/i;

export function sourceTemplate(): string {
    try {
        return localStorage.getItem(TEMPLATE_KEY) ?? "";
    } catch {
        return ""; // a page from a file may have no storage
    }
}

// False for what is no such address; "" takes it back.
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

function item([name, file, line]: StackFrame): HTMLElement {
    const short = file.split(/[/\\]/).slice(-2).join("/");
    const link = sourceLink(file, line);
    const place = link ? el("a", { class: "frame-place", title: `${file}:${line}`, href: link, rel: "noreferrer", target: "_blank" }, `${short}:${line}`) : el("span", { class: "frame-place", title: `${file}:${line}` }, `${short}:${line}`);
    return el("li", {}, el("span", { class: "frame-name", title: name }, shortFunction(name) || "?"), " ", place);
}

export function framesList(frames: readonly StackFrame[]): HTMLElement {
    if (frames.length === 0) return el("p", { class: "quiet-text" }, "No call stack: it was not recorded, or the allocation is older than the recording.");
    const list = el("ol", { class: "stack", "aria-label": "Call stack, innermost first" });
    for (const run of folded(frames)) {
        if (!run.folded) list.append(...run.frames.map(item));
        else
            list.append(
                el("li", { class: "fold" }, el("details", {}, el("summary", {}, `${run.frames.length} frames of PyTorch and the machine`), el("ol", {}, ...run.frames.map(item)))),
            );
    }
    return list;
}

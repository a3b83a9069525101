// Keys that work everywhere. The view handles a key first.
import type { Frame } from "./frame";
import { moved, zoomed } from "./span";

export type FrameActions = {
    search(): void;
    help(): void;
    details(): void;
    save(): void;
    theme(): void;
    axis(): void;
    notion(): void;
    pin(): void;
    step(what: "device" | "rec", by: number): void;
};

const STEP = 0.15; // of the window
const FACTOR = 0.75;

function pan(frame: Frame, share: number): void {
    const span = frame.window();
    const { from, to } = moved(span, frame.length(), (span.to - span.from) * share);
    frame.setWindow(from, to);
}

function zoom(frame: Frame, factor: number): void {
    const span = frame.window();
    const { event, axis } = frame.store.state;
    const inside = axis === "event" && event >= span.from && event <= span.to;
    const { from, to } = zoomed(span, frame.length(), inside ? event : (span.from + span.to) / 2, factor);
    frame.setWindow(from, to);
}

function escape(frame: Frame): void {
    const { pick, search, legend } = frame.store.state;
    if (pick !== "") frame.store.set({ pick: "" });
    else if (legend !== "") frame.store.set({ legend: "" });
    else if (search !== "") frame.store.set({ search: "" });
}

export function installKeys(frame: Frame, actions: FrameActions): void {
    const keys: Record<string, () => void> = {
        "/": actions.search,
        "?": actions.help,
        i: actions.details,
        x: actions.save,
        l: actions.theme,
        e: actions.axis,
        v: actions.notion,
        b: actions.pin,
        o: () => frame.chooseFiles(),
        a: () => pan(frame, -STEP),
        d: () => pan(frame, STEP),
        A: () => pan(frame, -1),
        D: () => pan(frame, 1),
        w: () => zoom(frame, FACTOR),
        s: () => zoom(frame, 1 / FACTOR),
        "+": () => zoom(frame, FACTOR),
        "=": () => zoom(frame, FACTOR),
        "-": () => zoom(frame, 1 / FACTOR),
        "0": () => frame.setWindow(0, frame.length()),
        "<": () => actions.step("device", -1),
        ">": () => actions.step("device", 1),
        "{": () => actions.step("rec", -1),
        "}": () => actions.step("rec", 1),
        Escape: () => escape(frame),
    };
    window.addEventListener("keydown", (event) => {
        const target = event.target as HTMLElement;
        if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
        if (target.matches("input, select, textarea") || document.querySelector("dialog[open]")) return;
        if (frame.device() && frame.view().onKey?.(event)) {
            event.preventDefault();
            return;
        }
        const view = frame.views.find((item) => item.key === event.key && (item.available?.() ?? true));
        const arrows = { ArrowLeft: event.shiftKey ? "A" : "a", ArrowRight: event.shiftKey ? "D" : "d" } as Record<string, string>;
        const action = view ? () => frame.store.set({ view: view.id }) : keys[arrows[event.key] ?? event.key];
        if (!action) return;
        action();
        event.preventDefault();
    });
}

// A bar between two parts of the page. Mouse and arrow keys move it, a double click resets it, and the browser remembers its position.
import { el } from "./dom";
import { recall, remember } from "./state";

// `upright`: the bar separates parts that are next to each other. valueAt() converts the pointer's position to a value; use() applies it.
export type Splitting = { name: string; label: string; upright: boolean; least: number; most: number; start: number; step: number; valueAt(event: PointerEvent): number; use(value: number): void };

export function splitter({ name, label, upright, least, most, start, step, valueAt, use }: Splitting): HTMLElement {
    const key = `vram.split.${name}`;
    const bar = el("div", { class: `splitter ${upright ? "upright" : "level"}`, role: "separator", tabindex: 0, "aria-label": label, "aria-orientation": upright ? "vertical" : "horizontal", "aria-valuemin": least, "aria-valuemax": most });
    let value = NaN;
    const set = (wanted: number) => {
        value = Math.min(most, Math.max(least, Number.isFinite(wanted) ? wanted : start));
        bar.setAttribute("aria-valuenow", String(Math.round(value)));
        use(value);
    };
    const keep = () => {
        remember(key, String(value));
        window.dispatchEvent(new Event("resize"));
    };
    bar.addEventListener("pointerdown", (event) => {
        bar.setPointerCapture(event.pointerId);
        event.preventDefault();
        bar.focus();
    });
    bar.addEventListener("pointermove", (event) => bar.hasPointerCapture(event.pointerId) && set(valueAt(event)));
    bar.addEventListener("pointerup", keep);
    bar.addEventListener("dblclick", () => {
        set(start);
        keep();
    });
    bar.addEventListener("keydown", (event) => {
        const by = { [upright ? "ArrowLeft" : "ArrowUp"]: -step, [upright ? "ArrowRight" : "ArrowDown"]: step }[event.key];
        if (by === undefined) return;
        set(value + by);
        keep();
        event.preventDefault();
        event.stopPropagation();
    });
    set(Number(recall(key) ?? NaN));
    return bar;
}

// Handles the mouse over a chart: the wheel zooms at the pointer, dragging moves, dragging with shift selects, a click picks, a double
// click resets.
import type { Chart } from "./chart";

const CLICK_PIXELS = 4;
const CORNER_MS = 200;

export function followPointer(canvas: HTMLElement, chart: Chart): void {
    let drag: { x: number; y: number; lastX: number; lastY: number; selects: boolean; moved: boolean } | null = null;
    // Query the chart's position only rarely, because it forces a layout.
    let corner: { left: number; top: number; until: number } = { left: 0, top: 0, until: 0 };
    const local = (event: MouseEvent): [number, number] => {
        if (event.timeStamp > corner.until || event.type === "pointerdown") {
            const { left, top } = canvas.getBoundingClientRect();
            corner = { left, top, until: event.timeStamp + CORNER_MS };
        }
        return [event.clientX - corner.left, event.clientY - corner.top];
    };
    for (const moving of ["scroll", "resize"]) window.addEventListener(moving, () => (corner.until = 0), { capture: true, passive: true });

    canvas.addEventListener(
        "wheel",
        (event) => {
            event.preventDefault();
            const [x, y] = local(event);
            const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1;
            if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey) chart.pan(event.deltaX * unit);
            else if (event.shiftKey) chart.zoomHeight(Math.exp((event.deltaY || event.deltaX) * unit * 0.0016), y);
            else chart.zoom(Math.exp(event.deltaY * unit * 0.0016), x);
        },
        { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        const [x, y] = local(event);
        drag = { x, y, lastX: x, lastY: y, selects: event.shiftKey, moved: false };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
        const [x, y] = local(event);
        if (!drag) {
            chart.point(x, y);
            return;
        }
        drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > CLICK_PIXELS;
        if (!drag.moved) return;
        if (drag.selects) chart.preview(drag.x, x);
        else {
            chart.pan(drag.lastX - x);
            chart.panHeight(y - drag.lastY);
        }
        drag.lastX = x;
        drag.lastY = y;
    });
    canvas.addEventListener("pointerup", (event) => {
        if (!drag) return;
        const [x, y] = local(event);
        const { selects, moved, x: began } = drag;
        drag = null;
        if (selects && moved) chart.select(began, x);
        else if (!moved) void chart.click(x, y);
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => chart.leave());
    canvas.addEventListener("dblclick", () => chart.reset());
}

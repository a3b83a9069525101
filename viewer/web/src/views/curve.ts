// Totals: allocated, active and reserved bytes along the window.
import type { App, View } from "../app";
import { el } from "../dom";
import { bytes } from "../format";
import type { Numbers } from "../protocol";

type Curve = { columns: Record<string, Numbers>; pixels: number };

export function curveView(app: App): View {
    const canvas = el("canvas", { role: "img", "aria-label": "Totals along the window" });
    const root = el("div", { class: "fill" }, canvas);
    let asked = 0;

    async function draw(): Promise<void> {
        const device = app.device();
        if (!device) return;
        const ticket = ++asked;
        const pixels = Math.max(1, Math.min(root.clientWidth, 4096));
        const { from, to } = app.window();
        const { rec, axis } = app.store.state;
        const answer = await app.engine.ask({ name: "curve", rec, device: device.device, axis, from, to, pixels });
        if (ticket !== asked) return;
        const names = ["reserved_high", "active_high", "allocated_low", "allocated_high"];
        paint({ pixels, columns: Object.fromEntries(names.map((name) => [name, answer.column(name)])) });
    }

    function paint({ columns, pixels }: Curve): void {
        const ratio = devicePixelRatio;
        const height = root.clientHeight;
        canvas.width = pixels * ratio;
        canvas.height = height * ratio;
        const context = canvas.getContext("2d")!;
        context.scale(ratio, ratio);
        const style = getComputedStyle(root);
        const top = Math.max(1, ...columns.reserved_high, ...columns.active_high);
        const y = (value: number) => height - (value / top) * (height - 24);
        for (const [name, colour] of [["reserved_high", "--reserved"], ["active_high", "--active"], ["allocated_high", "--allocated"]]) {
            context.fillStyle = style.getPropertyValue(colour);
            context.beginPath();
            context.moveTo(0, height);
            columns[name].forEach((value, x) => {
                context.lineTo(x, y(value));
                context.lineTo(x + 1, y(value));
            });
            context.lineTo(pixels, height);
            context.fill();
        }
        context.fillStyle = style.getPropertyValue("--text");
        context.font = "12px system-ui";
        context.fillText(bytes(top), 4, 14);
    }

    return { id: "totals", title: "Totals", key: "t", root, show: () => void draw(), update: () => void draw() };
}

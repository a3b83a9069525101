// Draws on a canvas or writes SVG with the same calls, so that screen and file need one implementation.
import { xmlText } from "../dom";

export type TextStyle = { size?: number; align?: "left" | "center" | "right"; bold?: boolean; mono?: boolean };

export interface Pen {
    rect(x: number, y: number, width: number, height: number, fill: string): void;
    frame(x: number, y: number, width: number, height: number, stroke: string, lineWidth?: number): void;
    line(points: ArrayLike<number>, stroke: string, lineWidth?: number, dash?: number[]): void; // x0, y0, x1, y1, ...
    text(x: number, y: number, text: string, fill: string, style?: TextStyle): void;
    image(source: HTMLCanvasElement, x: number, y: number, width: number, height: number): void;
    clip(x: number, y: number, width: number, height: number, draw: () => void): void;
    textWidth(text: string, style?: TextStyle): number;
}

const FAMILY = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, "DejaVu Sans Mono", monospace';
const font = ({ size = 11, bold = false, mono = false }: TextStyle) => `${bold ? "600 " : ""}${size}px ${mono ? MONO : FAMILY}`;

const measuring = document.createElement("canvas").getContext("2d")!;
const widths = new Map<string, number>(); // the same few texts are measured at every move
function widthOf(text: string, style: TextStyle): number {
    const wanted = font(style);
    const key = `${wanted} ${text}`;
    const known = widths.get(key);
    if (known !== undefined) return known;
    measuring.font = wanted;
    const { width } = measuring.measureText(text);
    if (widths.size > 4096) widths.clear();
    widths.set(key, width);
    return width;
}

export class CanvasPen implements Pen {
    private lettering = ""; // the current font and alignment: setting them costs more than drawing a short text
    constructor(private readonly context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D) {}

    rect(x: number, y: number, width: number, height: number, fill: string): void {
        this.context.fillStyle = fill;
        this.context.fillRect(x, y, width, height);
    }
    frame(x: number, y: number, width: number, height: number, stroke: string, lineWidth = 1): void {
        this.context.strokeStyle = stroke;
        this.context.lineWidth = lineWidth;
        this.context.strokeRect(x, y, width, height);
    }
    line(points: ArrayLike<number>, stroke: string, lineWidth = 1, dash: number[] = []): void {
        const { context } = this;
        context.strokeStyle = stroke;
        context.lineWidth = lineWidth;
        context.setLineDash(dash);
        context.beginPath();
        for (let i = 0; i + 1 < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
        context.stroke();
        context.setLineDash([]);
    }
    text(x: number, y: number, text: string, fill: string, style: TextStyle = {}): void {
        const { context } = this;
        context.fillStyle = fill;
        const wanted = `${font(style)} ${style.align}`;
        if (wanted !== this.lettering) {
            this.lettering = wanted;
            context.font = font(style);
            context.textAlign = style.align ?? "left";
        }
        context.fillText(text, x, y);
    }
    image(source: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(source, x, y, width, height);
    }
    clip(x: number, y: number, width: number, height: number, draw: () => void): void {
        const { context } = this;
        context.save();
        context.beginPath();
        context.rect(x, y, width, height);
        context.clip();
        draw();
        context.restore();
        this.lettering = "";
    }
    textWidth(text: string, style: TextStyle = {}): number {
        return widthOf(text, style);
    }
}

const n = (value: number) => String(Math.round(value * 100) / 100);

export class SvgPen implements Pen {
    private readonly parts: string[] = [];
    private clips = 0;
    constructor(
        private readonly width: number,
        private readonly height: number,
    ) {}

    rect(x: number, y: number, width: number, height: number, fill: string): void {
        this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="${fill}"/>`);
    }
    frame(x: number, y: number, width: number, height: number, stroke: string, lineWidth = 1): void {
        this.parts.push(
            `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="none" stroke="${stroke}" stroke-width="${lineWidth}"/>`,
        );
    }
    line(points: ArrayLike<number>, stroke: string, lineWidth = 1, dash: number[] = []): void {
        let path = "";
        for (let i = 0; i + 1 < points.length; i += 2) path += `${i === 0 ? "M" : "L"}${n(points[i])} ${n(points[i + 1])}`;
        const dashes = dash.length === 0 ? "" : ` stroke-dasharray="${dash.join(" ")}"`;
        this.parts.push(`<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${lineWidth}"${dashes}/>`);
    }
    text(x: number, y: number, text: string, fill: string, style: TextStyle = {}): void {
        const { size = 11, align = "left", bold = false, mono = false } = style;
        const anchor = { left: "start", center: "middle", right: "end" }[align];
        this.parts.push(
            `<text x="${n(x)}" y="${n(y)}" fill="${fill}" font-size="${size}" text-anchor="${anchor}"${bold ? ' font-weight="600"' : ""}` +
                `${mono ? ' font-family="monospace"' : ""}>${xmlText(text)}</text>`,
        );
    }
    image(source: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
        this.parts.push(
            `<image x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" preserveAspectRatio="none" image-rendering="pixelated" ` +
                `href="${source.toDataURL("image/png")}"/>`,
        );
    }
    clip(x: number, y: number, width: number, height: number, draw: () => void): void {
        const id = `clip${++this.clips}`;
        this.parts.push(`<clipPath id="${id}"><rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}"/></clipPath><g clip-path="url(#${id})">`);
        draw();
        this.parts.push("</g>");
    }
    textWidth(text: string, style: TextStyle = {}): number {
        return widthOf(text, style);
    }
    document(ground: string): string {
        return (
            `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" ` +
            `font-family="${xmlText(FAMILY)}"><rect width="100%" height="100%" fill="${ground}"/>\n${this.parts.join("\n")}\n</svg>\n`
        );
    }
}

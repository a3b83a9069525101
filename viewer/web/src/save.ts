// Saves the view: as a picture, a table or a link. Files are created here and given to the browser; nothing is sent anywhere else.
import type { Frame } from "./frame";
import type { Command } from "./menu";
import { pageOf } from "./pages";

export function download(blob: Blob, name: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileName(frame: Frame, extension: string): string {
    const recording = (frame.recording()?.name ?? "recording").replace(/^.*[/\\]/, "").replace(/\.(pickle|pkl|json|html|vram|gz|zst|xz)\b/g, "");
    return `${recording || "recording"}-${frame.view().id}.${extension}`;
}

// Paints the SVG at twice its size, so that it is sharp on a slide.
async function painted(svg: string): Promise<Blob> {
    const image = new Image();
    const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    try {
        image.src = url;
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.width = image.naturalWidth * 2;
        canvas.height = image.naturalHeight * 2;
        canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
        return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large")))));
    } finally {
        URL.revokeObjectURL(url);
    }
}

async function save(frame: Frame, kind: "svg" | "png" | "csv"): Promise<void> {
    const view = frame.view();
    try {
        if (kind === "svg") download(new Blob([await view.svg!()], { type: "image/svg+xml" }), fileName(frame, kind));
        if (kind === "csv") download(new Blob([await view.csv!()], { type: "text/csv" }), fileName(frame, kind));
        if (kind === "png") download(view.png ? await view.png() : await painted(await view.svg!()), fileName(frame, kind));
    } catch (error) {
        frame.say(`${view.title} could not be saved: ${(error as Error).message}`);
    }
}

export async function copyText(text: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Without permission, copy through a selection.
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
}

async function savePage(frame: Frame): Promise<void> {
    try {
        download(await pageOf(frame.opened, frame.store.state.skip), fileName(frame, "html"));
    } catch (error) {
        frame.say(`The page could not be saved: ${(error as Error).message}`);
    }
}

export function saveCommands(frame: Frame): Command[] {
    const view = frame.view();
    const open = frame.device() !== undefined;
    return [
        { title: "Picture (SVG)", disabled: !open || !view.svg, run: () => void save(frame, "svg") },
        { title: "Picture (PNG)", disabled: !open || !(view.png || view.svg), run: () => void save(frame, "png") },
        { title: "Table (CSV)", disabled: !open || !view.csv, run: () => void save(frame, "csv") },
        { title: "This page, with the recordings", disabled: frame.opened.length === 0, run: () => void savePage(frame) },
        { title: "Copy link to this view", run: () => void copyText(location.href) },
    ];
}

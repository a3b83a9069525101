// Pages that contain recordings, as `vram view -o` writes them: writes such pages, and opens the recordings in them.
import type { Opened } from "./frame";
import { bytesOfBase64 } from "./base64";
import { unwrapped } from "./engine";
import { visible } from "./visible";

const KIND = 'script[type="application/x-vram"]';
const MOST_BYTES = 400 * 2 ** 20; // browsers refuse texts beyond about 500 MB

const inside = (page: Document): HTMLScriptElement[] => [...page.querySelectorAll<HTMLScriptElement>(KIND)];
const nameOf = (element: HTMLScriptElement): string => element.dataset.name ?? "recording";

// Returns the names of a page's recordings, to show while they are unpacked.
export const embeddedNames = (page: Document): string => inside(page).map((element) => visible(nameOf(element))).join(", ");

// Returns the argument of `vram view --skip`.
export const embeddedSkip = (page: Document): string => page.querySelector<HTMLMetaElement>('meta[name="vram-skip"]')?.content ?? "";

const PART = 4 << 20; // characters of base64 unpacked at a time; a multiple of four

// Unpacks in parts, so that a large recording does not block the page.
async function blobOf(text: string): Promise<Blob> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for (let at = 0; at < text.length; at += PART) {
        parts.push(bytesOfBase64(text.slice(at, at + PART)));
        if (at + PART < text.length) await new Promise((resolve) => setTimeout(resolve));
    }
    return new Blob(parts);
}

export async function embeddedIn(page: Document): Promise<Opened[]> {
    const found: Opened[] = [];
    for (const element of inside(page)) found.push({ name: nameOf(element), file: await blobOf(element.textContent!.trim()) });
    return found;
}

// Replaces pages by the recordings in them. A page is only parsed: nothing in it runs or is shown.
export async function unpacked(given: readonly Opened[]): Promise<Opened[]> {
    const all: Opened[] = [];
    for (const item of given) {
        const page = /\.html?$/i.test(item.name) && item.file.size < MOST_BYTES ? await item.file.text() : "";
        const found = page.includes("<title>vram") && page.includes("application/x-vram") ? await embeddedIn(new DOMParser().parseFromString(page, "text/html")) : [];
        all.push(...(found.length > 0 ? found : [item]));
    }
    return all;
}

async function base64(file: Blob): Promise<string> {
    const plain = new Uint8Array(await (await unwrapped(file)).arrayBuffer()); // the form that the command writes and reads
    let text = "";
    // A multiple of three, so that the parts can be concatenated.
    for (let at = 0; at < plain.length; at += 24576) text += btoa(String.fromCharCode(...plain.subarray(at, at + 24576)));
    return text;
}

// Returns this page with the recordings inside. Scripts and style stay unchanged, so that the policy still matches them.
export async function pageOf(opened: readonly Opened[], skip: string): Promise<Blob> {
    const total = opened.reduce((sum, { file }) => sum + file.size, 0);
    if (total > MOST_BYTES) throw new Error("the recordings are too large for a page: `vram view --serve` opens them");
    const page = document.documentElement.cloneNode(true) as HTMLElement;
    page.removeAttribute("data-theme");
    page.querySelector("#app")!.replaceChildren();
    page.querySelector("title")!.textContent = "vram";
    for (const old of page.querySelectorAll(`${KIND}, .unpacked`)) old.remove();
    const last = [...page.querySelectorAll("body > script")].at(-1)!;
    for (const other of page.querySelectorAll("body > :not(script):not(#app):not(meta[name='vram-kinds']), meta[name='vram-skip']")) other.remove();
    if (skip !== "") {
        const meta = document.createElement("meta");
        meta.name = "vram-skip";
        meta.content = skip;
        last.before(meta, "\n");
    }
    for (const { name, file } of opened) {
        const script = document.createElement("script");
        script.setAttribute("type", "application/x-vram");
        script.setAttribute("data-name", name);
        script.textContent = await base64(file);
        last.before(script, "\n");
    }
    return new Blob([`<!DOCTYPE html>\n${page.outerHTML}\n`], { type: "text/html" });
}

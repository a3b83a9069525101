// Pages with recordings inside, as `vram view -o` writes them: this page writes such ones, too, and opens what is inside of them.
import type { Opened } from "./frame";
import { bytesOfBase64 } from "./base64";
import { unwrapped } from "./engine";
import { visible } from "./visible";

const KIND = 'script[type="application/x-vram"]';
const MOST_BYTES = 400 * 2 ** 20; // browsers refuse texts beyond about 500 MB

const inside = (page: Document): HTMLScriptElement[] => [...page.querySelectorAll<HTMLScriptElement>(KIND)];
const nameOf = (element: HTMLScriptElement): string => element.dataset.name ?? "recording";

// The names of what a page has inside, to be shown while it is unpacked.
export const embeddedNames = (page: Document): string => inside(page).map((element) => visible(nameOf(element))).join(", ");

// What `vram view --skip` was given.
export const embeddedSkip = (page: Document): string => page.querySelector<HTMLMetaElement>('meta[name="vram-skip"]')?.content ?? "";

const PART = 4 << 20; // letters of base64, that are unpacked at a time: a multiple of four

// A part at a time: what is large holds nobody up.
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

// What is inside where a file is such a page; else the file. Nothing of it runs: it is parsed, not shown.
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
    const plain = new Uint8Array(await (await unwrapped(file)).arrayBuffer()); // as the command embeds it, and reads it
    let text = "";
    // A multiple of three: the parts can be put together.
    for (let at = 0; at < plain.length; at += 24576) text += btoa(String.fromCharCode(...plain.subarray(at, at + 24576)));
    return text;
}

// This page with the recordings inside. Scripts and style stay as they are, so that the policy still names them.
export async function pageOf(opened: readonly Opened[], skip: string): Promise<Blob> {
    const total = opened.reduce((sum, { file }) => sum + file.size, 0);
    if (total > MOST_BYTES) throw new Error("the recordings are too large for a page: `vram view --serve` opens them");
    const page = document.documentElement.cloneNode(true) as HTMLElement;
    page.removeAttribute("data-theme");
    page.querySelector("#app")!.replaceChildren();
    page.querySelector("title")!.textContent = "vram";
    for (const old of page.querySelectorAll(`${KIND}, .unpacked`)) old.remove();
    const last = [...page.querySelectorAll("body > script")].at(-1)!;
    for (const other of page.querySelectorAll("body > :not(script):not(#app), meta[name='vram-skip']")) other.remove();
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

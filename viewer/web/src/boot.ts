// The page's first script. It contains the page's style and other scripts in packed form and adds them one after another. The policy lists
// the hash of each.
import { bytesOfBase64 } from "./base64";

type Part = "style" | "worker" | "painting" | "main";

const NEEDED = "This browser has no DecompressionStream: the page needs Firefox 113, Chromium 111, Safari 16.4 or newer.";

function place(part: Part, text: string): void {
    const element = document.createElement(part === "style" ? "style" : "script");
    element.id = part;
    element.className = "unpacked"; // a saved page has only the packed form (pages.ts)
    // A script of another type is not run; main makes a worker of it.
    if (part === "worker" || part === "painting") (element as HTMLScriptElement).type = "text/plain";
    element.textContent = text;
    document.head.append(element);
}

async function unpack(): Promise<void> {
    if (!("DecompressionStream" in globalThis)) throw new Error(NEEDED);
    const packed = bytesOfBase64(document.getElementById("parts")!.textContent!.trim());
    const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const parts = (await new Response(plain).json()) as Record<Part, string>;
    for (const part of ["style", "worker", "painting", "main"] as const) place(part, parts[part]);
}

unpack().catch((error: Error) => {
    const message = document.createElement("p");
    message.className = "message";
    message.setAttribute("role", "alert");
    message.textContent = error.message;
    document.body.append(message);
});

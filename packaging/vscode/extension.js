// Shows recordings of GPU memory in a tab: the viewer's page in a webview. The page gets the file's bytes as if it had been dropped on it.
// Its locations in call stacks are links, which come back as messages and open the line here.
const vscode = require("vscode");
const { createHash } = require("node:crypto");
const path = require("node:path");

const PAGE = "viewer.html";
// The page uses this as the address of a source. No program handles it; the bridge below does.
const TEMPLATE = "vscode://vram.source/{file}?{line}";

// Runs in the page. Replaces its storage, which webviews lack for some origins, and returns our template from it. Reports clicks on links,
// passes the file as a drop, follows the editor's light or dark theme instead of the system's, and removes the page's padding.
function bridge(template) {
    const api = acquireVsCodeApi();
    const kept = new Map([["vram.source", template]]);
    Object.defineProperty(window, "localStorage", {
        value: { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value), removeItem: (key) => void kept.delete(key) },
    });
    const dark = new EventTarget();
    Object.defineProperty(dark, "matches", { get: () => ["vscode-dark", "vscode-high-contrast"].includes(document.body.dataset.vscodeThemeKind) });
    const told = new MutationObserver(() => dark.dispatchEvent(new Event("change")));
    told.observe(document, { attributes: true, subtree: true, attributeFilter: ["data-vscode-theme-kind"] });
    const ask = window.matchMedia;
    window.matchMedia = (query) => (query === "(prefers-color-scheme: dark)" ? dark : ask.call(window, query));
    window.addEventListener("DOMContentLoaded", () => void (document.body.style.padding = "0"));
    window.addEventListener("click", (event) => {
        const link = event.target instanceof Element ? event.target.closest("a[href^='vscode://vram.source/']") : null;
        if (!link) return;
        event.preventDefault();
        event.stopPropagation();
        const [file, line] = link.getAttribute("href").slice("vscode://vram.source/".length).split("?");
        api.postMessage({ kind: "source", file: decodeURIComponent(file), line: Number(line) });
    }, true);
    window.addEventListener("message", ({ data }) => {
        if (data?.kind !== "recording") return;
        const transfer = new DataTransfer();
        transfer.items.add(new File([data.bytes], data.name));
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
    });
    window.addEventListener("load", () => api.postMessage({ kind: "ready" }));
}

const hashOf = (script) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`;

// Returns the page with the bridge in front of its own scripts, and allowed by its policy.
function withBridge(page) {
    const script = `(${bridge})(${JSON.stringify(TEMPLATE)})`;
    return page.replace("script-src ", `script-src ${hashOf(script)} `).replace("</head>", () => `<script>${script}</script></head>`);
}

// Finds a recorded file: at its recorded path, or below a folder of the workspace by as many of its last parts as match.
async function find(file) {
    const exists = (uri) => vscode.workspace.fs.stat(uri).then((facts) => (facts.type & vscode.FileType.File) !== 0, () => false);
    const folders = vscode.workspace.workspaceFolders ?? [];
    if (path.isAbsolute(file) && (await exists(vscode.Uri.file(file)))) return vscode.Uri.file(file);
    const parts = file.split(/[/\\]/).filter((part) => part !== "" && part !== "." && part !== "..");
    for (let from = 0; from < parts.length; from++) {
        for (const folder of folders) {
            const uri = vscode.Uri.joinPath(folder.uri, ...parts.slice(from));
            if (await exists(uri)) return uri;
        }
    }
    return null;
}

async function openSource({ file, line }) {
    const uri = typeof file === "string" ? await find(file) : null;
    if (uri === null) return void vscode.window.showWarningMessage(`vram: ${file} is neither here nor in a folder of this window`);
    const at = new vscode.Position(Math.max(0, (Number.isFinite(line) ? line : 1) - 1), 0);
    await vscode.commands.executeCommand("vscode.open", uri, { selection: new vscode.Range(at, at), viewColumn: vscode.ViewColumn.Beside, preserveFocus: false });
}

class Recordings {
    constructor(context) {
        this.page = vscode.Uri.joinPath(context.extensionUri, PAGE);
    }

    openCustomDocument(uri) {
        return { uri, dispose() {} };
    }

    async resolveCustomEditor({ uri }, panel) {
        const webview = panel.webview;
        webview.options = { enableScripts: true, localResourceRoots: [] };
        webview.onDidReceiveMessage(async (message) => {
            if (message.kind === "source") return openSource(message);
            if (message.kind !== "ready") return;
            const bytes = await vscode.workspace.fs.readFile(uri);
            const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
            await webview.postMessage({ kind: "recording", name: path.posix.basename(uri.path), bytes: own });
        });
        webview.html = withBridge(Buffer.from(await vscode.workspace.fs.readFile(this.page)).toString("utf8"));
    }
}

exports.activate = (context) => {
    const editor = new Recordings(context);
    const options = { supportsMultipleEditorsPerDocument: true, webviewOptions: { retainContextWhenHidden: true } };
    for (const type of ["vram.recording", "vram.page"]) context.subscriptions.push(vscode.window.registerCustomEditorProvider(type, editor, options));
    context.subscriptions.push(vscode.commands.registerCommand("vram.open", (uri) => uri && vscode.commands.executeCommand("vscode.openWith", uri, "vram.recording")));
};

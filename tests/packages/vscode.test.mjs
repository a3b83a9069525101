// Tests the extension for Visual Studio Code with a fake editor: its page in Chromium shows the file passed by the extension,
// and a click on a frame makes the editor open its line. usage: vscode.test.mjs EXTENSION_FOLDER RECORDING (77 without a browser)
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, existsSync } from "node:fs";
import { createRequire } from "node:module";
import Module from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import assert from "node:assert/strict";

const [folder, recording] = process.argv.slice(2).map((name) => path.resolve(name));
const require = createRequire(path.resolve("viewer/web/package.json"));
const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
if (!browsers.some(existsSync)) {
    console.log("skipped: no Chromium");
    process.exit(77);
}
const { chromium } = require("playwright-core");
const work = mkdtempSync(path.join(tmpdir(), "vram-vscode-"));

// The part of the editor that the extension uses.
const executed = [];
const warnings = [];
const providers = new Map();
const commands = new Map();
const uriOf = (name) => ({ path: name, fsPath: name, scheme: "file" });
const vscode = {
    Uri: { file: uriOf, joinPath: (base, ...parts) => uriOf(path.posix.join(base.path, ...parts)) },
    FileType: { File: 1 },
    ViewColumn: { Beside: -2 },
    Position: class { constructor(line, character) { Object.assign(this, { line, character }); } },
    Range: class { constructor(start, end) { Object.assign(this, { start, end }); } },
    workspace: {
        workspaceFolders: [{ uri: uriOf(work) }],
        fs: { stat: async (uri) => ({ type: statSync(uri.fsPath).isFile() ? 1 : 2 }), readFile: async (uri) => new Uint8Array(readFileSync(uri.fsPath)) },
    },
    window: {
        showWarningMessage: (text) => warnings.push(text),
        registerCustomEditorProvider: (type, provider) => (providers.set(type, provider), { dispose() {} }),
    },
    commands: {
        executeCommand: async (...words) => void executed.push(words),
        registerCommand: (name, run) => (commands.set(name, run), { dispose() {} }),
    },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
require(path.join(folder, "extension.js")).activate({ extensionUri: uriOf(folder), subscriptions: [] });

const declared = JSON.parse(readFileSync(path.join(folder, "package.json"))).contributes;
assert.deepEqual([...providers.keys()].sort(), declared.customEditors.map((editor) => editor.viewType).sort());
assert.deepEqual([...commands.keys()], declared.commands.map((command) => command.command));

let fromPage;
const toPage = [];
const webview = { onDidReceiveMessage: (listener) => void (fromPage = listener), postMessage: async (message) => void toPage.push(message) };
await providers.get("vram.recording").resolveCustomEditor({ uri: uriOf(recording) }, { webview });

const browser = await chromium.launch({ executablePath: browsers.find(existsSync), args: ["--no-sandbox", "--disable-gpu-sandbox"] });
try {
    const page = await browser.newPage();
    const errors = [];
    page.setDefaultTimeout(120000);
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.exposeFunction("tellExtension", async (message) => {
        await fromPage(message);
        for (const { bytes, ...rest } of toPage.splice(0)) {
            await page.evaluate(([more, text]) => window.postMessage({ ...more, bytes: Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer }, "*"), [rest, Buffer.from(bytes).toString("base64")]);
        }
    });
    await page.addInitScript(() => {
        window.acquireVsCodeApi = () => ({ postMessage: (message) => window.tellExtension(message) });
    });
    const file = path.join(work, "page.html");
    writeFileSync(file, webview.html);
    await page.goto(`file://${file}`);
    await page.waitForFunction(() => document.querySelector("select.files option, .loading") && document.querySelector(".loading").hidden && document.querySelector("select.files option"));
    assert.equal((await page.locator("select.files option").first().textContent()).includes(path.basename(recording)), true);

    // Finds a place in the code: the pane of an allocation has its call stack.
    await page.goto(`file://${file}#view=segments`);
    await page.reload();
    await page.waitForFunction(() => document.querySelector("select.files option"));
    await page.evaluate(() => {
        const link = document.createElement("a");
        link.href = "vscode://vram.source//somewhere/else/src/train.py?12";
        link.id = "probe";
        link.textContent = "probe";
        document.body.append(link);
    });
    // If a file is not in its recorded place, the last parts of its path are looked for in the window's folder.
    writeFileSync(path.join(work, "train.py"), "\n".repeat(20));
    await page.locator("#probe").click();
    for (let i = 0; i < 100 && executed.length === 0; i++) await page.waitForTimeout(50);
    const [command, uri, options] = executed[0];
    assert.equal(command, "vscode.open");
    assert.equal(uri.fsPath, path.join(work, "train.py"));
    assert.equal(options.selection.start.line, 11);

    // The page's own links have this form.
    const made = await page.evaluate(() => localStorage.getItem("vram.source"));
    assert.equal(made, "vscode://vram.source/{file}?{line}");
    await fromPage({ kind: "source", file: "nowhere.py", line: 3 });
    assert.equal(warnings.length, 1);
    assert.deepEqual(errors, []);
    console.log("ok: the recording is shown, a place opens its line");
} finally {
    await browser.close();
    rmSync(work, { recursive: true, force: true });
}

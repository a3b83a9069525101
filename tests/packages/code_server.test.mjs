// Tests the extension in Visual Studio Code itself (code-server in Chromium): recordings open in a tab, and a place in a call stack opens its line.
// usage: code_server.test.mjs PROGRAM VSIX VRAM [SHOTS]   (PROGRAM: installed by code_server.sh; SHOTS: a folder for screenshots)
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openPage } from "../../viewer/web/tests/browser.mjs";
import { answers, freePort, viewerFrame } from "./hosts.mjs";

const [program, vsix, vram, shots] = process.argv.slice(2).map((name) => path.resolve(name));
const root = path.resolve(import.meta.dirname, "../..");
const work = mkdtempSync(path.join(tmpdir(), "vram-code-"));
const folder = path.join(work, "project");
const places = ["--user-data-dir", path.join(work, "user"), "--extensions-dir", path.join(work, "extensions"), "--config", path.join(work, "config.yaml")];

// Writes a folder with the recording in each of its formats, and the program's source.
function writeProject() {
    mkdirSync(path.join(folder, "examples"), { recursive: true });
    copyFileSync(path.join(root, "examples/serve_sim.c"), path.join(folder, "examples/serve_sim.c"));
    const recording = path.join(root, "examples/recordings/oom.pickle.gz");
    for (const name of ["oom.pickle", "oom.vram"]) execFileSync(vram, ["convert", recording, "-o", path.join(folder, name)]);
    execFileSync(vram, ["view", "--no-open", recording, "-o", path.join(folder, "oom.html")]);
    mkdirSync(path.join(work, "user/User"), { recursive: true });
    writeFileSync(path.join(work, "user/User/settings.json"), JSON.stringify({ "workbench.startupEditor": "none", "telemetry.telemetryLevel": "off" }));
    writeFileSync(path.join(work, "config.yaml"), "auth: none\n");
}

async function startServer() {
    const address = `http://127.0.0.1:${await freePort()}`;
    const options = ["--auth", "none", "--bind-addr", address.slice("http://".length), "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
    const server = spawn(process.execPath, [program, ...places, ...options], { stdio: "ignore" });
    await answers(`${address}/healthz`);
    return { server, address };
}

const inExplorer = (page, name) => page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: name });

// Right after its first start the editor does not yet know which extension opens the file, and shows a message, which is closed.
async function openRecording(page, name) {
    const refused = page.locator(".monaco-editor-pane-placeholder");
    for (let tries = 0; tries < 60; tries++) {
        await inExplorer(page, name).dblclick();
        await page.locator("iframe.webview").or(refused).first().waitFor();
        if ((await refused.count()) === 0) return viewerFrame(page, name);
        await page.locator(".tab.active .codicon-close").click();
        await page.waitForTimeout(500);
    }
    throw new Error(`${name} does not open in the extension`);
}

const shoot = async (page, name) => shots && (await page.screenshot({ path: path.join(shots, `${name}.png`) }));

// The block in the middle of the timeline has a call stack, and each of its places is a link.
async function openPlace(page, frame) {
    const box = await frame.locator("main canvas").first().boundingBox();
    await page.mouse.click(box.x + box.width * 0.5, box.y + box.height * 0.8);
    const link = frame.locator(".details .stack a").first();
    await link.waitFor();
    const place = await link.textContent();
    await shoot(page, "details");
    await link.click();
    return place;
}

// The page is dark like the editor, independent of the system's theme.
async function checkDark(page) {
    const frame = await viewerFrame(page, "oom.pickle.gz");
    assert.equal(await frame.evaluate(() => document.documentElement.dataset.theme), "light");
    await inExplorer(page, "examples").click();
    await page.keyboard.press("F1");
    await page.keyboard.type("Toggle between Light/Dark Themes");
    await page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    await page.keyboard.press("Enter");
    await frame.waitForFunction(() => document.documentElement.dataset.theme === "dark", null, { timeout: 20000 });
    assert.equal(await frame.evaluate(() => getComputedStyle(document.body).padding), "0px");
    await shoot(page, "dark");
}

async function check(address) {
    const begun = Date.now();
    const { browser, page, errors } = await openPage(`${address}/?folder=${encodeURIComponent(folder)}`, { offline: false });
    try {
        const first = await openRecording(page, "oom.pickle");
        console.log(`the folder, and a recording in a tab: ${((Date.now() - begun) / 1000).toFixed(1)} s`);
        await page.waitForTimeout(500);
        await shoot(page, "pickle");

        const [file, line] = (await openPlace(page, first)).split(":");
        assert.equal(file, "examples/serve_sim.c");
        await page.locator(".tab.active").filter({ hasText: "serve_sim.c" }).waitFor();
        await page.locator(".statusbar-item").filter({ hasText: `Ln ${line}, Col 1` }).waitFor();
        await shoot(page, "beside");

        await openRecording(page, "oom.vram");
        await shoot(page, "vram");

        // An HTML file opens as such by default, so the recording is opened through the explorer's menu.
        await inExplorer(page, "oom.html").click({ button: "right" });
        await page.getByRole("menuitem", { name: "Open as a recording of GPU memory" }).click({ delay: 300 }); // an immediate click counts as a slip
        await viewerFrame(page, "oom.pickle.gz");
        await page.waitForTimeout(500);
        await shoot(page, "html");

        await checkDark(page);
        // The editor looks for files that are missing here, and the page's policy rejects its colors. The page itself has no error.
        assert.deepEqual(errors.filter((text) => !/^(Failed to load resource|Applying inline style)/.test(text)), []);
    } catch (error) {
        await shoot(page, "failed");
        throw error;
    } finally {
        await browser.close();
    }
}

let server;
try {
    if (shots) mkdirSync(shots, { recursive: true });
    writeProject();
    const begun = Date.now();
    execFileSync(process.execPath, [program, ...places, "--install-extension", vsix], { stdio: ["ignore", "ignore", "inherit"] });
    console.log(`the extension installed: ${((Date.now() - begun) / 1000).toFixed(1)} s`);
    const started = await startServer();
    server = started.server;
    await check(started.address);
    console.log("ok: recordings open in tabs, a place opens its line");
} finally {
    server?.kill();
    rmSync(work, { recursive: true, force: true });
}

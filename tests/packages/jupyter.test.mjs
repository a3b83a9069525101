// Tests the page in a notebook: JupyterLab in Chromium runs a cell that ends with vram.show(), and the page below it is used.
// usage: jupyter.test.mjs PYTHON FOLDER [SHOTS]   (PYTHON: an environment with JupyterLab and the wheel; FOLDER: the notebook's; SHOTS: for screenshots)
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { openPage } from "../../viewer/web/tests/browser.mjs";
import { answers, freePort, viewerFrame } from "./hosts.mjs";

const [python, folder, shots] = process.argv.slice(2).map((name) => path.resolve(name));
const root = path.resolve(import.meta.dirname, "../..");
const shoot = async (page, name) => shots && (await page.screenshot({ path: path.join(shots, `${name}.png`) }));

function writeNotebook() {
    mkdirSync(folder, { recursive: true });
    copyFileSync(path.join(root, "examples/recordings/oom.pickle.gz"), path.join(folder, "oom.pickle.gz"));
    const cell = { id: "show", cell_type: "code", execution_count: null, metadata: {}, outputs: [], source: 'import vram\nvram.show("oom.pickle.gz", height=700)' };
    const kernel = { display_name: "Python 3", language: "python", name: "python3" };
    writeFileSync(path.join(folder, "show.ipynb"), JSON.stringify({ cells: [cell], metadata: { kernelspec: kernel }, nbformat: 4, nbformat_minor: 5 }));
}

async function startLab() {
    const port = await freePort();
    const options = [`--port=${port}`, "--ip=127.0.0.1", "--no-browser", "--allow-root", "--IdentityProvider.token=", `--notebook-dir=${folder}`];
    const server = spawn(python, ["-m", "jupyterlab", ...options], { stdio: "ignore" });
    const address = `http://127.0.0.1:${port}`;
    await answers(`${address}/api`);
    return { server, address };
}

async function check(address) {
    const begun = Date.now();
    const { browser, page, errors } = await openPage(`${address}/lab/tree/show.ipynb`, { offline: false });
    try {
        await page.locator(".jp-Cell .cm-content").first().click();
        await page.locator('.jp-NotebookPanel [data-status="idle"]').first().waitFor();
        const asked = Date.now();
        await page.keyboard.press("Shift+Enter");
        const frame = await viewerFrame(page, "oom.pickle.gz");
        console.log(`the notebook: ${((asked - begun) / 1000).toFixed(1)} s; the page below the cell: ${((Date.now() - asked) / 1000).toFixed(1)} s`);
        await page.waitForTimeout(500);
        await shoot(page, "cell");

        // The page works: a tab leads to the cause, and the block in the middle of the timeline to its stack.
        const box = await frame.locator("main canvas").first().boundingBox();
        await page.mouse.click(box.x + box.width * 0.5, box.y + box.height * 0.8);
        await frame.locator(".details .stack").waitFor();
        assert.match(await frame.locator(".details .stack").textContent(), /examples\/serve_sim\.c|load_model/);
        await shoot(page, "stack");
        await frame.getByRole("tab", { name: /Out of memory/ }).click();
        await frame.locator(".oom-card").first().waitFor();
        await shoot(page, "oom");
        assert.deepEqual(errors.filter((text) => !text.startsWith("Failed to load resource")), []);
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
    writeNotebook();
    const started = await startLab();
    server = started.server;
    await check(started.address);
    console.log("ok: a cell shows the page, and it can be used");
} finally {
    server?.kill();
}

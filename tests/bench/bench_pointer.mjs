// Measures the page's response to the mouse: node tests/bench/bench_pointer.mjs PAGE.html RECORDING [--peer FOLDER]. Opens the recording in
// headless Chromium without a GPU and prints, as JSON, in milliseconds, for a mouse move, a turn of the wheel and a move of a drag over the
// timeline: the CPU time of the page's main thread, and the longest tasks. With --peer the page is PyTorch's own: FOLDER has its
// MemoryViz.js (with the files it imports) and, in node_modules, the d3 modules it names; PAGE.html is not read.
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { openPage } from "../../viewer/web/tests/browser.mjs";

const web = createRequire(fileURLToPath(new URL("../../viewer/web/package.json", import.meta.url)));
const args = process.argv.slice(2);
const at = args.indexOf("--peer");
const peer = at < 0 ? null : resolve(args.splice(at, 2)[1]);
const [html, recording] = args;
if (!recording) {
    console.error("usage: node tests/bench/bench_pointer.mjs PAGE.html RECORDING [--peer FOLDER]");
    process.exit(2);
}

const MOVES = 60;
const TURNS = 40;
const PAUSE_MS = 40; // between two events: longer than a frame, like a hand

// PyTorch's page as its Python code writes it, but with the modules inside instead of on a server.
async function peerPage(folder) {
    const { build } = web("esbuild");
    const modules = {
        name: "modules",
        setup(bundle) {
            bundle.onResolve({ filter: /^https:/ }, ({ path }) => bundle.resolve(/\/(d3[a-z-]*)@/.exec(path)[1], { kind: "import-statement", resolveDir: folder }));
        },
    };
    const snapshot = JSON.stringify([{ name: "snapshot.pickle", base64: readFileSync(recording).toString("base64") }]);
    const contents = `import {add_local_files} from "./MemoryViz.js"; add_local_files(${snapshot}, "Active Memory Timeline");`;
    const result = await build({ stdin: { contents, resolveDir: folder }, bundle: true, format: "iife", write: false, plugins: [modules] });
    const path = join(mkdtempSync(join(tmpdir(), "vram-peer-")), "peer.html");
    writeFileSync(path, `<!DOCTYPE html><html><body><script>${result.outputFiles[0].text.replaceAll("</script", "<\\/script")}</script></body></html>`);
    return path;
}

const path = peer ? await peerPage(peer) : resolve(html);
const { browser, page, errors } = await openPage(path, { width: 1440, height: 900 });
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
const threadMs = async () => 1000 * (await cdp.send("Performance.getMetrics")).metrics.find(({ name }) => name === "ThreadTime").value;

const began = performance.now();
const seconds = () => Number(((performance.now() - began) / 1000).toFixed(2));
const result = { page: peer ? "PyTorch's" : "vram's", recording: recording.split("/").at(-1) };
let plot;
if (peer) {
    await page.waitForSelector("polygon", { timeout: 300000 });
    plot = await page.locator("svg").first().boundingBox();
} else {
    await page.locator('input[type="file"]').setInputFiles(recording);
    await page.waitForFunction(() => document.querySelector(".minimap:not([hidden]) canvas[aria-label]"), null, { timeout: 300000 });
    result.first_picture_s = seconds();
    await page.waitForFunction(() => document.querySelector(".loading").hidden && Number(document.querySelector(".chart-stage")?.dataset.ready) > 0, null, { timeout: 300000 });
    plot = await page.locator(".chart-top").boundingBox();
}
result.complete_s = seconds();
await page.waitForTimeout(3000);

async function tasksOf(during) {
    const events = [];
    cdp.on("Tracing.dataCollected", ({ value }) => events.push(...value));
    await cdp.send("Tracing.start", { traceConfig: { includedCategories: ["toplevel", "__metadata"] }, transferMode: "ReportEvents" });
    await during();
    const done = new Promise((resolved) => cdp.once("Tracing.tracingComplete", resolved));
    await cdp.send("Tracing.end");
    await done;
    const mains = new Set(events.filter(({ name, args: { name: thread } }) => name === "thread_name" && thread === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
    return events.filter(({ name, pid, tid, tdur }) => tdur && /RunTask/.test(name) && mains.has(`${pid} ${tid}`)).map(({ tdur }) => tdur / 1000);
}

async function measured(name, count, act) {
    const before = await threadMs();
    const longest = [];
    const tasks = await tasksOf(async () => {
        for (let i = 0; i < count; i++) {
            await act(i);
            await page.waitForTimeout(PAUSE_MS);
        }
        await page.waitForTimeout(400);
    });
    longest.push(...tasks.sort((a, b) => b - a).slice(0, 3).map((ms) => Number(ms.toFixed(1))));
    result[name] = { ms: Number((((await threadMs()) - before) / count).toFixed(2)), longest_tasks_ms: longest };
}

const x = (share) => plot.x + plot.width * share;
const y = (share) => plot.y + plot.height * share;
await page.mouse.move(x(0.3), y(0.9));
await measured("idle", MOVES, async () => {});
await measured("move", MOVES, (i) => page.mouse.move(x(0.25 + (0.5 * i) / MOVES), y(0.55 + 0.35 * Math.abs(Math.sin(i / 5)))));
await page.mouse.move(x(0.55), y(0.7));
await measured("wheel", TURNS, (i) => page.mouse.wheel(0, i < TURNS / 2 ? -120 : 120));
for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -120);
await page.waitForTimeout(1500);
await page.mouse.down();
await measured("drag", MOVES, (i) => page.mouse.move(x(0.55 + 0.25 * Math.sin(i / 8)), y(0.7)));
await page.mouse.up();
for (const name of ["move", "wheel", "drag"]) result[name].ms = Number((result[name].ms - (result.idle.ms * (name === "wheel" ? 1 : 1))).toFixed(2));
result.load = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
result.errors = errors;
console.log(JSON.stringify(result));
await browser.close();
if (peer) rmSync(join(path, ".."), { recursive: true });

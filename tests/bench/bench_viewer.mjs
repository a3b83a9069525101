// Measures the page with a large recording: node tests/bench/bench_viewer.mjs PAGE.html RECORDING [VIEW...]. Opens the recording in
// headless Chromium (in Firefox with VRAM_TEST_BROWSER=firefox) with the network off and prints, as JSON: seconds to the first picture and
// to the complete page, memory of the tab, and, per view, the times of frames and of the engine's answers while a scripted mouse zooms and
// pans.
import { readFileSync, readdirSync } from "node:fs";
import { openPage } from "../../viewer/web/tests/browser.mjs";

const [html, recording, ...wanted] = process.argv.slice(2);
if (!recording) {
    console.error("usage: node tests/bench/bench_viewer.mjs PAGE.html RECORDING [VIEW...]");
    process.exit(2);
}

// Records each question to the worker with the time of its answer, and each frame drawn while `measuring`.
function watch() {
    const asked = new Map();
    const bench = { answers: [], frames: [], measuring: false, first: 0 };
    window.bench = bench;
    const Original = Worker;
    window.Worker = class extends Original {
        constructor(...args) {
            super(...args);
            this.addEventListener("message", ({ data }) => {
                const question = asked.get(data.id);
                if (!question || data.kind === "progress") return;
                const now = performance.now();
                bench.answers.push({ name: question.name, ms: now - question.at, at: now });
                asked.delete(data.id);
            });
        }
        postMessage(message, transfer) {
            asked.set(message.id, { name: message.kind === "ask" ? message.question.split("?")[0] : message.kind, at: performance.now() });
            super.postMessage(message, transfer);
        }
    };
    let last = 0;
    const frame = (now) => {
        if (bench.measuring && last) bench.frames.push(now - last);
        last = bench.measuring ? now : 0;
        if (bench.first === 0 && document.querySelector(".minimap:not([hidden]) canvas[aria-label]")) bench.first = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}

// Returns the resident bytes of the browser's page processes, without shared memory.
function tabBytes() {
    let most = 0;
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
        try {
            if (!/--type=renderer|-contentproc.*tab\0*$/s.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"))) continue;
            const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
            most = Math.max(most, 1024 * Number(/Pss:\s+(\d+)/.exec(text)[1]));
        } catch {
            continue; // ended, or another user's
        }
    }
    return most;
}

function share(values, part) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted.length === 0 ? null : Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(2));
}

const { browser, page, errors } = await openPage(html, { init: watch });
const begin = Date.now();
const origin = await page.evaluate(() => performance.now());
await page.locator('input[type="file"]').setInputFiles(recording);
let peak = 0;
const poll = setInterval(() => (peak = Math.max(peak, tabBytes())), 250);
await page.waitForFunction(() => document.querySelector("header select.files option") || !document.querySelector(".message").hidden, null, { timeout: 540000 });
const listed = (Date.now() - begin) / 1000;
await page.waitForFunction(() => window.bench.first !== 0, null, { timeout: 120000 });
await page.waitForFunction(() => document.querySelector(".loading").hidden, null, { timeout: 120000 });
await page.waitForTimeout(3000);
const result = { recording, listed_s: listed, first_picture_s: (await page.evaluate(() => window.bench.first) - origin) / 1000, views: {} };
const begun = await page.evaluate(() => window.bench.answers);
result.complete_s = (Math.max(...begun.map(({ at }) => at)) - origin) / 1000; // no question came in the following seconds
result.questions_ms = begun.map(({ name, ms, at }) => `${name} ${Math.round(ms)} at ${Math.round(at - origin)}`);
const tabs = wanted.length ? wanted : await page.$$eval('[role="tab"]', (all) => all.map((tab) => tab.id.replace("tab-", "")));
for (const view of tabs) {
    await page.locator(`#tab-${view}`).click();
    await page.waitForTimeout(2500);
    const box = await page.locator("main").boundingBox();
    const [x, y] = [box.x + box.width * 0.55, box.y + box.height * 0.6];
    await page.evaluate(() => Object.assign(window.bench, { answers: [], frames: [], measuring: true }));
    await page.mouse.move(x, y);
    for (let i = 0; i < 25; i++) {
        await page.mouse.wheel(0, -120);
        await page.waitForTimeout(25);
    }
    for (let turn = 0; turn < 3; turn++) {
        await page.mouse.down();
        await page.mouse.move(x + (turn % 2 ? -300 : 300), y, { steps: 30 });
        await page.mouse.up();
    }
    for (let i = 0; i < 25; i++) {
        await page.mouse.wheel(0, 120);
        await page.waitForTimeout(25);
    }
    const { frames, answers } = await page.evaluate(() => ((window.bench.measuring = false), window.bench));
    const times = answers.map(({ ms }) => ms);
    const worst = answers.sort((a, b) => b.ms - a.ms)[0];
    result.views[view] = { frames: frames.length, frame_ms_median: share(frames, 0.5), frame_ms_99: share(frames, 0.99), answers: times.length, answer_ms_median: share(times, 0.5), answer_ms_99: share(times, 0.99), slowest: worst && `${worst.name} ${worst.ms.toFixed(1)}` };
    await page.keyboard.press("0");
}
clearInterval(poll);
result.tab_mb = Math.round(tabBytes() / 1e6);
result.tab_peak_mb = Math.round(Math.max(peak, tabBytes()) / 1e6);
result.errors = errors;
console.log(JSON.stringify(result, null, 1));
await browser.close();

// Compares two runs of one loop, with different warm-up and batch size, at the same step: the page equals the events, and the command's
// results for the same moments.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, settles, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));

// Makes a recording of a loop with marked steps, and each step's peak and its event.
function loop(name, batch, warm, steps) {
    const frames = (line, at) => [{ filename: "model.py", line, name: at }, { filename: "train.py", line: 3, name: "main" }];
    const events = [];
    const peaks = [];
    let total = 0;
    function event(action, addr, size, line, at) {
        events.push({ action, addr, size, stream: 0, time_us: events.length, frames: frames(line, at) });
        total += action === "alloc" ? size : action === "free_requested" ? -size : 0;
        if (peaks.length > 0 && total > peaks.at(-1).bytes) Object.assign(peaks.at(-1), { bytes: total, event: events.length - 1 });
    }
    for (let i = 0; i < warm; i++) event("alloc", 0x40000000 + i * 0x200000, 1 << 20, 5, "weights");
    for (let step = 0; step < steps; step++) {
        peaks.push({ bytes: -1, event: -1 });
        events.push({ action: "user_defined", addr: 0, size: 0, stream: 0, time_us: events.length, frames: [{ filename: "train step", line: 0, name: "" }] });
        const grown = (1 << 20) * batch + step * 4096;
        for (let i = 0; i < 20; i++) event("alloc", 0x100000000 + i * 0x1000000, grown * (1 + (i % 3)), 10 + (i % 2), "forward");
        for (let i = 19; i >= 0; i--) for (const action of ["free_requested", "free_completed"]) event(action, 0x100000000 + i * 0x1000000, grown * (1 + (i % 3)), 10, "forward");
    }
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify({ segments: [], device_traces: [events] }));
    return { path, peaks };
}
const a = loop("a.json", 1, 40, 12);
const b = loop("b.json", 3, 10, 9);

const sides = () => ["A", "B"].map((side) => document.querySelector(`.compare-facts [data-side="${side}"]`)?.dataset).map((data) => data && [Number(data.bytes), Number(data.event)]);
const hash = (key) => new URLSearchParams(location.hash.slice(1)).get(key);
const at = (peak) => [peak.bytes, peak.event];
// Returns a moment's groups from the command.
const groupsAt = (path, event) => JSON.parse(execFileSync(vram, ["report", "--site", "--at", String(event), "--top", "100", "--json", path])).groups;

const { browser, page, requests, errors } = await openPage(html);
await openFiles(page, [a.path, b.path]);
await page.keyboard.press("8");
const whole = JSON.parse(spawnSync(vram, ["diff", "--json", a.path, b.path]).stdout);
await settles(page, () => Number(document.querySelector(".compare-facts strong")?.dataset.bytes), null, whole.change_bytes, "at the peaks as the command says");
await settles(page, () => document.querySelector(".compare-curve canvas").dataset.steps, null, "9", "the curves have the steps that both have");

await page.locator('select[aria-label="Compare at"]').selectOption("step");
await settles(page, sides, null, [at(a.peaks[0]), at(b.peaks[0])], "the first step");
for (const step of [2, 3, 4]) {
    await page.keyboard.press("Escape");
    await page.locator("main").focus();
    await page.keyboard.press("]");
    await settles(page, hash, "step", String(step), `] goes to step ${step}`);
    await settles(page, sides, null, [at(a.peaks[step - 1]), at(b.peaks[step - 1])], `step ${step}`);
}
// The table's changes are the differences between the command's answers for the two moments.
const [before, after] = [groupsAt(a.path, a.peaks[3].event), groupsAt(b.path, b.peaks[3].event)];
const bytesOf = (groups, name) => groups.find((group) => group.name === name)?.bytes ?? 0;
const grown = after.map((group) => [group.name, group.bytes - bytesOf(before, group.name)]).sort((x, y) => y[1] - x[1]);
await settles(page, () => document.querySelector('table[aria-label="Differences"] tbody .site')?.title, null, grown[0][0], "the call site that grew most in the step");
await page.keyboard.press("[");
await settles(page, hash, "step", "3", "[ goes back");

// A click on the curves chooses the step under the pointer.
const box = await page.locator(".compare-curve canvas").boundingBox();
await page.mouse.move(box.x + 64 + ((box.width - 76) * 6.5) / 9, box.y + 80);
await settles(page, () => document.querySelector(".compare-curve .state-tip b")?.textContent, null, "step 7", "the pointer tells the step");
await page.mouse.down();
await page.mouse.up();
await settles(page, hash, "step", "7", "a click chooses it");
await settles(page, sides, null, [at(a.peaks[6]), at(b.peaks[6])], "step 7");
const inStep = () => [...document.querySelectorAll('table[aria-label="All recordings"] tbody tr')].map((row) => row.lastElementChild.textContent);
await settles(page, (read) => read.length, await page.evaluate(inStep), 2, "a row per recording");
expect((await page.evaluate(inStep)).every((text) => /iB$/.test(text)), "each recording's total in the step");

// A typed step number beyond what both have; a link to a step; the end of each.
await page.locator('input[aria-label="Step"]').fill("40");
await page.keyboard.press("Enter");
await settles(page, hash, "step", "9", "no step beyond the last one of both");
await go(page, { view: "compare", rec: 1, other: 0, step: 5 });
await settles(page, sides, null, [at(b.peaks[4]), at(a.peaks[4])], "a link to a step, the other way round");
await page.locator('select[aria-label="Compare at"]').selectOption("end");
await settles(page, () => document.querySelector(".compare-facts strong")?.dataset.bytes, null, String(30 << 20), "what is left at the ends: the weights");
equal(requests, [], "requests");
equal(errors, [], "errors");
await browser.close();
finish();

// Tests the page's words and numbers: every digit of a large integer, durations without exponents, visible hidden characters in names,
// rounding separate from allocated bytes, the leaks' sentence and rows, what to compare one recording with, announced picks.
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage, saved } from "./browser.mjs";
import { equal, expect, finish, go, html, pageRests, settles, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const put = (name, text) => {
    writeFileSync(join(folder, name), typeof text === "string" ? text : JSON.stringify(text));
    return join(folder, name);
};
const HUGE = "9223372036854775807";
const TURNED = "\u202Eyp.kcatta\u2066\u2028/home/\u200fme.py";
const frames = [{ name: `step\u2029${"\u202e"}txen`, filename: TURNED, line: 12 }];
const at = (i) => 0x7f0000000000 + i * 4096;
const event = (action, i, more = {}) => ({ action, addr: at(i), size: 4000, stream: 0, time_us: i, frames, ...more });
const block = (i) => ({ address: at(i), size: 4096, requested_size: 4000, state: "active_allocated", frames });
const segment = { device: 0, address: at(0), total_size: 2097152, allocated_size: 12288, active_size: 12288, stream: 0, segment_type: "small", blocks: [block(0), block(1), block(2), { address: at(3), size: 2097152 - 12288, state: "inactive", frames: [] }], frames };
const events = [event("alloc", 0, { stream: "HUGE" }), event("alloc", 1, { time_us: 999_700 }), event("alloc", 2, { time_us: 999_999 })];
const settings = { large_number: "HUGE", [`turned\u202e`]: "\u2067on" };
// JSON.stringify() would round it.
const text = JSON.stringify({ segments: [segment], device_traces: [events], allocator_settings: settings }).replaceAll('"HUGE"', HUGE);
const HIDDEN = /[\u0085\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

const { browser, page, errors } = await openPage(html);
await openFiles(page, [put("exact\u202e.json", text)]);
await settles(page, () => document.querySelector(".facts").textContent.split("\u00b7").at(-1).trim(), null, "1.00\u202fs", "a millisecond short of a second is a second");
await go(page, { view: "timeline", pick: `b${at(0).toString(16)}_0` });
const fact = (name) => [...document.querySelectorAll(".details dt")].find((dt) => dt.textContent === name)?.nextElementSibling.textContent;
await settles(page, fact, "stream", HUGE, "every digit of a stream");
equal(await page.locator(".details h2").textContent(), "3.9\u202fKiB", "the details begin with what it is");
equal(await page.evaluate(fact, "label"), "b7f0000000000_0", "and have its label");
const announced = () => document.querySelector(".unseen[role=status]")?.textContent ?? "";
await settles(page, () => (document.querySelector(".unseen[role=status]")?.textContent ?? "").startsWith("Selected b7f0000000000_0: 3.9\u202fKiB, allocated at event 0, never freed, at "), null, true, "the pick is told");
await page.keyboard.press("]");
await settles(page, () => ![null, "b7f0000000000_0"].includes(new URLSearchParams(location.hash.slice(1)).get("pick")), null, true, "the next one is picked by a key");
const label = await page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("pick"));
await settles(page, (wanted) => (document.querySelector(".unseen[role=status]")?.textContent ?? "").startsWith(`Selected ${wanted}: `), label, true, "and told");
await page.keyboard.press("Escape");
await settles(page, announced, null, "Nothing is selected.", "and that it is let go of");

// Finds names that would reverse the text around them or break its line.
const hidden = (source) => {
    const pattern = new RegExp(source);
    const bad = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("script, style") && pattern.test(walker.currentNode.textContent)) bad.push(walker.currentNode.textContent.slice(0, 60));
    for (const element of document.querySelectorAll("*")) for (const { name, value } of element.attributes) if (pattern.test(value)) bad.push(`${name}: ${value.slice(0, 60)}`);
    return bad;
};
for (const view of ["timeline", "state", "segments", "map", "peak", "leaks", "oom", "compare", "settings"]) {
    await go(page, { view, pick: `b${at(1).toString(16)}_0`, event: 1 });
    await pageRests(page);
    equal(await page.evaluate(hidden, HIDDEN.source), [], `${view}: hidden characters on the page`);
}
expect(/\u27e8U\+202E\u27e9yp\.kcatta/.test(await page.evaluate(() => document.querySelector(".details").textContent + [...document.querySelectorAll("[title]")].map((one) => one.title).join())), "they are shown by their numbers");
await settles(page, () => document.querySelector('tr[data-key="large_number"] td:nth-child(2)')?.textContent.trim().startsWith("9223372036854775807"), null, true, "every digit of a setting");
// Searching for such a name, as the page writes it, finds the recording's.
await page.getByRole("button", { name: "Same call site" }).click();
await settles(page, () => document.querySelector(".search .found").textContent, null, "3 \u00b7 11.7\u202fKiB \u00b7 11.7\u202fKiB at the peak", "the name finds what it names");
await go(page, { view: "peak" });
await page.waitForSelector(".peak-view tbody tr");
expect(!HIDDEN.test((await saved(page, "Table (CSV)")).toString()), "nor in a saved table");

// Rounding is not allocated: the state's number equals the peak's.
await go(page, { view: "state", event: 2 });
const state = (name) => Number(document.querySelector(`[data-fact="${name}"] dd`)?.dataset.bytes);
await settles(page, state, "allocated", 12000, "allocated is what was asked for");
equal([await page.evaluate(state, "rounding"), await page.evaluate(state, "active")], [288, 12288], "rounding is told apart, blocks are active with it");
equal(await page.evaluate(() => Number(document.querySelector(".facts button").dataset.bytes)), 12000, "as the peak says");

// A single recording is compared with itself; a second can be opened from there.
await go(page, { view: "compare" });
const chooser = page.waitForEvent("filechooser", { timeout: 5000 }).then(() => true, () => false);
await page.getByRole("button", { name: "Open a second recording" }).click();
expect(await chooser, "a second recording can be opened from there");
await settles(page, () => document.querySelector('.compare-facts [data-side="B"]')?.dataset.event, null, "2", "the beginning and the peak");
equal(errors, [], "errors of the page");
await browser.close();

// Steps that keep one object each, every fourth of them large: whatever the verdicts, the sentence agrees with the rows.
function loop(steps, size) {
    const made = [];
    let next = 0;
    const push = (action, address, bytes, line) => made.push({ action, addr: address, size: bytes, stream: 0, time_us: made.length, frames: [{ filename: "train.py", line, name: "step" }] });
    for (let step = 0; step < steps; step++) {
        made.push({ action: "user_defined", addr: 0, size: 0, stream: 0, time_us: made.length, frames: [{ filename: "train step", line: 0, name: "" }] });
        push("alloc", at(next++) + 0x100000000, size(step), 7);
        for (let i = 0; i < 6; i++) push("alloc", 0x600000000000 + i * 0x100000, 65536, 20 + i);
        for (let i = 0; i < 6; i++) for (const action of ["free_requested", "free_completed"]) push(action, 0x600000000000 + i * 0x100000, 65536, 20 + i);
    }
    return { segments: [], device_traces: [made] };
}
// Each step frees everything it allocated, and allocates more than the previous one.
function growing(steps) {
    const made = [];
    for (let step = 0; step < steps; step++) {
        for (const action of ["alloc", "free_requested", "free_completed"]) {
            if (action === "free_requested") made.push({ action: "user_defined", addr: 0, size: 0, stream: 0, time_us: made.length, frames: [{ filename: "train step", line: 0, name: "" }] });
            made.push({ action, addr: 0x600000000000, size: (step + 1) << 20, stream: 0, time_us: made.length, frames: [{ filename: "train.py", line: 7, name: "step" }] });
        }
    }
    return { segments: [], device_traces: [made] };
}
const leaks = await openPage(html);
const cases = { "fourth.json": loop(40, (step) => (step % 4 === 3 ? 1 << 20 : 512)), "steady.json": loop(40, () => 4096), "once.json": loop(40, (step) => (step === 20 ? 1 << 20 : 1)), "grows.json": growing(24), "few.json": loop(4, () => 4096) };
let rec = 0;
for (const [name, recording] of Object.entries(cases)) {
    await openFiles(leaks.page, [put(name, recording)]);
    await go(leaks.page, { rec: rec++, view: "leaks" });
    await settles(leaks.page, () => /^\d+ steps?,/.test(document.querySelector(".leaks-verdict").textContent), null, true, `${name}: the steps are found`);
    const verdicts = () => [...document.querySelectorAll('table[aria-label="What grows from step to step"] .verdict')].map((one) => one.textContent);
    const wanted = JSON.parse(spawnSync(vram, ["leaks", "--json", put(name, recording)], { maxBuffer: 1 << 28 }).stdout);
    await settles(leaks.page, (said) => document.querySelector(".leaks-verdict").textContent.includes(said), wanted.text, true, `${name}: what the command says: "${wanted.text}"`);
    await settles(leaks.page, verdicts, null, wanted.groups.map((group) => group.verdict), `${name}: the rows are the command's`);
    console.log(`${name}: ${wanted.text}`);
}
equal(leaks.errors, [], "errors of the page");
await leaks.browser.close();

// Addresses and streams with all 64 bits, in tables and in saved files.
const HIGHEST = "18446744073709543425"; // 0xffffffffffffe001
const wide = await openPage(html);
const far = { segments: [{ device: 0, address: "HIGHEST", total_size: 4096, stream: "HUGE", blocks: [{ size: 4096, state: "active_allocated" }] }], device_traces: [[event("alloc", 0, { addr: "HIGHEST", size: 4096, stream: "HUGE" }), event("segment_alloc", 0, { addr: "HIGHEST", size: 4096, stream: "HUGE" })]] };
await openFiles(wide.page, [put("wide.json", JSON.stringify(far).replaceAll('"HUGE"', HUGE).replaceAll('"HIGHEST"', HIGHEST))]);
for (const [view, wanted] of [["timeline", "bffffffffffffe001_0"], ["segments", "0xffffffffffffe001"]]) {
    await go(wide.page, { view });
    await wide.page.locator(`.chart-table:visible summary`).click();
    await settles(wide.page, (shown) => [...document.querySelectorAll(".chart-table tbody")].some((body) => body.textContent.includes(shown)), wanted, true, `${view}: every digit of an address`);
}
await go(wide.page, { view: "timeline" });
const lines = (await saved(wide.page, "Table (CSV)")).toString();
expect(lines.includes("bffffffffffffe001_0") && lines.includes(HUGE), `and of a stream in what is saved: ${lines}`);
equal(wide.errors, [], "errors of the page");
await wide.browser.close();
finish();

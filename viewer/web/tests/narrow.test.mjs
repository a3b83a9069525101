// Tests that a phone's narrow screen shows every view, and that a recording with little in it explains that.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, pageRests, settles } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
function put(name, recording) {
    writeFileSync(join(folder, name), JSON.stringify(recording));
    return join(folder, name);
}
const frames = [{ name: "step", filename: "/home/me/train.py", line: 12 }];
const event = (action, i, addr, size) => ({ action, addr, size, stream: 0, time_us: i, frames });
const block = { address: 0x7f0000000000, size: 4096, requested_size: 4000, state: "active_allocated", frames };
const segment = { device: 0, address: 0x7f0000000000, total_size: 2097152, allocated_size: 4096, active_size: 4096, stream: 0, segment_type: "small", blocks: [block, { address: 0x7f0000001000, size: 2093056, state: "inactive", frames: [] }], frames };
const events = [event("alloc", 0, 0x7f0000000000, 4000), event("alloc", 1, 0x7f0000001000, 9000), event("free_requested", 2, 0x7f0000001000, 9000), event("free_completed", 3, 0x7f0000001000, 9000)];

const phone = await openPage(html, { width: 390, height: 844 });
await openFiles(phone.page, [put("few.json", { segments: [segment], device_traces: [events] }), put("other.json", { segments: [segment], device_traces: [events.slice(0, 1)] })]);
// Finds what is cut off at the sides: the chosen tab, the view's canvas, the details panel.
function outside(selector) {
    const shown = [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length !== 0);
    const boxes = shown.map((one) => one.getBoundingClientRect());
    return { shown: shown.length, cut: boxes.filter(({ left, right }) => left < -1 || right > innerWidth + 1).map(({ left, right }) => [left, right]) };
}
for (const view of await phone.page.$$eval('[role="tab"]:not([hidden])', (all) => all.map((tab) => tab.id.replace("tab-", "")))) {
    await go(phone.page, { view, pick: "b7f0000000000_0", event: 1 });
    await pageRests(phone.page);
    for (const selector of ['[role="tab"][aria-selected="true"]', "main canvas", ".details"]) {
        const { shown, cut } = await phone.page.evaluate(outside, selector);
        equal(cut, [], `${view}: ${selector} lies on the screen`);
        expect(shown > 0 || selector === "main canvas", `${view}: ${selector} is shown`);
    }
    const wide = await phone.page.evaluate(() => document.querySelector("main").getBoundingClientRect().width);
    equal(wide, 390, `${view}: the view has the whole width`);
}

// Long names, many call sites, several devices, an out-of-memory error: no text is cut off or hidden without a way to read it, and the page
// does not scroll sideways. Only the row of tabs and program text scroll by themselves.
const long = (i) => [{ name: `very_long_function_name_of_a_layer_${i}`, filename: `/home/somebody/projects/some_model/src/package/module_${i}.py`, line: 1200 + i }];
const loop = [];
for (let step = 0; step < 12; step++) {
    loop.push({ action: "user_defined", addr: 0, size: 0, stream: 0, time_us: loop.length, frames: [{ filename: "train step", line: 0, name: "" }] });
    for (let i = 0; i < 8; i++) loop.push({ ...event("alloc", loop.length, 0x7f1000000000 + (step * 8 + i) * 0x1000000, 9_999_999 + i), frames: long(i) });
    for (let i = 2; i < 8; i++) for (const action of ["free_requested", "free_completed"]) loop.push({ ...event(action, loop.length, 0x7f1000000000 + (step * 8 + i) * 0x1000000, 9_999_999 + i), frames: long(i) });
}
loop.push({ ...event("oom", loop.length, 0, 2 ** 34), device_free: 12345678, frames: long(1) });
const wide = { segments: [segment], device_traces: [events, loop], allocator_settings: { PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:512,garbage_collection_threshold:0.8" } };
function cutTexts() {
    const bad = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || element.closest("script, style, option, select, .unseen, [role=tablist], pre, .event-row, .details") || !element.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        const { left, right } = range.getBoundingClientRect();
        // The width that the ancestors leave.
        let [from, to] = [0, innerWidth];
        for (let at = element; at; at = at.parentElement) {
            if (getComputedStyle(at).overflowX === "visible") continue;
            const box = at.getBoundingClientRect();
            [from, to] = [Math.max(from, box.left), Math.min(to, box.right)];
        }
        if ((left < from - 1.5 || right > to + 1.5) && !element.closest("[title]")) bad.push(`${walker.currentNode.textContent.trim().slice(0, 40)} (${element.className || element.tagName}): ${Math.round(left)} to ${Math.round(right)} of ${Math.round(from)} to ${Math.round(to)}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const one of document.querySelectorAll("main *")) {
        const style = getComputedStyle(one);
        if (one.checkVisibility() && one.tagName !== "PRE" && one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(style.overflowX)) bad.push(`${one.className || one.tagName} scrolls sideways: ${one.scrollWidth} in ${one.clientWidth}`);
    }
    return bad;
}
await openFiles(phone.page, [put("long.json", wide)]);
for (const view of await phone.page.$$eval('[role="tab"]:not([hidden])', (all) => all.map((tab) => tab.id.replace("tab-", "")))) {
    await go(phone.page, { view, rec: 2, event: 20, other: 0 });
    await pageRests(phone.page);
    equal(await phone.page.evaluate(cutTexts), [], `${view}: what is cut`);
}
await phone.page.keyboard.press("?");
await phone.page.waitForSelector("dialog.help[open]");
equal((await phone.page.evaluate(outside, "dialog.help, dialog.help .close, .help-columns section")).cut, [], "the keys lie on the screen");
await phone.page.keyboard.press("Escape");

// An editor's tab is narrow and low: legend, chart and what is below do not overlap, and the view scrolls.
await phone.page.setViewportSize({ width: 466, height: 480 });
await go(phone.page, { view: "timeline" });
await phone.page.waitForSelector("main .chart-stage[data-ready]");
const stacked = () =>
    [".chart-by", ".chart-legend", ".chart-stage", ".chart-stage ~ *", ".chart ~ *"]
        .flatMap((selector) => [...document.querySelectorAll(`main ${selector}`)])
        .map((one) => one.getBoundingClientRect())
        .filter(({ height }) => height > 0)
        .every(({ top }, i, all) => i === 0 || top >= all[i - 1].bottom - 1);
await settles(phone.page, stacked, null, true, "in a narrow tab nothing lies over the chart");
expect((await phone.page.evaluate(() => document.querySelector("main .chart-stage").clientHeight)) >= 120, "and the chart can be read");
await phone.page.setViewportSize({ width: 390, height: 844 });

await openFiles(phone.page, [put("nothing.json", { segments: [], device_traces: [] })]);
await phone.page.waitForSelector(".empty-why");
expect(await phone.page.evaluate(() => document.querySelector(".empty-why").getBoundingClientRect().top >= document.querySelector("main").getBoundingClientRect().top), "why there is nothing to see can be read");
equal(phone.errors, [], "errors of the page");
await phone.browser.close();

const { browser, page, errors } = await openPage(html);
await openFiles(page, [join(folder, "nothing.json")]);
equal(await page.locator(".empty-why").textContent(), "nothing.json has neither segments nor events to show.", "a recording with nothing in it");
await openFiles(page, [put("still.json", { segments: [segment], device_traces: [[]] })]);
await page.waitForSelector(".minimap:not([hidden]) .readout:not(:empty)");
equal(await page.locator(".minimap .readout").textContent(), "no events", "the strip of a recording without history");
await page.keyboard.press("7");
await page.waitForSelector(".oom-view h2");
expect((await page.locator(".oom-view").textContent()).includes("no history"), "without history nobody can say that nothing failed");
await page.keyboard.press("2");
await settles(page, () => document.querySelector(".state-stage canvas").ariaLabel, undefined, "1 segment with 1 block: 3.9\u202fKiB allocated of 2.0\u202fMiB reserved", "one is one");
equal(errors, [], "errors of the page");
await browser.close();
finish();

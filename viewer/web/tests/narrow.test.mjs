// A screen as narrow as a phone's shows every view, and a recording with little in it says why there is little to see.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html } from "./check.mjs";

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
// What is cut off at the sides: the tab that is chosen, the canvas of the view, the panel of details.
function outside(selector) {
    const shown = [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length !== 0);
    const boxes = shown.map((one) => one.getBoundingClientRect());
    return { shown: shown.length, cut: boxes.filter(({ left, right }) => left < -1 || right > innerWidth + 1).map(({ left, right }) => [left, right]) };
}
for (const view of await phone.page.$$eval('[role="tab"]', (all) => all.map((tab) => tab.id.replace("tab-", "")))) {
    await go(phone.page, { view, pick: "b7f0000000000_0", event: 1 });
    await phone.page.waitForTimeout(300);
    for (const selector of ['[role="tab"][aria-selected="true"]', "main canvas", ".details"]) {
        const { shown, cut } = await phone.page.evaluate(outside, selector);
        equal(cut, [], `${view}: ${selector} lies on the screen`);
        expect(shown > 0 || selector === "main canvas", `${view}: ${selector} is shown`);
    }
    const wide = await phone.page.evaluate(() => document.querySelector("main").getBoundingClientRect().width);
    equal(wide, 390, `${view}: the view has the whole width`);
}
await phone.page.keyboard.press("?");
await phone.page.waitForSelector("dialog.help[open]");
equal((await phone.page.evaluate(outside, "dialog.help, dialog.help .close, .help-columns section")).cut, [], "the keys lie on the screen");
await phone.page.keyboard.press("Escape");
await openFiles(phone.page, [put("nothing.json", { segments: [], device_traces: [] })]);
await phone.page.waitForSelector(".empty-why");
expect(await phone.page.evaluate(() => document.querySelector(".empty-why").getBoundingClientRect().top >= document.querySelector("main").getBoundingClientRect().top), "why there is nothing to see can be read");
equal(phone.errors, [], "errors of the page");
await phone.browser.close();

const { browser, page, errors } = await openPage(html);
await openFiles(page, [join(folder, "nothing.json")]);
equal(await page.locator(".empty-why").textContent(), "nothing.json has neither segments nor events: there is nothing to show.", "a recording with nothing in it");
await openFiles(page, [put("still.json", { segments: [segment], device_traces: [[]] })]);
await page.waitForSelector(".minimap:not([hidden]) .readout:not(:empty)");
equal(await page.locator(".minimap .readout").textContent(), "no events", "the strip of a recording without history");
await page.keyboard.press("7");
await page.waitForSelector(".oom-view h2");
expect((await page.locator(".oom-view").textContent()).includes("no history"), "without history nobody can say that nothing failed");
await page.keyboard.press("2");
await page.waitForSelector(".state-stage canvas[aria-label]");
equal(await page.locator(".state-stage canvas").getAttribute("aria-label"), "1 segment with 1 block: 3.91\u202fKiB allocated of 2.00\u202fMiB reserved", "one is one");
equal(errors, [], "errors of the page");
await browser.close();
finish();

// Tests that a recording of several devices opens on the one in trouble: out of memory, else the highest peak; the tab, the menu and a
// banner say so. A link to something nonexistent is answered with a message.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordings, settles } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const put = (name, traces) => {
    writeFileSync(join(folder, name), JSON.stringify({ segments: [], device_traces: traces }));
    return join(folder, name);
};
const frames = [{ name: "step", filename: "/home/me/train.py", line: 12 }];
// Makes a device's history with `count` allocations of `size` bytes and, optionally, failing requests.
function trace(count, size, ooms = 0) {
    const event = (action, i, more = {}) => ({ action, addr: 0x7f0000000000 + i * 0x40000000, size, stream: 0, time_us: i, frames, ...more });
    const made = Array.from({ length: count }, (_, i) => event("alloc", i));
    return [...made, ...Array.from({ length: ooms }, (_, i) => event("oom", count + i, { size: 2 ** 31, device_free: 1 << 20 }))];
}

const device = () => document.querySelector('select[aria-label="Device"]').value;
const options = () => [...document.querySelectorAll('select[aria-label="Device"] option')].map((option) => option.textContent);
const badge = () => {
    const found = document.querySelector("#tab-oom .tab-badge");
    return found && !found.hidden ? [found.textContent, found.getAttribute("aria-label")] : null;
};
const sentence = () => {
    const found = document.querySelector(".trouble");
    return found && found.checkVisibility() ? found.querySelector("p").textContent : "";
};
const help = () => {
    const found = document.querySelector(".trouble-help");
    return found?.checkVisibility() ? found.textContent : "";
};
const message = () => document.querySelector(".message").textContent;

const { browser, page, errors } = await openPage(html);
// Device 0 has more events and a higher peak; device 1 is in trouble.
await openFiles(page, [put("oom.json", [trace(40, 1 << 28), trace(5, 1 << 20, 2), trace(3, 1 << 20, 1)])]);
await settles(page, device, null, "1", "the device that ran out of memory most often");
equal(await page.evaluate(options), ["device 0", "device 1 \u26a0 2 OOM", "device 2 \u26a0 1 OOM"], "the menu says which");
equal(await page.evaluate(badge), ["3", "3 requests failed"], "the tab says how many");
await settles(page, sentence, null, "Device 1 ran out of memory 2 times: the last time 2.0\u202fGiB requested at event 6. So did device 2 (1).", "the first screen says what happened");
await page.getByRole("button", { name: "Why it failed" }).click();
await page.waitForSelector(".oom-card");
equal(await page.locator(".oom-view h2").first().textContent(), "2 requests ran out of memory", "and leads there");

// On another device the banner names the shown device, with a link to the one in trouble.
await go(page, { view: "timeline", device: 0 });
await settles(page, sentence, null, "Device 1 ran out of memory 2 times: the last time 2.0\u202fGiB requested at event 6. So did device 2 (1). This is device 0.", "the other device");
await page.keyboard.press("7");
await settles(page, () => document.querySelector(".oom-view h2")?.textContent, null, "It was device 1 that ran out of memory", "the page of a device that did not");
await page.getByRole("button", { name: "Show device 1" }).click();
await settles(page, () => document.querySelectorAll(".oom-card").length, null, 2, "the page without one leads to the page with two");

// Without a failure, the page opens on the device with the highest peak (not the most events), without a badge or a banner.
await openFiles(page, [put("peaks.json", [trace(40, 1 << 20), trace(3, 1 << 29), []])]);
await settles(page, () => document.querySelector("select.files").selectedIndex, null, 1, "the second recording is on show");
await settles(page, device, null, "1", "the highest peak");
equal([await page.evaluate(badge), await page.evaluate(sentence)], [null, ""], "nothing is wrong there");

// Links to what does not exist.
await go(page, { rec: 99 });
await settles(page, message, null, "The link refers to recording 100, but only 2 recordings are open; showing oom.json.", "a recording that is not open");
await settles(page, () => document.querySelector("select.files").selectedIndex, null, 0, "the one in trouble is shown");
await go(page, { rec: 1, device: 7 });
await settles(page, message, null, "The link refers to device 7, which peaks.json does not contain; showing another device.", "a device that is not there");
await settles(page, device, null, "1", "another one is shown");
await go(page, { rec: 0 });
await settles(page, message, null, "", "a link to what is there takes the sentence back");
// A link does so even before the page has drawn its correction: frames come on request.
await page.evaluate(() => {
    const [held, ask] = [[], window.requestAnimationFrame];
    window.requestAnimationFrame = (callback) => held.push(callback);
    window.drawFrame = () => held.splice(0).forEach((callback) => callback(performance.now()));
    window.drawAgain = () => ((window.requestAnimationFrame = ask), window.drawFrame());
});
await go(page, { rec: 1, device: 7 });
await page.evaluate(() => window.drawFrame());
equal(await page.evaluate(message), "The link refers to device 7, which peaks.json does not contain; showing another device.", "the wrong link");
await go(page, { rec: 0 });
await page.evaluate(() => window.drawAgain());
await settles(page, message, null, "", "the next link counts", 5000);
equal(errors, [], "errors of the page");
await browser.close();

// The banner says what helps; it is folded to its first sentence, and stays folded on the next page.
const banner = await openPage(html);
const example = fileURLToPath(new URL("../../../examples/recordings/oom.pickle.gz", import.meta.url));
await openFiles(banner.page, [example]);
const cure = "What helps: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:TrueCopyneeds 18.7\u202fGiB of the 23.5\u202fGiB available";
await settles(banner.page, help, null, cure, "the cure is on the first screen");
await settles(banner.page, () => document.querySelector(".trouble-why").textContent.includes("The largest of them was allocated by serve_sim.c:38:grow_cache."), null, true, "call sites are named without their folders");
await banner.page.getByRole("button", { name: "Fold this message" }).click();
await settles(banner.page, help, null, "", "folded");
equal(await banner.page.getByRole("button", { name: "Show why, and what helps" }).getAttribute("aria-expanded"), "false", "what is folded says so");
expect((await banner.page.evaluate(sentence)).startsWith("The program ran out of memory"), "its first sentence stays");
await banner.page.reload();
await openFiles(banner.page, [example]);
await settles(banner.page, () => document.querySelector(".trouble-help").textContent.startsWith("What helps"), null, true, "the cure is known");
equal(await banner.page.evaluate(help), "", "the next page is folded, too");
await banner.page.getByRole("button", { name: "Show why, and what helps" }).click();
await settles(banner.page, help, null, cure, "unfolded");
equal(banner.errors, [], "errors of the page");
await banner.browser.close();

const linked = await openPage(html, { fragment: "#rec=99&view=state" });
await openFiles(linked.page, [join(folder, "oom.json")]);
await settles(linked.page, message, null, "The link refers to recording 100, but only 1 recording is open; showing oom.json.", "a link that is opened before the file");
await settles(linked.page, () => document.querySelector(".state-view .event-row") !== null, null, true, "the recording is shown");
equal(linked.errors, [], "errors of the page");
await linked.browser.close();

if (recordings) {
    const { readdirSync } = await import("node:fs");
    const real = await openPage(html);
    await openFiles(real.page, [join(recordings, readdirSync(recordings).find((name) => name.startsWith("091")))]);
    await settles(real.page, device, null, "1", "a real job of three devices");
    await settles(real.page, sentence, null, "Device 1 ran out of memory: 4.9\u202fGiB requested at event 421.", "what happened to it");
    expect((await real.page.evaluate(badge))?.[0] === "1", "its tab");
    await settles(real.page, () => /^What helps: Recompute what models\.py:231:forward calls, .* No setting helps\.$/.test(document.querySelector(".trouble-help").textContent), null, true, "where no setting helps the first change that is enough");
    await go(real.page, { view: "state" });
    await settles(real.page, () => document.querySelector('[data-fact="event"] dd')?.textContent, null, "421 of 596", "the state at the failure");
    await real.browser.close();
}
finish();

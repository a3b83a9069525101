// Tests the page's statements about an allocation and a moment in the commands' words: roles, unknown places, cached memory, another peak,
// no change; boxes of call stacks with equal names, and their colours in the table.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordingPaths, recordings, rests, settles } from "./check.mjs";
import { address, loop, MIB } from "./loop.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const put = (name, value) => {
    writeFileSync(join(folder, name), JSON.stringify(value));
    return join(folder, name);
};
const { browser, page, errors } = await openPage(html, { width: 1440, height: 900 });

// The role, in the details and at the pointer.
const made = loop();
await openFiles(page, [put("loop.json", made.recording)]);
await go(page, { pick: `b${address(100).toString(16)}_0` });
await settles(page, () => document.querySelector(".details h2")?.textContent, null, "8.0\u202fMiB of activations", "the details begin with what it is");
const fact = (name) => [...document.querySelectorAll(".details dt")].find((dt) => dt.textContent === name)?.nextElementSibling.textContent;
await settles(page, fact, "role", "activations", "and have its role");
await go(page, { pick: "" });
await rests(page, () => document.querySelector(".chart-stage").getAttribute("aria-busy") + document.querySelector(".details").hidden);
const stage = await page.locator(".chart-top").boundingBox();
let tip = "";
for (let y = 0.97; y > 0.1 && !/activations/.test(tip); y -= 0.02) {
    await page.mouse.move(stage.x + stage.width * 0.2, stage.y + stage.height * y);
    await rests(page, () => document.querySelector(".chart-tip").textContent);
    tip = await page.evaluate(() => document.querySelector(".chart-tip").textContent);
}
expect(/activations \u00b7 stream 0/.test(tip), `the tip has the role: ${tip}`);

// Frames with unknown places, and blocks without frames: neither ":0" nor unreadable text.
const frames = [{ name: "step", filename: "??", line: 0 }, { name: "run", filename: "", line: 0 }, { name: "main", filename: "/home/me/train.py", line: 0 }];
const event = (i, size, more) => ({ action: "alloc", addr: 0x7f0000000000 + i * 2 ** 30, size, stream: 0, time_us: i, compile_context: "N/A", ...more });
const nameless = { segments: [], device_traces: [[event(0, 64 * MIB, { frames: [] }), event(1, 4 * MIB, { frames })]] };
await openFiles(page, [put("nameless.json", nameless)]);
await go(page, { rec: 1, pick: "b7f0040000000_0" });
await settles(page, () => [...document.querySelectorAll(".details .stack li:not(.frame-site)")].map((row) => row.textContent.trim()), null, ["step", "run", "main me/train.py"], "places that are not known");
expect(!/N\/A|:0\b|\?\?/.test(await page.locator(".details").textContent()), "what is not known is left out");
equal(await page.$$eval(".chart-legend button", (all) => all.map((one) => one.textContent).filter((text) => /\?\?|:0\b/.test(text))), [], "nor is it in the legend");
const frameless = () => [...document.querySelectorAll(".range-facts *")].filter((one) => one.childElementCount === 0 && one.textContent.includes("<no frames>")).map((one) => [one.tagName, one.disabled, getComputedStyle(one).opacity]);
await settles(page, frameless, null, [["SPAN", null, "1"]], "the largest holder can be read, though no search finds it");

// Boxes of call stacks: the table's colours, places for equal names, grey for the frames above.
const site = (name, line) => [{ name, filename: "/home/me/models.py", line }, { name: "main", filename: "/home/me/train.py", line: 9 }];
const twins = { segments: [], device_traces: [[event(0, 64 * MIB, { frames: site("update", 174) }), event(1, 48 * MIB, { frames: site("update", 181) })]] };
await openFiles(page, [put("twins.json", twins)]);
await go(page, { rec: 2, view: "peak" });
await settles(page, () => document.querySelectorAll(".peak-view .held-bar button").length, null, 2, "two groups");
equal(await page.$$eval(".peak-view .held-bar button", (all) => all.map((one) => one.textContent)), ["update models.py:174", "update models.py:181"], "parts of one name have their places");
const colours = () => {
    const canvas = document.querySelector(".peak-view .flame canvas");
    const at = (x, row) => [...canvas.getContext("2d").getImageData(Math.round(x * canvas.width), Math.round((row * 20 + 3) * devicePixelRatio), 1, 1).data.slice(0, 3)];
    const dots = [...document.querySelectorAll(".peak-view tbody .site .dot")].map((dot) => getComputedStyle(dot).backgroundColor.match(/\d+/g).map(Number));
    const [main, first, second] = [at(0.3, 1), at(0.3, 2), at(0.8, 2)];
    return { same: JSON.stringify([first, second]) === JSON.stringify(dots), grey: Math.max(...main) - Math.min(...main) < 12 };
};
await settles(page, colours, null, { same: true, grey: true }, "a call site has one colour in the table and in the call stacks");

// Compared with itself, nothing has changed: grey, neither orange nor blue.
await openFiles(page, [put("same.json", twins)]);
await go(page, { rec: 2, other: 3, view: "compare" });
const coloured = () => {
    const canvas = document.querySelector(".compare-view .flame canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, Math.min(canvas.height, 60 * devicePixelRatio));
    let most = 0;
    for (let i = 0; i < data.length; i += 4) most = Math.max(most, Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]));
    return [canvas.width > 300, most < 16];
};
await settles(page, coloured, null, [true, true], "what did not change is grey");

// Wholly free segments are cached, not fragmentation.
const block = (size, state) => ({ size, requested_size: state === "inactive" ? 0 : size, state, frames: [] });
const segment = (i, blocks) => ({ device: 0, address: 0x7f0000000000 + i * 2 ** 30, total_size: 64 * MIB, stream: 0, segment_type: "large", blocks });
const cached = { segments: [segment(0, [block(64 * MIB, "inactive")]), segment(1, [block(64 * MIB, "inactive")]), segment(2, [block(16 * MIB, "active_allocated"), block(48 * MIB, "inactive")])], device_traces: [] };
await openFiles(page, [put("cached.json", cached)]);
await go(page, { rec: 4, view: "state" });
const facts = () => ["free", "cached", "fragmentation"].map((name) => document.querySelector(`[data-fact="${name}"] dd`)?.textContent.replaceAll("\u202f", " "));
await settles(page, facts, null, ["176.0 MiB", "128.0 MiB", "0.0 %"], "one hole is not in pieces");

// Growth is visible: 12 GiB, and 3 MiB more in each step.
const growing = [];
let next = 0;
const push = (action, addr, size, more = {}) => growing.push({ action, addr, size, stream: 0, time_us: growing.length, frames: site("keep", 20), ...more });
push("alloc", 2 ** 40, 12 * 2 ** 30);
for (let step = 0; step < 12; step++) {
    push("user_defined", 0, 0, { frames: [{ name: "", filename: "train step", line: 0 }] });
    push("alloc", 2 ** 41 + next++ * 2 ** 24, 3 * MIB);
}
await openFiles(page, [put("growing.json", { segments: [], device_traces: [growing] })]);
await go(page, { rec: 5, view: "leaks" });
await settles(page, () => Number(document.querySelector(".leaks-curve canvas").dataset.low) > 12 * 2 ** 30 - 64 * 2 ** 20, null, true, "the heights begin near what is always live");

// The help lists every key that works everywhere.
await page.keyboard.press("?");
await page.waitForSelector("dialog.help[open]");
const keys = await page.$$eval("dialog.help section:first-of-type kbd", (all) => all.map((one) => one.textContent));
equal(["/", "a", "d", "w", "s", "0", "e", "v", "<", ">", "{", "}", "b", "i", "x", "l", "o", "?"].filter((key) => !keys.includes(key)), [], "keys without a line in the help");
equal(errors, [], "errors of the page");
await browser.close();

// If another moment becomes the peak, the advice says so, with a link.
if (recordings) {
    const real = await openPage(html, { fragment: "#view=oom" });
    await openFiles(real.page, recordingPaths("102"));
    await settles(real.page, () => document.querySelector(".oom-next")?.textContent.trim(), null, "The peak then moves to event 5,583.", "another peak");
    equal(await real.page.evaluate(() => document.querySelector(".oom-remedies").textContent.includes("; the peak is then")), false, "which is said once");
    await real.page.locator(".oom-next button").first().click();
    await settles(real.page, () => document.querySelector('[data-fact="event"] dd')?.textContent, null, "5,583 of 19,936", "and what is there");
    await real.browser.close();
}
rmSync(folder, { recursive: true });
finish();

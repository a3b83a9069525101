// Tests that a page of several recordings opens on the one in trouble: out of memory first, then the highest peak. The menu marks it, no
// view contradicts it, and the first tab has a row per rank.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, settles, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const frames = [{ name: "step", filename: "/home/me/train.py", line: 12 }];
const MIB = 2 ** 20;
// Makes a trace: `count` allocations of `size` bytes, then requests that fail.
function trace(count, size, ooms = 0) {
    const event = (action, i, more = {}) => ({ action, addr: 0x7f0000000000 + i * 0x40000000, size, stream: 0, time_us: i, frames, ...more });
    return [...Array.from({ length: count }, (_, i) => event("alloc", i)), ...Array.from({ length: ooms }, (_, i) => event("oom", count + i, { size: 2 ** 31, device_free: MIB }))];
}
function put(name, ...traces) {
    writeFileSync(join(folder, name), JSON.stringify({ segments: [], device_traces: traces }));
    return join(folder, name);
}
const alike = Array.from({ length: 4 }, (_, i) => put(`rank${i}.json`, trace(8, 16 * MIB)));
const higher = put("rank4.json", trace(9, 16 * MIB));
const failed = put("rank5.json", trace(4, MIB), trace(6, 2 * MIB, 1));

const shown = () => document.querySelector("select.files").selectedOptions[0]?.textContent;
const names = () => [...document.querySelectorAll("select.files option")].map((option) => option.textContent);
const sentence = () => {
    const found = document.querySelector(".trouble");
    return found?.checkVisibility() ? found.querySelector("p").textContent : "";
};
const rows = () => [...document.querySelectorAll(".ranks-view tbody tr")].map((row) => [0, 1, 4].map((i) => row.cells[i].textContent.replaceAll("\u202f", " ")).join(" | "));

const { browser, page, errors } = await openPage(html);
await openFiles(page, [...alike, higher, failed]);
await settles(page, shown, null, "rank5.json \u26a0 1 OOM", "the rank that ran out of memory");
equal(await page.evaluate(names), ["rank0.json", "rank1.json", "rank2.json", "rank3.json", "rank4.json", "rank5.json \u26a0 1 OOM"], "the menu says which");
await settles(page, sentence, null, "Device 1 ran out of memory: 2.0\u202fGiB requested at event 6.", "the first screen says what happened");

// The first tab lists unusual rows first; the rest keep the order of the recordings.
equal(await page.$$eval('[role="tab"]', (tabs) => tabs.filter((tab) => tab.checkVisibility())[0].id), "tab-ranks", "the first tab");
await page.locator("#tab-ranks").click();
const table = [
    "rank5.json, device 1 | \u26a0 ran out of memory, peak 116.0 MiB below the median | 1",
    "rank5.json, device 0 | peak 124.0 MiB below the median | ",
    "rank4.json | peak 16.0 MiB above the median | ",
    ...alike.map((_, i) => `rank${i}.json |  | `),
];
await settles(page, rows, null, table, "a row a rank");
equal(await page.locator(".ranks-said").textContent(), "6 recordings, 7 devices. Of these, device 1 of rank5.json ran out of memory. Peaks are from 4.0\u202fMiB to 144.0\u202fMiB, the median is 128.0\u202fMiB; 3 differ from it by more than 5\u202f%.", "in a sentence");
await page.locator(".ranks-view tbody tr").nth(2).click();
await settles(page, shown, null, "rank4.json", "a row leads to its recording");
await settles(page, () => document.querySelector('[role="tab"][aria-selected="true"]').id, null, "tab-timeline", "and shows it");

// On a rank that did not run out of memory the page says which did, and leads there.
await settles(page, sentence, null, "Device 1 of rank5.json ran out of memory: 2.0\u202fGiB requested at event 6. This is rank4.json.", "on another rank");
await page.keyboard.press("7");
await settles(page, () => document.querySelector(".oom-view h2")?.textContent, null, "It was device 1 of rank5.json that ran out of memory", "nothing denies it");
await page.getByRole("button", { name: "Show device 1 of rank5.json" }).click();
await settles(page, () => document.querySelectorAll(".oom-card").length, null, 1, "its page");
await settles(page, shown, null, "rank5.json \u26a0 1 OOM", "of that rank");

// A link to a rank keeps it; the address may omit the rank that the page chose.
await go(page, { rec: 0, view: "peak" });
await settles(page, shown, null, "rank0.json", "the first rank, by a link");
await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("rec"), null, "0", "the address names it");
await go(page, { view: "peak" });
await settles(page, shown, null, "rank5.json \u26a0 1 OOM", "a link without a rank means the one in trouble");
equal(await page.locator(".message").textContent(), "", "and is no wrong one");
equal(errors, [], "errors of the page");
await browser.close();

// Without a failure, the highest peak. A single recording has no tab of ranks.
const peaks = await openPage(html, { fragment: "#view=ranks" });
await openFiles(peaks.page, [alike[0]]);
await settles(peaks.page, () => document.querySelector('[role="tab"][aria-selected="true"]').id, null, "tab-timeline", "one recording has no ranks");
equal(await peaks.page.locator("#tab-ranks").isVisible(), false, "and no tab of them");
await openFiles(peaks.page, [alike[1], higher, alike[2]]);
await settles(peaks.page, shown, null, "rank4.json", "of what was opened last the highest peak is shown");
expect((await peaks.page.locator(".ranks-said").textContent()).includes("No device ran out of memory."), "what is known of all");
await peaks.browser.close();

// A page written by the command.
const job = join(folder, "job.html");
execFileSync(vram, ["view", "-o", job, ...alike, failed]);
const written = await openPage(job, { fragment: "#rec=1" });
await settles(written.page, shown, null, "rank1.json", "a link into the page counts");
await written.browser.close();
const opened = await openPage(job);
await settles(opened.page, shown, null, "rank5.json \u26a0 1 OOM", "a page of a job opens on the rank in trouble");
await opened.browser.close();
rmSync(folder, { recursive: true });
finish();

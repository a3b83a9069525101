// Tests the table of kinds of ranks: a folder that `vram fit --fold ... -o FOLDER/` wrote has a row for each kind in the first tab, the row
// opens its recording, a saved page keeps the table, and a damaged file causes one line and no table.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPage } from "./browser.mjs";
import { equal, expect, finish, settles, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const MIB = 2 ** 20;
const frames = [{ name: "step", filename: "/home/me/train.py", line: 12 }];
for (const [rank, count] of [[0, 4], [3, 4], [4, 9], [7, 8]]) {
    const events = Array.from({ length: count }, (_, i) => ({ action: "alloc", addr: 0x7f0000000000 + i * 0x40000000, size: 16 * MIB, stream: 0, time_us: i, frames }));
    writeFileSync(join(folder, `rank-${rank}.pickle`), JSON.stringify({ segments: [], device_traces: [events] }));
}
const file = join(folder, "kinds.jsonl");
const kind = (name, ranks, ran, rank, allocated, card) => ({ name, ranks, ran, rank, allocated_bytes: allocated * MIB, reserved_bytes: (allocated + 6) * MIB, outside_bytes: 0, host_bytes: 0, card });
const kinds = { ranks: 8192, ran: 4, highest_kind: "pp 2 of 2; at its peak, more than pp 1 of 2: activations 80.0 MiB", kinds: [kind("pp 1 of 2", 4096, "0, 3", 0, 64, "rtx3070"), kind("pp 2 of <b>2", 4000, "4, 7", 4, 144, "none"), kind("gone", 90, "5", null, 0, null)] };
const write = (value) => writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value, null, 2));
const view = (page) => spawnSync(vram, ["view", "-o", page, "--no-open", folder], { encoding: "utf8" });
const rows = () => [...document.querySelectorAll(".ranks-kinds tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll("\u202f", " ")).join(" | "));
const said = () => document.querySelector(".ranks-kinds .ranks-said")?.textContent.replaceAll("\u202f", " ");

write(kinds);
const pages = mkdtempSync(join(tmpdir(), "vram-test-"));
const job = join(pages, "job.html");
equal(view(job).status, 0, "the page is written");
for (const dark of [false, true]) {
    const { browser, page, errors } = await openPage(job, { dark });
    await settles(page, () => [...document.querySelectorAll('[role="tab"]')].find((tab) => tab.checkVisibility())?.id, null, "tab-ranks", "the first tab");
    await page.locator("#tab-ranks").click();
    await settles(page, rows, null, ["pp 2 of <b>2 | 4,000 | 150.0 MiB | 144.0 MiB | none | 4, 7", "pp 1 of 2 | 4,096 | 70.0 MiB | 64.0 MiB | rtx3070 | 0, 3", "gone | 90 | 6.0 MiB | 0 B | not known | 5"], "a row a kind, the highest first");
    equal(await page.evaluate(said), "8,192 ranks of 3 kinds; some of each ran for all. 6 ranks of other kinds did not run. Highest: pp 2 of 2; at its peak, more than pp 1 of 2: activations 80.0 MiB.", "why");
    equal(await page.locator(".ranks-view > .table-scroll tbody tr").count(), 4, "below it the recordings");
    await page.locator(".ranks-kinds tbody tr").nth(1).click();
    await settles(page, () => document.querySelector("select.files").selectedOptions[0]?.textContent, null, "rank-0.pickle", "a row opens its recording");
    for (const [width, wide] of [[1280, true], [800, true], [390, false]]) {
        await page.setViewportSize({ width, height: 900 });
        await page.locator("#tab-ranks").click();
        await settles(page, () => document.querySelector(".ranks-kinds tbody tr")?.checkVisibility(), null, true, `visible at ${width}`);
        equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `no wider than ${width}`);
        if (process.env.VRAM_TEST_PICTURES && wide) await page.screenshot({ path: join(process.env.VRAM_TEST_PICTURES, `kinds-${width}-${dark ? "dark" : "light"}.png`) });
    }
    equal(errors, [], "errors of the page");
    await browser.close();
}

// Another's files: one line, and no table.
for (const bad of ["", "{", "[]", '{"kinds":3}', "x".repeat(300000)]) {
    write(bad);
    const result = view(job);
    equal([result.status, result.stderr.split("\n").length], [0, 2], `a line about ${bad.slice(0, 12)}`);
    expect(result.stderr.includes("kinds.jsonl: not a list of kinds; the page has no table of them"), result.stderr);
    expect(!readFileSync(job, "utf8").includes('<meta name="vram-kinds" '), "the page has no kinds");
}
write({ kinds: [null, 3, { name: 3 }, { name: "x", ranks: -1 }] });
view(job);
const { browser, page, errors } = await openPage(job);
await page.locator("#tab-ranks").click();
await settles(page, () => document.querySelectorAll(".ranks-view tbody tr").length, null, 4, "the recordings only");
equal(await page.evaluate(said), undefined, "rows of another form are left out");
equal(errors, [], "errors of the page");
await browser.close();
for (const made of [folder, pages]) rmSync(made, { recursive: true });
finish();

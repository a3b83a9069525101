// Tests Peak, Leaks and steps, and Compare with real mouse and keys: sums equal `vram report --json`, `vram leaks --json` and `vram diff
// --json`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordingPaths, recordings, report, settles, vram } from "./check.mjs";

const json = (...args) => JSON.parse(spawnSync(vram, args, { maxBuffer: 1 << 28 }).stdout);
const peakBytes = () => Number(document.querySelector("#peak-bytes")?.dataset.bytes ?? -1);
const groupNames = (label) => [...document.querySelectorAll(`table[aria-label="${label}"] tbody .site`)].map((cell) => cell.title);
// Rows of `vram report`, largest first.
const busiest = (path) => Object.values(report(path).devices).reduce((best, device) => (device.events > best.events ? device : best)).allocated;

async function peak(path) {
    const { browser, page, requests, errors } = await openPage(html);
    await openFiles(page, [path]);
    const told = busiest(path);
    await page.keyboard.press("5");
    await settles(page, peakBytes, null, told.peak_bytes, `${path}: bytes at the peak`);
    const whole = json("report", "--site", "--top", "5000", "--json", path);
    equal(whole.bytes, told.peak_bytes, `${path}: the command's groups`);
    equal(whole.groups.reduce((sum, group) => sum + group.bytes, 0), told.peak_bytes, `${path}: the groups' sum`);
    await settles(page, groupNames, "Groups", whole.groups.map((group) => group.name), `${path}: the table's order`);

    // A click on a heading changes the order, another restores it.
    const heading = (title) => page.locator('table[aria-label="Groups"] th', { hasText: title }).locator("button");
    await heading("Count").click();
    const byCount = await page.$$eval('table[aria-label="Groups"] tbody tr', (rows) => rows.map((row) => Number(row.children[3].textContent.replaceAll(",", ""))));
    equal(byCount, [...byCount].sort((a, b) => b - a), `${path}: sorted by count`);
    await heading("Bytes").click();

    // A row chosen by keys is highlighted in every view.
    await page.locator('table[aria-label="Groups"] tbody tr').first().focus();
    await page.keyboard.press("Enter");
    await settles(page, () => document.querySelectorAll('table[aria-label="Groups"] tr[aria-selected="true"]').length, null, 1, `${path}: a row is chosen`);
    await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("pick"));

    // In the call stacks a click on the row below the root fills the width; keys lead back.
    const flame = page.locator(".peak-view .flame canvas");
    const box = await flame.boundingBox();
    await page.mouse.click(box.x + box.width / 4, box.y + 30);
    await page.waitForFunction(() => document.querySelector(".peak-view .flame-path")?.childElementCount > 0);
    await flame.focus();
    await page.keyboard.press("Backspace");
    await settles(page, () => document.querySelector(".peak-view .flame-path").childElementCount, null, 0, `${path}: Backspace goes back`);

    // The end of the history instead of the peak.
    await page.locator('select[aria-label="Moment"]').selectOption("end");
    await settles(page, peakBytes, null, told.end_bytes ?? json("report", "--site", "--at", "end", "--json", path).bytes, `${path}: bytes at the end`);
    for (const by of ["stack", "function", "file", "category", "pool", "stream", "annotation", "thread", "metadata", "context", "size"]) {
        await page.locator('.peak-view select[aria-label="Group by"]').selectOption(by);
        const wanted = json("report", "--by", by, "--at", "end", "--top", "5000", "--json", path);
        await settles(page, groupNames, "Groups", wanted.groups.map((group) => group.name).slice(0, 500), `${path}: grouped by ${by}`);
    }
    equal(requests, [], `${path}: requests`);
    equal(errors, [], `${path}: errors`);
    await browser.close();
}

// A loop that leaks 700 bytes per step.
function leaky() {
    const frames = (line, name) => [{ filename: "model.py", line, name }, { filename: "train.py", line: 3, name: "step" }];
    const events = [];
    const event = (action, addr, size, line, name) => events.push({ action, addr, size, stream: 0, time_us: events.length, frames: frames(line, name) });
    for (let step = 0; step < 12; step++) {
        for (let i = 0; i < 30; i++) for (const action of ["alloc", "free_requested", "free_completed"]) event(action, 8192, 10000 + 512 * i, 10, "forward");
        event("alloc", 1048576 + 4096 * step, 700, 30, "log_loss");
    }
    for (let step = 0; step < 12; step++) for (const action of ["free_requested", "free_completed"]) event(action, 1048576 + 4096 * step, 700, 30, "log_loss");
    const path = join(mkdtempSync(join(tmpdir(), "vram-test-")), "leaky.json");
    writeFileSync(path, JSON.stringify({ segments: [], device_traces: [events] }));
    return path;
}

async function leaks(path) {
    const { browser, page, errors } = await openPage(html);
    await openFiles(page, [path]);
    await page.keyboard.press("6");
    const wanted = json("leaks", "--json", path);
    equal([wanted.leaks, wanted.groups[0].name], [1, "model.py:30:log_loss"], "the command finds the leak");
    equal(spawnSync(vram, ["leaks", path]).status, 1, "and says so by its exit code");
    await settles(page, () => document.querySelector(".verdict")?.textContent, null, "leak", "the page finds it, too");
    await settles(page, () => document.querySelector('table[aria-label="What grows from step to step"] tbody .site')?.title, null, wanted.groups[0].name, "at the same call site");
    expect((await page.locator(".leaks-verdict").textContent()).includes(`${wanted.steps} steps`), "and tells how many steps");
    await page.locator('input[aria-label="Events per step"]').fill("91");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.querySelector(".leaks-verdict").textContent.includes("as given"));
    expect(await page.locator(".leaks-kept").isHidden(), "everything is freed");
    equal(errors, [], "errors of Leaks");
    await browser.close();
}

// Two blocks that no event frees: Leaks links to their holders at the end.
async function kept() {
    const block = (address, size) => ({ address, size, requested_size: size, state: "active_allocated" });
    const frames = [{ filename: "model.py", line: 7, name: "cache" }];
    const events = [4096, 1052672].map((addr) => ({ action: "alloc", addr, size: 1048576, stream: 0, frames }));
    const segment = { device: 0, address: 4096, total_size: 2097152, stream: 0, blocks: [block(4096, 1048576), block(1052672, 1048576)] };
    const path = join(mkdtempSync(join(tmpdir(), "vram-test-")), "kept.json");
    writeFileSync(path, JSON.stringify({ segments: [segment], device_traces: [events] }));
    const { browser, page, errors } = await openPage(html);
    await openFiles(page, [path]);
    await page.keyboard.press("6");
    await settles(page, () => document.querySelector(".leaks-kept")?.textContent.replace(/\s/g, " "), null, "Never freed: 2.0 MiB in 2 allocations. Show what holds it", "what was never freed");
    await page.locator(".leaks-kept button").click();
    await settles(page, () => Number(document.querySelector("#peak-bytes")?.dataset.bytes), null, 2097152, "is shown by whom");
    equal(await page.locator('select[aria-label="Moment"]').inputValue(), "end", "at the end");
    equal(errors, [], "errors of what was never freed");
    await browser.close();
}

// The same model at two batch sizes: the page names what grew.
async function compare(small, large) {
    const { browser, page, errors } = await openPage(html);
    await openFiles(page, [small, large]);
    await page.keyboard.press("8"); // the page shows the larger one, and compares in the order of the files
    const wanted = json("diff", "--top", "5000", "--json", small, large);
    await settles(page, () => Number(document.querySelector(".compare-facts strong")?.dataset.bytes), null, wanted.change_bytes, "the change in all");
    const grown = wanted.groups.filter((group) => group.change_bytes > 0).sort((a, b) => b.change_bytes - a.change_bytes);
    expect(grown.length > 0 && grown[0].name.endsWith("transformer.py:22:forward"), `the call site that grew: ${grown[0]?.name}`);
    const first = () => document.querySelector('table[aria-label="Differences"] tbody .site')?.title;
    await settles(page, first, null, grown[0].name, "stands first on the page");
    const threshold = (size) => spawnSync(vram, ["diff", "--fail-over", size, small, large]).status;
    equal([threshold("1MiB"), threshold("1TiB")], [1, 0], "exit codes of a threshold");
    await go(page, { view: "compare", rec: 1, other: 0 });
    await settles(page, () => Number(document.querySelector(".compare-facts strong")?.dataset.bytes), null, -wanted.change_bytes, "the other way round");
    equal(errors, [], "errors of Compare");
    await browser.close();
}

await leaks(leaky());
await kept();
if (recordings) {
    const [small, large] = [...recordingPaths("099"), ...recordingPaths("102")];
    for (const path of [small, ...recordingPaths("014"), ...recordingPaths("083")]) await peak(path);
    await compare(small, large);
}
finish();

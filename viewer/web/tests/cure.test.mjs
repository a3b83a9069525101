// Tests out of memory: the page names the cure of `vram report`, in its words, and remains usable meanwhile.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordings, report, settles, vram } from "./check.mjs";

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/oom.pickle.gz");
const plain = (text) => text.replace(/\s+/g, " ").trim();

// Makes segments of 100 MiB of which a block in the middle stays, repeatedly, and a request that then fails.
function made(name, { hollow, size, free, settings = {} }) {
    const events = [];
    const base = 2 ** 40;
    const event = (action, addr, bytes) => events.push({ action, addr, size: bytes, stream: 0, frames: [] });
    const segments = [];
    for (let i = 0; i < hollow; i++) {
        const at = base + i * 100 * MIB;
        event("segment_alloc", at, 100 * MIB);
        for (const [from, length] of [[0, 49], [49, 2], [51, 49]]) event("alloc", at + from * MIB, length * MIB);
        for (const [from, length] of [[0, 49], [51, 49]]) for (const half of ["free_requested", "free_completed"]) event(half, at + from * MIB, length * MIB);
        const block = (bytes, state) => ({ size: bytes * MIB, requested_size: state === "inactive" ? 0 : bytes * MIB, state });
        segments.push({ device: 0, address: at, total_size: 100 * MIB, stream: 0, segment_type: "large", blocks: [block(49, "inactive"), block(2, "active_allocated"), block(49, "inactive")] });
    }
    events.push({ action: "oom", device_free: free * MIB, size: size * MIB, stream: 0, frames: [] });
    writeFileSync(join(folder, name), JSON.stringify({ segments, device_traces: [events], allocator_settings: settings }));
    return join(folder, name);
}

const { browser, page, errors } = await openPage(html, { fragment: "#view=oom" });
await page.context().grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});

// Compares the page about the last file's device with the report.
async function same(path, device) {
    const said = report(path);
    const wanted = said.cures.find((cure) => cure.device === device);
    const { advice } = said.devices[device].oom_causes.at(-1);
    const text = execFileSync(vram, ["report", path], { env: { ...process.env, COLUMNS: "400", LC_ALL: "C" }, maxBuffer: 1 << 28 }).toString();
    await openFiles(page, [path]);
    await go(page, { view: "oom", rec: opened++, device });
    const box = page.locator(`.oom-card[data-event="${wanted.index}"] .oom-cure[data-verdict]`);
    await box.waitFor({ timeout: 120000 });
    equal(await box.getAttribute("data-verdict"), wanted.verdict, `${path}: verdict`);
    const line = wanted.conf === null ? "" : wanted.conf === "" ? "unset PYTORCH_CUDA_ALLOC_CONF" : `PYTORCH_CUDA_ALLOC_CONF=${wanted.conf}`;
    equal(await box.locator("code").allTextContents(), wanted.conf === null ? [] : [line], `${path}: setting`);
    const sentence = plain(await box.locator("p").last().textContent());
    expect(sentence.length > 20 && plain(text).includes(sentence), `${path}: '${sentence}' is not in the report`);
    equal(await page.locator(".oom-advice:visible").count(), wanted.verdict === "setting" || !advice ? 0 : 1, `${path}: advice`);
    // The report's sentence on paged memory follows if it is decisive.
    const { text: saving } = said.paged.find((one) => one.device === device);
    const below = box.locator(".saving");
    if (saving) await below.filter({ hasText: "paged:True" }).waitFor({ timeout: 120000 });
    equal(plain(await below.textContent()), saving ?? "", `${path}: paged memory`);
    return { box, wanted, line, saving };
}

let opened = 0;
const first = await same(example, 0);
const { box, wanted, line } = first;
equal(wanted.conf, "expandable_segments:True", "the example's cure");
await box.getByRole("button").click();
await box.getByRole("button", { name: "Copied" }).waitFor();
const copied = await page.evaluate(() => navigator.clipboard.readText()).catch(() => null);
if (copied !== null) equal(copied, line, "what was copied");

expect(first.saving?.includes("also fits in the"), "the example fits with paged:True");

const verdicts = new Set([wanted.verdict]);
const cases = [
    made("hollow.json", { hollow: 4, size: 120, free: 1 }),
    made("hollow-expandable.json", { hollow: 4, size: 120, free: 1, settings: { max_split_size: 32 * MIB } }),
    made("full.json", { hollow: 1, size: 400, free: 1 }),
    made("one-piece.json", { hollow: 1, size: 40, free: 90 }),
    made("program.json", { hollow: 2, size: 10, free: 1, settings: { vram_run_process: 7 } }),
];
for (const path of cases) verdicts.add((await same(path, 0)).wanted.verdict);
for (const verdict of ["setting", "demand", "not_seen"]) expect(verdicts.has(verdict), `no case is '${verdict}': ${[...verdicts]}`);
const real = recordings && join(recordings, "091_Constructor-Sun_memory_snapshot.pickle");
if (real && existsSync(real)) await same(real, 1);

// Leaving the view stops the search; showing it again continues it.
await page.reload();
await go(page, { view: "timeline" });
await openFiles(page, [example]);
await page.keyboard.press("7");
await page.waitForSelector(".oom-cure");
await page.keyboard.press("1");
await settles(page, () => document.querySelectorAll(".oom-cure").length, null, 0, "another view is on show");
await page.keyboard.press("7");
await page.locator('.oom-cure[data-verdict="setting"]').waitFor({ timeout: 120000 });

// Without a failure, but with much more reserved than live, a chip on the first screen says what paged memory would need, and leads to the
// report's sentences.
const wasteful = made("wasteful.json", { hollow: 12, size: 0, free: 1 });
const kept = JSON.parse(readFileSync(wasteful, "utf8"));
kept.device_traces[0].pop();
const last = { addr: 2 ** 41, size: 300 * MIB, stream: 0, frames: [] };
kept.device_traces[0].push({ action: "segment_alloc", ...last }, { action: "alloc", ...last });
kept.segments.push({ device: 0, address: 2 ** 41, total_size: 300 * MIB, stream: 0, segment_type: "large", blocks: [{ size: 300 * MIB, requested_size: 300 * MIB, state: "active_allocated" }] });
writeFileSync(wasteful, JSON.stringify(kept));
await page.reload();
await go(page, { view: "timeline" });
await openFiles(page, [wasteful]);
const chip = page.locator(".saving-chip");
await chip.waitFor({ timeout: 120000 });
const { paged: [saved] } = report(wasteful);
equal(saved.verdict, "less", "paged memory needs less");
expect(/^(paged:True \(vram's allocator only\)|expandable_segments:True): .* instead of /.test(plain(await chip.textContent())), `the chip says '${await chip.textContent()}'`);
equal(plain(await chip.getAttribute("title")), saved.text, "the chip's sentences");
await chip.click();
const told = page.locator(".oom-view .saving");
await told.filter({ hasText: "instead of" }).waitFor({ timeout: 120000 });
equal(plain(await told.textContent()), saved.text, "the view's sentences");
await openFiles(page, [cases[2]]);
await chip.waitFor({ state: "hidden" });

equal(errors, [], "errors of the page");
await browser.close();
rmSync(folder, { recursive: true });
finish();

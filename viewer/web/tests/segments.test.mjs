// Tests segments in lanes, and the state of very many blocks, with real mouse and keys, against a naive walk over the events.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage, saved } from "./browser.mjs";
import { equal, expect, finish, go, html, settles, vram } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/train.json.gz");
const hash = (key) => new URLSearchParams(location.hash.slice(1)).get(key);

// Returns each lane's peak: the example begins with nothing reserved, and has no private pools.
function lanesOf(path) {
    const { trace } = JSON.parse(execFileSync(vram, ["report", "--list", "trace", "--json", path], { maxBuffer: 1 << 28 }));
    const now = new Map();
    const most = new Map();
    for (const { action, bytes, stream } of trace) {
        const sign = { segment_alloc: 1, segment_map: 1, segment_free: -1, segment_unmap: -1 }[action];
        if (!sign) continue;
        const shown = stream > 0xffff ? `0x${BigInt(stream).toString(16)}` : stream;
        const lane = `default pool, ${bytes === 2 << 20 ? "small" : "large"}, stream ${shown}`;
        now.set(lane, (now.get(lane) ?? 0) + sign * bytes);
        most.set(lane, Math.max(most.get(lane) ?? 0, now.get(lane)));
    }
    return Object.fromEntries([...most].sort());
}

async function lanes() {
    const { browser, page, requests, errors } = await openPage(html);
    await openFiles(page, [example]);
    await page.keyboard.press("3");
    await page.locator(".chart-table summary").click();
    const told = () => Object.fromEntries([...document.querySelectorAll('table[aria-label="Lanes"] tbody tr')].map((row) => [row.children[0].textContent, Number(row.children[1].dataset.bytes)]).sort());
    await settles(page, told, null, lanesOf(example), "the lanes and the most that each had");
    const rows = await page.locator('table[aria-label="Segments"] tbody tr').count();
    expect(rows > 10, "the table names segments");
    await page.locator('table[aria-label="Segments"] tbody button').first().click();
    await settles(page, (read) => new URLSearchParams(location.hash.slice(1)).get(read)?.[0], "pick", "s", "a segment of the table is picked");

    // Keys move down the lanes, and to the next segment in one.
    await go(page, { view: "segments" });
    await page.locator(".chart-top").focus();
    const lane = async () => /private pool|default pool[^.]*/.exec(await page.locator(".chart-top").getAttribute("aria-label"))?.[0];
    await page.keyboard.press("}");
    await settles(page, (read) => new URLSearchParams(location.hash.slice(1)).get(read)?.[0], "pick", "s", "} picks the first lane's first segment");
    const first = await page.evaluate(hash, "pick");
    await page.keyboard.press("}");
    await settles(page, ([read, before]) => new URLSearchParams(location.hash.slice(1)).get(read) !== before, ["pick", first], true, "} goes on to the next lane");
    expect((await lane()) !== undefined, "the picture's label names the pool");
    await page.keyboard.press("{");
    await settles(page, hash, "pick", first, "{ goes back");

    // The lowest lane holds 2 MiB of 8 GiB and is magnified: the pointer finds its segment.
    const box = JSON.parse(await page.evaluate(() => document.querySelector(".chart-stage").dataset.box));
    const canvas = await page.locator(".chart-top").boundingBox();
    await page.mouse.move(canvas.x + box.left + box.width * 0.8, canvas.y + box.top + box.height - 8);
    await settles(page, () => document.querySelector(".chart-tip strong")?.textContent, null, "2.0\u202fMiB a segment", "a magnified segment has its own size");
    equal(requests, [], "requests");
    equal(errors, [], "errors");
    await browser.close();
}

// More live blocks than a screen shows.
const BLOCKS = 40000;
function crowd() {
    const events = [];
    const size = (i) => 512 * (1 + (i % 7));
    let addr = 0x10000000;
    let bytes = 0;
    for (let i = 0; i < BLOCKS; i++) {
        events.push({ action: "alloc", addr, size: size(i), stream: 0, time_us: i, frames: [{ filename: "many.py", line: 1 + (i % 3), name: "f" }] });
        addr += size(i) + (i % 11 === 0 ? 1024 : 0);
        bytes += size(i);
    }
    const segment = { action: "segment_alloc", addr: 0x10000000, size: 256 << 20, stream: 0, time_us: 0, frames: [] };
    const path = join(mkdtempSync(join(tmpdir(), "vram-test-")), "crowd.json");
    writeFileSync(path, JSON.stringify({ segments: [], device_traces: [[segment, ...events]] }));
    return { path, bytes };
}

async function crowded() {
    const { path, bytes } = crowd();
    const { browser, page, errors } = await openPage(html);
    await openFiles(page, [path]);
    await page.keyboard.press("2");
    await settles(page, () => document.querySelector(".state-stage canvas").getAttribute("aria-label").includes("40,000 blocks"), null, true, "all blocks are counted");
    await settles(page, () => Number(document.querySelector('[data-fact="allocated"] dd')?.dataset.bytes ?? 0) + Number(document.querySelector('[data-fact="outside"] dd')?.dataset.bytes ?? 0), null, bytes, "all bytes are counted");
    expect((await page.locator(".state-legend").textContent()).includes("neighbours below"), "the legend says that small neighbours are one");
    // A bundle is under the pointer, and a click picks its largest block.
    const canvas = await page.locator(".state-stage canvas").boundingBox();
    let tip = "";
    for (let y = 6; y < Math.min(300, canvas.height) && !tip.includes("blocks too small to draw"); y += 6) {
        await page.mouse.move(canvas.x + 6, canvas.y + y);
        tip = await page.locator(".state-tip").textContent();
    }
    expect(tip.includes("blocks too small to draw"), "the pointer finds a bundle");
    await page.mouse.down();
    await page.mouse.up();
    await settles(page, (read) => new URLSearchParams(location.hash.slice(1)).get(read)?.[0], "pick", "b", "a click picks a block");
    const picked = await page.evaluate(hash, "pick");
    await page.keyboard.press(".");
    await settles(page, ([read, before]) => new URLSearchParams(location.hash.slice(1)).get(read) !== before, ["pick", picked], true, ". goes on to the next");
    // The saved table has every block.
    const lines = (await saved(page, "Table (CSV)")).toString().trim().split("\n");
    equal(lines.length, BLOCKS + 1, "a line per block");
    equal(new Set(lines.map((line) => line.split(",")[1])).size, BLOCKS + 1, "each block once");
    equal(errors, [], "errors");
    await browser.close();
}

if (existsSync(example)) await lanes();
await crowded();
finish();

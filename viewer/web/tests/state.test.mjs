// Tests the state history, out of memory and settings with real mouse and keys, against a naive computation from the rows of `vram report
// --list`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "./browser.mjs";
import { go, html, recordingPaths, recordings, rests, vram } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/train.json.gz");
// Expandable segments and an out-of-memory error on several devices; no completions; no times; no settings; private pools; a bare list.
const files = [example, ...(recordings ? recordingPaths("001", "016", "022", "052", "071", "091", "104") : [])];

function listed(what, file) {
    return JSON.parse(execFileSync(vram, ["report", "--list", what, "--json", file], { maxBuffer: 1 << 30 }))[what];
}

// Returns requested and reserved bytes after each event of a device, by rolling the final state back and then forward.
function naive(file) {
    const trace = listed("trace", file);
    const perDevice = new Map(listed("segments", file).map((segment) => [segment.device, []]));
    for (const event of trace) perDevice.has(event.device) ? perDevice.get(event.device).push(event) : perDevice.set(event.device, [event]);
    if (perDevice.size === 0) return null; // neither events nor segments: nothing to check
    const [device, events] = [...perDevice].sort((a, b) => b[1].length - a[1].length || a[0] - b[0])[0];
    const live = new Map();
    for (const block of listed("memory", file)) if (block.device === device && block.state === "active_allocated") live.set(block.address, block.requested_bytes);
    let reserved = listed("segments", file).filter((segment) => segment.device === device).reduce((sum, segment) => sum + segment.bytes, 0);
    // If only completions were recorded, they are the frees.
    const ends = new Set(events.some((event) => event.action === "free_requested") ? ["free_requested", "free"] : ["free_completed", "free"]);
    const sign = { segment_alloc: 1, segment_map: 1, segment_free: -1, segment_unmap: -1 };
    for (const event of [...events].reverse()) {
        if (event.action === "alloc") live.delete(event.address);
        else if (ends.has(event.action)) live.set(event.address, event.bytes);
        reserved -= (sign[event.action] ?? 0) * event.bytes;
    }
    let requested = [...live.values()].reduce((sum, size) => sum + size, 0);
    const after = [{ requested, reserved }];
    for (const event of events) {
        if (event.action === "alloc") {
            requested += event.bytes - (live.get(event.address) ?? 0);
            live.set(event.address, event.bytes);
        } else if (ends.has(event.action)) {
            requested -= live.get(event.address) ?? 0;
            live.delete(event.address);
        }
        reserved += (sign[event.action] ?? 0) * event.bytes;
        after.push({ requested, reserved });
    }
    return { device, events, after };
}

async function facts(page, event, total) {
    await page.waitForFunction(([wanted]) => document.querySelector('[data-fact="event"] dd')?.textContent === wanted, [event < 0 ? "none" : `${event.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}`]);
    const read = (name) => page.locator(`[data-fact="${name}"] dd`).getAttribute("data-bytes").then(Number);
    return { allocated: await read("allocated"), rounding: await read("rounding"), active: await read("active"), reserved: await read("reserved"), free: await read("free"), largest: await read("largest"), outside: (await page.locator('[data-fact="outside"]').count()) ? await read("outside") : 0 };
}

async function checkMoment(page, truth, event) {
    const found = await facts(page, event, truth.events.length);
    const wanted = truth.after[event + 1];
    const requested = found.allocated;
    // Blocks in no known segment are counted separately, by the given sizes.
    if (found.outside === 0) assert.equal(requested, wanted.requested, `requested bytes after event ${event}`);
    else assert.ok(requested + found.outside >= wanted.requested && requested < wanted.requested, `requested bytes after event ${event}`);
    assert.equal(found.reserved, wanted.reserved, `reserved bytes after event ${event}`);
    assert.equal(found.reserved, found.active + found.free, `bytes add up after event ${event}`);
    assert.ok(found.largest <= found.free);
}

// Edits the address after the page has written the previously chosen event: the same address would not be a change.
let edits = 0;
async function setEvent(page, event, before) {
    await page.waitForFunction((chosen) => new URLSearchParams(location.hash.slice(1)).get("event") === String(chosen), before);
    const edit = ([value, number]) =>
        new Promise((resolve) => {
            window.addEventListener("hashchange", resolve, { once: true });
            location.hash = location.hash.replace(/&(event|link)=[^&]*/g, "") + `&event=${value}&link=${number}`;
        });
    await page.evaluate(edit, [event, ++edits]);
}

async function walk(page, truth) {
    const last = truth.events.length - 1;
    await page.keyboard.press("2");
    // The view opens at the last failure, or at the end if there is none.
    await checkMoment(page, truth, truth.events.filter((event) => event.action === "oom").at(-1)?.event ?? last);
    if (last < 3) return;
    await page.keyboard.press("Home");
    await checkMoment(page, truth, -1);
    await page.keyboard.press("ArrowDown");
    await checkMoment(page, truth, 0);
    await page.keyboard.press("ArrowDown");
    await checkMoment(page, truth, 1);
    await page.keyboard.press("ArrowUp");
    await checkMoment(page, truth, 0);
    await page.keyboard.press("End");
    await checkMoment(page, truth, last);
    for (let i = 0, before = last; i < 10; i++) {
        const event = Math.floor((last * ((i * 7919 + 13) % 101)) / 101);
        await setEvent(page, event, before);
        await checkMoment(page, truth, event);
        before = event;
    }
    // A row under the mouse, once the list rests.
    await page.waitForFunction(() => document.querySelector('.event-row[aria-selected="true"]'));
    await rests(page, () => document.querySelector(".event-rows").textContent);
    const event = Number(await page.locator(".event-row").nth(3).getAttribute("data-event"));
    await page.locator(`[data-event="${event}"]`).click();
    await checkMoment(page, truth, event);
    assert.equal(await page.locator('.event-row[aria-selected="true"]').getAttribute("data-event"), String(event));
    // The wheel scrolls the list without choosing.
    const first = Number(await page.locator(".event-row").first().getAttribute("data-event"));
    await page.locator(".event-rows").hover();
    await page.mouse.wheel(0, first > 100 ? -2200 : 2200);
    if (last > 300) await page.waitForFunction((before) => Number(document.querySelector(".event-row").dataset.event) !== before, first);
    await checkMoment(page, truth, event);
}

async function blocks(page) {
    await page.keyboard.press("m");
    await page.waitForFunction(() => document.querySelector(".state-scrub").value === document.querySelector(".facts .jump").dataset.event);
    await rests(page, () => document.querySelector(".state-facts").textContent);
    await page.keyboard.press(".");
    await page.waitForFunction(() => /pick=b/.test(location.hash));
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !/pick=b/.test(location.hash));
    await rests(page, () => document.querySelector(".state-stage canvas").width); // the details close, and the picture takes their space
    const canvas = page.locator(".state-stage canvas");
    const box = await canvas.boundingBox();
    let seen = false;
    for (let y = 8; y < Math.min(box.height, 300) && !seen; y += 9) {
        await page.mouse.move(box.x + 12, box.y + y);
        seen = await page.locator(".state-tip").isVisible();
    }
    assert.ok(seen, "a segment is under the mouse somewhere");
    assert.match(await page.locator(".state-tip").textContent(), /in segment|does not name/);
}

async function outOfMemory(page, truth) {
    const ooms = truth.events.filter((event) => event.action === "oom");
    await page.keyboard.press("7");
    await page.waitForSelector(".oom-view h2");
    assert.equal(await page.locator(".oom-card").count(), Math.min(200, ooms.length));
    if (ooms.length === 0) {
        assert.match(await page.locator(".oom-view h2").textContent(), /^No out-of-memory error is recorded$|^It was device \d that ran out of memory$/);
        return;
    }
    const last = ooms.at(-1).event;
    assert.equal(await page.locator(".oom-card").first().getAttribute("data-event"), String(last));
    await page.getByRole("button", { name: "Show segments and blocks at that moment" }).first().click();
    await checkMoment(page, truth, last);
    await page.keyboard.press("Home");
    await checkMoment(page, truth, -1);
    await page.keyboard.press("n");
    await checkMoment(page, truth, ooms[0].event);
    await page.locator(".state-left select").selectOption({ label: "out of memory" });
    await page.waitForFunction((count) => document.querySelectorAll(".event-row").length === count, Math.min(ooms.length, await visibleRows(page)));
    assert.ok((await page.locator(".event-row.act-oom").count()) > 0);
    await page.locator(".state-left select").selectOption({ label: "all events" });
}

const visibleRows = (page) => page.evaluate(() => Math.floor(document.querySelector(".event-rows").clientHeight / 22) + 1);

async function settings(page, file) {
    const report = JSON.parse(execFileSync(vram, ["report", "--json", "--no-cure", file], { maxBuffer: 1 << 30 }));
    await page.keyboard.press("9");
    await page.waitForSelector(".settings-view h2");
    const keys = await page.locator(".settings-view tr[data-key]").evaluateAll((rows) => rows.map((row) => row.dataset.key));
    assert.deepEqual(keys.sort(), Object.keys(report.allocator_settings ?? {}).sort());
    assert.match(await page.locator(".settings-view").textContent(), new RegExp(report.form === "dict" ? `generation ${report.generation}` : "bare list"));
}

for (const file of files) {
    const truth = naive(file);
    if (!truth) continue;
    const { browser, page, requests, errors } = await openPage(html, { fragment: "#view=timeline" });
    try {
        await openFiles(page, [file]);
        await go(page, { view: "timeline", device: truth.device });
        await page.locator("body").click({ position: { x: 640, y: 790 } });
        await walk(page, truth);
        if (truth.after.some(({ requested }) => requested > 0)) await blocks(page);
        await outOfMemory(page, truth);
        await settings(page, file);
        assert.deepEqual(requests, []);
        assert.deepEqual(errors, []);
        console.log(`${file}: ${truth.events.length} events`);
    } finally {
        await browser.close();
    }
}

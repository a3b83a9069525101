// Opens every shared recording without network, and compares the page with `vram report --json` and a naive computation: peaks and their
// moments, live memory at the peak, the state after ten random events.
import { basename } from "node:path";
import { openPage } from "./browser.mjs";
import { asked, equal, expect, finish, go, html, recordingPaths, settles } from "./check.mjs";

const EVENTS = 10;
const PAGES = 3; // in parallel, because a page mostly waits for its frames
const grouped = (value) => value.toLocaleString("en-US");

// Returns the bytes requested and not yet freed after each event, by rolling the final state back and then forward.
function totals(dictionary, device) {
    const events = dictionary.device_traces?.[device] ?? [];
    const live = new Map();
    for (const segment of dictionary.segments ?? []) {
        if ((segment.device ?? 0) !== device) continue;
        let address = segment.address;
        for (const block of segment.blocks) {
            const at = block.address ?? address;
            address = at + block.size;
            if (block.state === "active_allocated") live.set(at, block.requested_size ?? block.history?.[0]?.real_size ?? block.size);
        }
    }
    const ends = new Set(["free_requested", "free"]);
    for (const event of [...events].reverse()) {
        if (event.action === "alloc") live.delete(event.addr);
        else if (ends.has(event.action)) live.set(event.addr, event.size);
    }
    let total = [...live.values()].reduce((sum, size) => sum + size, 0);
    return events.map((event) => {
        if (event.action === "alloc") {
            total += event.size - (live.get(event.addr) ?? 0);
            live.set(event.addr, event.size);
        } else if (ends.has(event.action)) {
            total -= live.get(event.addr) ?? 0;
            live.delete(event.addr);
        }
        return total;
    });
}

// Returns a generator that gives the same numbers for the same seed.
function randomFrom(seed) {
    return (below) => {
        seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
        return Math.floor((seed / 2 ** 32) * below);
    };
}

const readPeak = () => {
    const button = document.querySelector(".facts button");
    return button && [Number(button.dataset.bytes), Number(button.dataset.event)];
};
const readLive = () => {
    const whole = document.querySelector("#peak-bytes");
    return whole && [Number(whole.dataset.bytes), Number(/in ([\d,]+) /.exec(whole.parentElement.textContent)?.[1].replaceAll(",", ""))];
};
const readState = () => {
    const fact = (name) => document.querySelector(`[data-fact="${name}"] dd`);
    if (!fact("event")) return null;
    return [fact("event").textContent, Number(fact("allocated").dataset.bytes)];
};

async function checkDevice(page, name, rec, device, facts, dictionary) {
    for (const notion of ["allocated", "active"]) {
        const { peak_bytes, peak_event_index, live_count_at_peak } = facts[notion];
        await go(page, { rec, device, notion, view: "peak" });
        await settles(page, readPeak, null, [peak_bytes, peak_event_index], `${name}: ${notion} peak of device ${device}`);
        if (peak_bytes > 0) await settles(page, readLive, null, [peak_bytes, live_count_at_peak], `${name}: live at the ${notion} peak of device ${device}`);
    }
    const after = totals(dictionary, device);
    const random = randomFrom(12345);
    for (let i = 0; i < EVENTS && after.length !== 0 && facts.allocated.consistent; i++) {
        const event = random(after.length);
        await go(page, { rec, device, view: "state", event });
        await settles(page, readState, null, [`${grouped(event)} of ${grouped(after.length)}`, after[event]], `${name}: state of device ${device} after event ${event}`);
    }
}

async function checkRecording(page, path, rec) {
    const name = basename(path);
    const { devices } = await asked("report", "--json", path);
    const dictionary = Object.keys(devices).length === 0 ? {} : await asked("convert", path, "-o", "-", "--to", "json");
    await page.locator('input[type="file"]').setInputFiles(path);
    await settles(page, () => document.querySelectorAll("select.files option").length, null, rec + 1, `${name} opens`, 30000);
    await page.waitForFunction(() => document.querySelector(".loading").hidden);
    for (const [device, facts] of Object.entries(devices)) await checkDevice(page, name, rec, Number(device), facts, Array.isArray(dictionary) ? { segments: dictionary } : dictionary);
    equal(await page.locator(".message").textContent(), "", `${name}: what the page complains about`);
}

// Opens recordings in one page until none is left; several pages run in parallel.
async function openThem(paths) {
    const { browser, page, requests, errors } = await openPage(html);
    for (let rec = 0; paths.length !== 0; rec++) await checkRecording(page, paths.shift(), rec);
    equal(requests, [], "requests to the network");
    equal(errors, [], "errors of the page");
    await browser.close();
}

const paths = recordingPaths();
expect(paths.length > 0, "there are recordings");
await Promise.all(Array.from({ length: PAGES }, () => openThem(paths)));
finish();

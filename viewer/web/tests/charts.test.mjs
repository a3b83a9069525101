// Tests the timeline, the segments and the address map with real mouse and keys, with WebGL2 and canvas: totals equal the report's, the
// shape under the pointer equals a naive stacking of the events, and the window follows the mouse and the keys.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isFirefox, openFiles, openPage, saved } from "./browser.mjs";
import { equal, expect, finish, go, html, report, rests, settles, vram } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/train.json.gz");
if (!existsSync(example)) {
    console.log("no example recording here: skipped");
    process.exit(77);
}
const facts = report(example).devices[0];
const trace = JSON.parse(execFileSync(vram, ["report", "--list", "trace", "--json", example], { maxBuffer: 1 << 28 })).trace;

// Returns allocations with their first and last events; the example begins with an empty history.
function naive() {
    const rows = [];
    const live = new Map();
    trace.forEach((event, i) => {
        if (event.action === "alloc") {
            const before = rows.filter((row) => row.address === event.address).length;
            const row = { address: event.address, bytes: event.bytes, birth: i, death: trace.length, label: `b${BigInt(event.address).toString(16)}_${before}` };
            rows.push(row);
            live.set(event.address, row);
        } else if (event.action === "free_requested") {
            if (live.has(event.address)) live.get(event.address).death = i;
            live.delete(event.address);
        }
    });
    return rows;
}
const rows = naive();

const stage = ".chart-stage";
const hash = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const data = (page, name) => page.evaluate(([selector, key]) => document.querySelector(selector)?.dataset[key] ?? null, [stage, name]);
const settled = async (page) => {
    await rests(page, (selector) => [JSON.stringify(document.querySelector(selector)?.dataset), location.hash], stage);
    // The address is written when the window rests, at most half a second after the last change.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
};
const windowOf = async (page) => {
    const { from = "0", to = "0" } = await hash(page);
    return Number(to) > Number(from) ? [Number(from), Number(to)] : [0, trace.length];
};
async function place(page) {
    const canvas = await page.locator(".chart-top").boundingBox();
    const box = JSON.parse(await data(page, "box"));
    const [from, to] = await windowOf(page);
    return {
        x: (position) => canvas.x + box.left + ((position - from) / (to - from)) * box.width,
        y: (value) => canvas.y + box.top + box.height - ((value - box.heights[0]) / (box.heights[1] - box.heights[0])) * box.height,
        position: (x) => from + ((x - canvas.x - box.left) / box.width) * (to - from),
    };
}
const near = (found, wanted, tolerance, what) => expect(Math.abs(found - wanted) <= tolerance, `${what}: found ${found}, not ${wanted}`);

async function totals(page) {
    await page.keyboard.press("1");
    await settles(page, (s) => Number(document.querySelector(s)?.dataset.largest), stage, facts.allocated.peak_bytes, "largest total of the timeline");
    await go(page, { notion: "active" });
    await settles(page, (s) => Number(document.querySelector(s)?.dataset.largest), stage, facts.active.peak_bytes, "largest total, active");
    await go(page, {});
    await page.keyboard.press("3");
    await settles(page, (s) => Number(document.querySelector(s)?.dataset.largest), stage, facts.reserved.peak_bytes, "largest total of the segments");
    await page.keyboard.press("1");
    await settled(page);
    equal(Number(await data(page, "allocations")), rows.length, "allocations in the window");
}

// Points at the middle of a moment's largest allocations, found by stacking live ones in order of allocation.
async function pointing(page) {
    const event = facts.allocated.peak_event_index;
    await go(page, { from: event - 20, to: event + 20 });
    await settled(page);
    const live = rows.filter((row) => row.birth <= event && row.death > event);
    let base = 0;
    for (const row of live) {
        row.base = base;
        base += row.bytes;
    }
    equal(base, facts.allocated.peak_bytes, "the naive stack is as high as the peak");
    const map = await place(page);
    for (const row of [...live].sort((a, b) => b.bytes - a.bytes).slice(0, 5)) {
        await page.mouse.move(map.x(event + 0.5), map.y(row.base + row.bytes / 2));
        await settles(page, () => document.querySelector(".chart-tip div")?.textContent, null, row.label, "what the pointer finds");
        await page.mouse.down();
        await page.mouse.up();
        await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("pick"), null, row.label, "what a click picks");
        equal(Number((await hash(page)).event), event, "the moment that a click chooses");
        await settled(page);
        Object.assign(map, await place(page));
    }
    await page.mouse.move(map.x(event + 0.5), map.y(base * 1.03));
    await settles(page, () => document.querySelector(".chart-tip").hidden, null, true, "nothing above the stack");
    const picked = (await hash(page)).pick;
    await page.locator(".chart-top").focus();
    await page.keyboard.press("]");
    await settles(page, (before) => ![null, before].includes(new URLSearchParams(location.hash.slice(1)).get("pick")), picked, true, "] picks the next");
    await page.keyboard.press("[");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("pick"), null, picked, "[ picks the one before");
    await page.keyboard.press("Escape");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("pick"), null, null, "Escape picks nothing");
}

async function moving(page) {
    await go(page, {});
    await settled(page);
    let map = await place(page);
    const under = 2000;
    await page.mouse.move(map.x(under), map.y(1 << 28));
    for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -200);
    await settled(page);
    const [from, to] = await windowOf(page);
    expect(to - from < trace.length / 3, "the wheel zooms in");
    map = await place(page);
    const pointer = await page.locator(".chart-top").boundingBox();
    near(map.position(map.x(under)), under, 1e-6, "positions");
    await page.mouse.move(pointer.x + pointer.width / 2, pointer.y + 200);
    await page.mouse.down();
    await page.mouse.move(pointer.x + pointer.width / 2 - 100, pointer.y + 200, { steps: 5 });
    await page.mouse.up();
    await settled(page);
    const [panned, end] = await windowOf(page);
    near(end - panned, to - from, 1e-6, "panning keeps the size");
    near(panned - from, map.position(200) - map.position(100), (to - from) * 0.01, "panning follows the pointer");
    map = await place(page);
    const [left, right] = [map.position(pointer.x + 300), map.position(pointer.x + 500)];
    await page.keyboard.down("Shift");
    await page.mouse.move(pointer.x + 300, pointer.y + 200);
    await page.mouse.down();
    await page.mouse.move(pointer.x + 500, pointer.y + 200, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await settled(page);
    const selected = await windowOf(page);
    near(selected[0], left, (right - left) * 0.02, "shift and drag select from");
    near(selected[1], right, (right - left) * 0.02, "shift and drag select to");
    await page.mouse.dblclick(pointer.x + 400, pointer.y + 200);
    await settled(page);
    equal(await windowOf(page), [0, trace.length], "a double click shows everything");
    await page.keyboard.press("w");
    await settled(page);
    const zoomed = await windowOf(page);
    expect(zoomed[1] - zoomed[0] < trace.length * 0.95, "w zooms in");
    await page.keyboard.press("d");
    await settled(page);
    expect((await windowOf(page))[0] > zoomed[0], "d goes on");
}

// The pointer reveals the map's addresses: the label's address is where the axis says.
async function map(page) {
    await go(page, { view: "map" });
    await settled(page);
    expect(Number(await data(page, "shapes")) > 100, "rectangles on the map");
    const canvas = await page.locator(".chart-top").boundingBox();
    let found = 0;
    for (let i = 0; i < 40 && found < 3; i++) {
        await page.mouse.move(canvas.x + canvas.width * 0.7, canvas.y + 40 + ((canvas.height - 100) * i) / 40);
        await rests(page, () => document.querySelector(".chart-tip").textContent);
        const tip = await page.evaluate(() => (document.querySelector(".chart-tip").hidden ? "" : (document.querySelector(".chart-tip div")?.textContent ?? "")));
        if (tip.startsWith("b")) {
            found++;
            const row = rows.find((item) => item.label === tip);
            expect(row !== undefined, `the map's ${tip} is an allocation`);
        }
    }
    expect(found >= 3, "the pointer finds allocations on the map");
    const all = JSON.parse(await data(page, "box")).heights;
    await page.locator(".chart-top").focus();
    await page.keyboard.press("W");
    await settled(page);
    const some = JSON.parse(await data(page, "box")).heights;
    expect(some[1] - some[0] < (all[1] - all[0]) * 0.8, "W zooms the addresses");
}

async function saving(page) {
    await go(page, {});
    await settled(page);
    for (const [title, check] of [
        ["Picture (SVG)", (text) => text.startsWith("<svg ") && text.includes("</svg>") && (text.match(/<rect/g) ?? []).length > 200],
        ["Table (CSV)", (text) => text.startsWith("label,bytes,") && text.includes([...rows].sort((a, b) => (b.death - b.birth + 1) * b.bytes - (a.death - a.birth + 1) * a.bytes)[0].label)],
    ]) {
        expect(check((await saved(page, title)).toString()), `saving: ${title}`);
    }
    const png = await saved(page, "Picture (PNG)");
    expect(png.subarray(1, 4).toString() === "PNG" && png.readUInt32BE(16) >= 1000, `saving: a PNG ${png.readUInt32BE(16)} pixels wide`);
    await page.locator(".chart-table summary").click();
    await settles(page, () => document.querySelectorAll(".chart-table tbody tr").length, null, 100, "rows of the table");
}

for (const [query, painter] of [
    ["?webgl2", "webgl2"],
    ["?canvas2d", "canvas2d"],
]) {
    const { browser, page, requests, errors } = await openPage(html + query);
    await openFiles(page, [example]);
    await settled(page);
    const able = await page.evaluate(() => document.createElement("canvas").getContext("webgl2") !== null);
    equal(await data(page, "painter"), able || !isFirefox ? painter : "canvas2d", "what draws");
    await totals(page);
    await pointing(page);
    await moving(page);
    await map(page);
    await saving(page);
    equal(requests, [], "requests");
    equal(errors, [], "errors of the page");
    await browser.close();
}
finish();

// Tests what the page paints, in both themes: legible labels (by the painted colours), live memory distinct from free memory during a
// search, tips that follow the pointer and the view, a strip with a scale, and forced colours.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isFirefox, openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, pageRests, rests, settles } from "./check.mjs";

const MIB = 2 ** 20;
const at = (i) => 0x7f0000000000 + i * 2 * MIB;
const frames = (i) => [{ name: `layer_${i}`, filename: "/home/me/model.py", line: i }, { name: "main", filename: "/home/me/train.py", line: 3 }];
const events = [];
for (let i = 0; i < 24; i++) {
    // Annotations with many names have many colours.
    events.push({ action: "alloc", addr: at(i), size: 2 * MIB, stream: 0, time_us: 100 * i, frames: frames(i) });
    if (i % 4 === 3) for (const action of ["free_requested", "free_completed"]) events.push({ action, addr: at(i), size: 2 * MIB, stream: 0, time_us: 100 * i + 50, frames: frames(i) });
}
events.push({ action: "oom", addr: 0, size: 2 ** 33, device_free: 5 * MIB, stream: 0, time_us: 2400, frames: frames(30) });
const external_annotations = [];
for (let i = 0; i < 24; i++) for (const [stage, us] of [["START", 100 * i], ["END", 100 * i + 99]]) external_annotations.push({ name: `name ${i}`, stage, device: 0, time_us: us });
const blocks = Array.from({ length: 24 }, (_, i) => ({ address: at(i), size: 2 * MIB, requested_size: 2 * MIB, state: i % 4 === 3 ? "inactive" : "active_allocated", frames: frames(i) }));
const held = 18 * 2 * MIB;
const segment = { device: 0, address: at(0), total_size: 48 * MIB, allocated_size: held, active_size: held, stream: 0, segment_type: "large", blocks, frames: [] };
const made = join(mkdtempSync(join(tmpdir(), "vram-test-")), "made.json");
writeFileSync(made, JSON.stringify({ segments: [segment], device_traces: [events], external_annotations }));

// Notes a text's colour and background before it is painted on a canvas; the page itself reads no pixels.
function watch() {
    window.painted = new Map();
    for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
        const { getImageData: read, fillText: paint } = prototype;
        prototype.fillText = function (text, x, y, ...rest) {
            const { a, d, e, f } = this.getTransform();
            const size = parseFloat(/(\d+(?:\.\d+)?)px/.exec(this.font)[1]);
            const width = this.measureText(text).width;
            const left = this.textAlign === "right" ? x - width : this.textAlign === "center" ? x - width / 2 : x;
            const middle = this.textBaseline === "middle" ? y : y - size * 0.35;
            const under = read.call(this, Math.round(left * a + e + 1), Math.round(middle * d + f), Math.max(1, Math.round(width * a - 2)), 1).data;
            if (this.canvas.isConnected !== false) window.painted.set(text, { ink: this.fillStyle, under: [...under] });
            paint.call(this, text, x, y, ...rest);
        };
    }
}
function lowPainted() {
    const channel = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
    const style = getComputedStyle(document.documentElement);
    const low = [];
    for (const [text, { ink, under }] of window.painted) {
        // The colour behind most of the text; if nothing is painted yet, the page's ground.
        const counts = new Map();
        for (let i = 0; i < under.length; i += 4) {
            const colour = under[i + 3] < 128 ? rgb(style.getPropertyValue("--ground").trim()).join() : [under[i], under[i + 1], under[i + 2]].join();
            counts.set(colour, (counts.get(colour) ?? 0) + 1);
        }
        const ground = [...counts].sort((a, b) => b[1] - a[1])[0][0].split(",").map(Number);
        const [a, b] = [light(rgb(ink)), light(ground)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) low.push(`${text}: ${ratio.toFixed(2)}, ${ink} on ${ground}`);
    }
    return { count: window.painted.size, low };
}

const tip = (selector) => [...document.querySelectorAll(selector)].some((one) => one.checkVisibility());

async function tips(page) {
    for (const [view, canvas, selector, other] of [["timeline", ".chart-top", ".chart-tip", "2"], ["state", ".state-stage canvas", ".state-tip", "1"], ["map", ".chart-top", ".chart-tip", "2"]]) {
        await go(page, { view, event: events.length - 1 });
        await pageRests(page);
        const box = await page.locator(`main ${canvas}`).boundingBox();
        const over = async () => {
            for (let y = 10; y < box.height; y += 8) {
                await page.mouse.move(box.x + box.width * 0.6, box.y + y);
                if (await page.evaluate(tip, selector)) return true;
            }
            return false;
        };
        expect(await over(), `${view}: something has a tip`);
        await page.mouse.move(5, 5);
        await settles(page, tip, selector, false, `${view}: the tip goes with the pointer`);
        expect(await over(), `${view}: a tip again`);
        await page.keyboard.press(other);
        await pageRests(page);
        await go(page, { view, event: events.length - 1 });
        await pageRests(page);
        await settles(page, tip, selector, false, `${view}: the tip goes with the view`);
    }
}

// Returns the colours, in the middle, of a free block, a live block that matches, and one that does not.
async function states(page, theme) {
    await go(page, { view: "state", event: events.length - 1, search: "layer_0" });
    await settles(page, () => /live, not found/.test(document.querySelector(".state-legend").textContent), null, true, `${theme}: the legend says what the grey is`);
    const colours = () =>
        Object.fromEntries(
            [["free", ".is-free"], ["found", ".is-allocated"], ["unfound", ".is-unfound"]].map(([name, selector]) => {
                const canvas = new OffscreenCanvas(1, 1).getContext("2d");
                canvas.fillStyle = getComputedStyle(document.querySelector(`.state-legend ${selector}`)).backgroundColor;
                canvas.fillRect(0, 0, 1, 1);
                return [name, [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)]];
            }),
        );
    const legend = await page.evaluate(colours);
    await pageRests(page);
    const painted = await page.evaluate(() => {
        const canvas = document.querySelector(".state-stage canvas");
        const { width, height } = canvas;
        const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
        const counts = {};
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) counts[[data[i], data[i + 1], data[i + 2]]] = (counts[[data[i], data[i + 1], data[i + 2]]] ?? 0) + 1;
        return counts;
    });
    const about = ([r, g, b]) => Object.entries(painted).filter(([key]) => key.split(",").every((value, i) => Math.abs(value - [r, g, b][i]) <= 3)).reduce((sum, [, count]) => sum + count, 0);
    const [free, unfound] = [about(legend.free), about(legend.unfound)];
    expect(free > 500 && unfound > 500, `${theme}: free (${free}) and not found (${unfound}) are both painted: ${JSON.stringify(legend)}`);
    expect(unfound > 1.5 * free, `${theme}: 17 live blocks not found, 6 free: ${unfound} and ${free} pixels`);
    const distance = Math.hypot(...legend.free.map((value, i) => value - legend.unfound[i]));
    expect(distance > 60, `${theme}: they can be told apart: ${distance}`);
    // The address map uses the same grey.
    await go(page, { view: "map", search: "layer_0" });
    const faded = () => {
        const canvas = document.querySelectorAll(".chart-stage canvas")[1];
        if (!canvas || document.querySelector(".chart-stage").dataset.painter !== "canvas2d" || !document.querySelector(".chart-stage").dataset.ready) return null;
        const copy = document.createElement("canvas").getContext("2d");
        [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
        copy.drawImage(canvas, 0, 0);
        const data = copy.getImageData(0, 0, canvas.width, canvas.height).data;
        const counts = {};
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) counts[[data[i], data[i + 1], data[i + 2]]] = (counts[[data[i], data[i + 1], data[i + 2]]] ?? 0) + 1;
        const most = Object.entries(counts).sort((a, b) => b[1] - a[1])[0]?.[0].split(",").map(Number);
        const style = getComputedStyle(document.documentElement);
        const rgb = (name) => [1, 3, 5].map((at) => parseInt(style.getPropertyValue(name).trim().slice(at, at + 2), 16));
        return most && Math.min(...["--reserved", "--ground", "--panel"].map((name) => Math.hypot(...rgb(name).map((value, at) => value - most[at]))));
    };
    await pageRests(page);
    const apart = await page.evaluate(faded);
    if (apart !== null) expect(apart > 40, `${theme}: what the search does not find on the map is neither free nor ground: ${apart}`);
    await go(page, { view: "state", search: "" });
}

for (const dark of [false, true]) {
    const theme = dark ? "dark" : "light";
    const { browser, page, errors } = await openPage(html, { dark, init: watch });
    await openFiles(page, [made]);
    for (const axis of ["event", "time"])
        for (const view of ["timeline", "state", "segments", "map", "peak", "leaks", "compare"]) {
            await page.evaluate(() => window.painted.clear());
            await go(page, { view, axis, event: 3 });
            const paints = view !== "leaks" && view !== "compare";
            if (paints) await page.waitForFunction(() => window.painted.size > 0, null, { timeout: 60000 }); // a busy machine is slow
            await rests(page, () => window.painted.size);
            const { count, low } = await page.evaluate(lowPainted);
            equal(await page.evaluate(() => ["reserved", "active"].filter((name) => window.painted.get(name)?.under[3] < 255)), [], `${theme}, ${view}: the names of lines lie on a ground of their own, not on shapes of any colour`);
            equal(low, [], `${theme}, ${view}: painted contrast`);
            expect(count > 0 || !paints, `${theme}, ${view}: texts are painted`);
        }
    await states(page, theme);
    if (!dark) await tips(page);
    // The strip shows bytes and positions.
    const scale = () => [...document.querySelectorAll(".strip-scale .tick")].map((tick) => tick.textContent);
    await settles(page, (read) => [...document.querySelectorAll(".strip-scale .tick.height")].map((tick) => tick.textContent), null, ["32\u202fMiB"], `${theme}: how much the strip shows`);
    await go(page, { view: "timeline" });
    await settles(page, () => document.querySelectorAll(".strip-scale .tick:not(.height)").length >= 3, null, true, `${theme}: and when`);
    expect((await page.evaluate(scale)).some((text) => /^\d+$/.test(text)), `${theme}: by events: ${await page.evaluate(scale)}`);
    equal(errors, [], `${theme}: errors of the page`);
    await browser.close();
}

// Forced colours: what a colour says is still visible.
if (!isFirefox) {
    for (const dark of [false, true]) {
        const { browser, page, errors } = await openPage(html, { dark });
        await page.emulateMedia({ forcedColors: "active", colorScheme: dark ? "dark" : "light" });
        await openFiles(page, [made]);
        await go(page, { view: "state", event: 3 });
        await page.waitForSelector(".event-row[aria-selected=true]");
        await page.waitForSelector(".state-legend .is-rounding");
        const background = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
        const [allocated, rounding, ground] = await Promise.all([".state-legend .is-allocated", ".state-legend .is-rounding", "body"].map((selector) => page.evaluate(background, selector)));
        expect(allocated !== ground && rounding !== ground && allocated !== rounding, `forced colours: the legend has them: ${[allocated, rounding, ground]}`);
        for (const [chosen, other] of [['[role=tab][aria-selected="true"]', '[role=tab][aria-selected="false"]'], ['.event-row[aria-selected="true"]', '.event-row[aria-selected="false"]'], ['.switch [aria-checked="true"]', '.switch [aria-checked="false"]']])
            expect((await page.evaluate(background, chosen)) !== (await page.evaluate(background, other)), `forced colours: what is chosen can be seen: ${chosen}`);
        await page.setViewportSize({ width: 1100, height: 800 });
        equal(errors, [], "forced colours: errors of the page");
        await browser.close();
    }
}
finish();

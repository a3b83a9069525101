// Tests that the page is light: a mouse move over a chart paints only the overlay; the wheel and dragging move the existing picture, and a
// finer one follows. Counts canvas calls in the page's own thread; in Chromium prints that thread's CPU time.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isFirefox, openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, settles } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/train.json.gz");
if (!existsSync(example)) {
    console.log("no example recording here: skipped");
    process.exit(77);
}

function watch() {
    window.canvasCalls = 0;
    window.bitmaps = 0;
    for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D])
        for (const name of ["fillRect", "clearRect", "strokeRect", "stroke", "fill", "fillText", "drawImage", "putImageData"]) {
            const original = prototype[name];
            prototype[name] = function (...words) {
                window.canvasCalls++;
                return original.apply(this, words);
            };
        }
    for (const [{ prototype }, name] of [[ImageBitmapRenderingContext, "transferFromImageBitmap"], [CanvasRenderingContext2D, "drawImage"]]) {
        const original = prototype[name];
        prototype[name] = function (...words) {
            if (this.canvas.classList.contains("chart-shapes")) window.bitmaps++;
            return original.apply(this, words);
        };
    }
}
const read = (page, name) => page.evaluate((key) => window[key], name);
const transform = () => document.querySelector(".chart-shapes").style.transform;
const atRest = () => /scale\(1(, 1)?\)$/.test(document.querySelector(".chart-shapes").style.transform);

// Waits until the page has shown the picture after what was done last, however busy the machine is.
const frames = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 20)))));

// Waits until the chart is final: nothing is requested, and nothing was painted for half a second and 30 frames.
async function rests(page) {
    let [calls, since, still] = [-1, Date.now(), 0];
    while (Date.now() - since < 500 || still < 15) {
        const [now, busy] = await page.evaluate(() => [window.canvasCalls, document.querySelector(".chart-stage").hasAttribute("aria-busy")]);
        still++;
        if (now !== calls || busy) [calls, since, still] = [now, Date.now(), 0];
        await frames(page);
    }
}

async function hovering(page, box, thread) {
    await page.mouse.move(box.x + 200, box.y + box.height - 120);
    await rests(page);
    const [calls, bitmaps, before] = [await read(page, "canvasCalls"), await read(page, "bitmaps"), await thread()];
    const texts = new Set();
    const MOVES = 40;
    for (let i = 0; i < MOVES; i++) {
        await page.mouse.move(box.x + 200 + 20 * i, box.y + box.height - 120 - 7 * (i % 9));
        await frames(page);
        texts.add(await page.evaluate(() => document.querySelector(".chart-tip").textContent));
    }
    const spent = ((await thread()) - before) / MOVES;
    expect(texts.size > 3, `the tip follows the pointer: ${texts.size} texts`);
    expect((await page.evaluate(() => document.querySelector(".over-hover").getAttribute("d"))).startsWith("M"), "what the pointer is over has an outline");
    equal((await read(page, "canvasCalls")) - calls, 0, "no canvas of the page is painted for it");
    equal((await read(page, "bitmaps")) - bitmaps, 0, "nor is a picture made");
    console.log(`a move takes ${spent.toFixed(1)} ms of the main thread`);
}

async function moving(page, box, thread) {
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await rests(page);
    const [calls, before] = [await read(page, "canvasCalls"), await thread()];
    const TURNS = 10;
    const seen = new Set();
    for (let i = 0; i < TURNS; i++) {
        await page.mouse.wheel(0, -120);
        await frames(page);
        seen.add(await page.evaluate(transform));
    }
    expect(seen.size >= 3, `the picture is moved: ${seen.size} places`);
    const turned = (await read(page, "canvasCalls")) - calls;
    expect(turned < TURNS * 2 * 300, `axes and marks alone are painted, no shapes: ${turned} calls`);
    await settles(page, atRest, null, true, "a finer picture comes");
    console.log(`a turn of the wheel takes ${(((await thread()) - before) / TURNS).toFixed(1)} ms of the main thread`);
    await page.mouse.down();
    await page.mouse.move(x + 30, y, { steps: 6 });
    await frames(page);
    equal(await page.evaluate(() => /scale\(1[,)]/.test(document.querySelector(".chart-shapes").style.transform)), true, "dragging moves the picture and does not stretch it");
    await page.mouse.up();
}

for (const view of ["timeline", "segments", "map"]) {
    const { browser, page, errors } = await openPage(html, { init: watch, width: 1440, height: 900 });
    let thread = async () => 0;
    if (!isFirefox) {
        const cdp = await page.context().newCDPSession(page);
        await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
        thread = async () => 1000 * (await cdp.send("Performance.getMetrics")).metrics.find(({ name }) => name === "ThreadTime").value;
    }
    await page.evaluate(() => history.replaceState(null, "", `?canvas2d${location.hash}`)).catch(() => {}); // otherwise a GPU would paint
    await openFiles(page, [example]);
    await go(page, { view });
    await settles(page, () => Number(document.querySelector(".chart-stage")?.dataset.ready) > 0, null, true, `${view}: a picture`);
    equal(await page.evaluate(() => document.querySelector(".chart-stage").dataset.painter), "canvas2d", `${view}: what paints`);
    const box = await page.locator(".chart-top").boundingBox();
    if (view === "timeline") await hovering(page, box, thread);
    await moving(page, box, thread);
    equal(errors, [], `${view}: errors of the page`);
    await browser.close();
}
finish();

// Shared by the page's tests: their arguments, and assertions.
import { execFile, execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

// PAGE VRAM RECORDINGS: the page, the command, and the folder of recordings or "".
export const [html, vram, recordings] = process.argv.slice(2);

// Returns the recordings whose name begins with one of the numbers, or all. Ends the test as skipped if there are none.
export function recordingPaths(...numbers) {
    if (!recordings) {
        console.log("no recordings here: skipped");
        process.exit(77);
    }
    return readdirSync(recordings)
        .filter((name) => numbers.length === 0 || numbers.some((number) => name.startsWith(number)))
        .sort()
        .map((name) => join(recordings, name));
}

export function report(path) {
    return JSON.parse(execFileSync(vram, ["report", "--json", path], { maxBuffer: 1 << 28 }));
}

// Returns the command's output as data, without blocking other work.
export async function asked(...words) {
    return JSON.parse((await promisify(execFile)(vram, words, { maxBuffer: 1 << 30 })).stdout);
}

let failures = 0;

export function expect(condition, what) {
    if (condition) return;
    failures++;
    console.error(`FAILED: ${what}`);
}

export function equal(found, wanted, what) {
    expect(Object.is(found, wanted) || JSON.stringify(found) === JSON.stringify(wanted), `${what}: found ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

let links = 0;

// Changes the state in the URL's fragment as a link would, and waits until the page has read it. The page ignores unknown keys: `link`
// makes each address new, even if the page has not yet written the shown one.
export async function go(page, state) {
    const follow = (fragment) =>
        new Promise((resolve) => {
            window.addEventListener("hashchange", resolve, { once: true });
            location.hash = fragment;
        });
    await page.evaluate(follow, new URLSearchParams({ ...state, link: ++links }).toString());
}

// Waits until `read` (run in the page) returns the wanted value; fails with its last value otherwise.
export async function settles(page, read, argument, wanted, what, timeout = 60000) {
    const end = Date.now() + timeout;
    let found;
    do {
        // The element may not exist yet.
        found = await page.evaluate(read, argument).catch((error) => String(error));
        if (JSON.stringify(found) === JSON.stringify(wanted)) return;
        await page.waitForTimeout(20);
    } while (Date.now() < end);
    equal(found, wanted, what);
}

// Waits until `read` returns the same value ten times, at least a frame apart. An error, as of an element that does not exist yet, is a
// value that does not count.
export async function rests(page, read, argument) {
    let last;
    for (let same = 0; same < 10; same++) {
        const found = await page.evaluate(read, argument).then((value) => JSON.stringify([value]), () => undefined);
        if (found === undefined || found !== last) same = 0;
        last = found;
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 20))));
    }
}

// Waits until the page's texts, canvases and their labels no longer change.
export const pageRests = (page) =>
    rests(page, () => [
        document.querySelector("#app").innerText,
        document.querySelectorAll("[aria-busy]").length,
        [...document.querySelectorAll("canvas, .chart-stage")].map((one) => [one.width, one.height, JSON.stringify(one.dataset), one.getBoundingClientRect().height]),
    ]);

export function finish() {
    if (failures !== 0) console.error(`${failures} failures`);
    process.exit(failures === 0 ? 0 : 1);
}

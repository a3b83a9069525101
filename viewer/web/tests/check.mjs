// What the page's tests have in common: their arguments, and what they expect.
import { execFile, execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

// PAGE VRAM RECORDINGS: the page, the command, and the folder of recordings or "".
export const [html, vram, recordings] = process.argv.slice(2);

// The recordings whose name begins with one of the numbers; all of them without numbers. Ends the test as skipped where there are none.
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

// What the command prints, as data, while others go on.
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

// The state that the URL's fragment keeps, changed as a link would; the page has heard of it afterwards. Keys that the page does not know
// are nothing to it: `link` makes each address a new one, even where the page has not yet written the one that it shows.
export async function go(page, state) {
    const follow = (fragment) =>
        new Promise((resolve) => {
            window.addEventListener("hashchange", resolve, { once: true });
            location.hash = fragment;
        });
    await page.evaluate(follow, new URLSearchParams({ ...state, link: ++links }).toString());
}

// Waits until `read` (run in the page) gives the wanted value; what it gave last otherwise.
export async function settles(page, read, argument, wanted, what, timeout = 60000) {
    const end = Date.now() + timeout;
    let found;
    do {
        // What `read` looks at may not be there yet.
        found = await page.evaluate(read, argument).catch((error) => String(error));
        if (JSON.stringify(found) === JSON.stringify(wanted)) return;
        await page.waitForTimeout(20);
    } while (Date.now() < end);
    equal(found, wanted, what);
}

// Waits until what `read` gives has not changed at ten looks, a frame and more between two: a page under load takes as long as it takes.
export async function rests(page, read, argument) {
    let last;
    for (let same = 0; same < 10; same++) {
        const found = JSON.stringify(await page.evaluate(read, argument));
        if (found !== last) same = 0;
        last = found;
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 20))));
    }
}

// Waits until the page shows what it will show: its texts, its canvases and what it says of them do not change any more.
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

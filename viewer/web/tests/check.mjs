// What the page's tests have in common: their arguments, and what they expect.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

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

// The dictionary that a recording is.
export function snapshot(path) {
    return JSON.parse(execFileSync(vram, ["convert", path, "-o", "-", "--to", "json"], { maxBuffer: 1 << 30 }));
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

// The state that the URL's fragment keeps, changed as a link would.
export async function go(page, state) {
    await page.evaluate((fragment) => (location.hash = fragment), new URLSearchParams(state).toString());
}

// Waits until `read` (run in the page) gives the wanted value; what it gave last otherwise.
export async function settles(page, read, argument, wanted, what, timeout = 15000) {
    const end = Date.now() + timeout;
    let found;
    do {
        found = await page.evaluate(read, argument);
        if (JSON.stringify(found) === JSON.stringify(wanted)) return;
        await page.waitForTimeout(20);
    } while (Date.now() < end);
    equal(found, wanted, what);
}

export function finish() {
    if (failures !== 0) console.error(`${failures} failures`);
    process.exit(failures === 0 ? 0 : 1);
}

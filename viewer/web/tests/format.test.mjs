// Tests that the page formats sizes and shares like the commands: its functions against the text of `vram report`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { equal, finish, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const entry = fileURLToPath(new URL("../src/format.ts", import.meta.url));
const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
const { bytes, percent } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
const plain = (text) => text.replaceAll("\u202f", " ");

// Returns the command's output for a recording with these bytes at two call sites.
function printed(large, small) {
    const event = (addr, size, name) => ({ action: "alloc", addr, size, stream: 0, time_us: 1, frames: [{ name, filename: "train.py", line: 12 }] });
    const path = join(folder, "two.json");
    writeFileSync(path, JSON.stringify({ segments: [], device_traces: [[event(0x7f0000000000, large, "large"), event(0x7e0000000000, small, "small")]] }));
    return execFileSync(vram, ["report", "--by", "site", path], { encoding: "utf8" });
}

const sizes = [512, 1023, 1024, 1280, 1792, 1843, 2 ** 20 - 53, 2 ** 20 - 52, 2 ** 20 - 1, 5379194880, 7377807933, 10 * 2 ** 20 + 1, 97.25 * 2 ** 20, 97.75 * 2 ** 20, 100 * 2 ** 20, 2 ** 30 - 1, 89550068121];
for (const size of sizes) {
    const small = Math.ceil(size / 3);
    const text = printed(size, small);
    const [, largeText, largeShare] = /^ *([\d.]+ \S+) +([<\d.]+ %).*:large$/m.exec(text);
    const [, smallText, smallShare] = /^ *([\d.]+ \S+) +([<\d.]+ %).*:small$/m.exec(text);
    equal([bytes(size), bytes(small)].map(plain), [largeText, smallText], `${size} bytes and ${small}`);
    equal([percent(size, size + small), percent(small, size + small)].map(plain), [largeShare, smallShare], `shares of ${size} and ${small}`);
}
const shares = [[1, 3199], [1, 1023], [1, 999], [1, 998], [5, 11], [7, 9], [3, 5], [13, 19], [15, 17]];
for (const [small, large] of shares) {
    const [, share] = /^.*?B +([<\d.]+ %).*:small$/m.exec(printed(large * 1024, small * 1024));
    equal(plain(percent(small, small + large)), share, `${small} of ${small + large}`);
}
equal(plain(bytes(-1280)), "\u22121.2 KiB", "what shrank");
rmSync(folder, { recursive: true });
finish();

// Tests strange and hostile files: file contents are shown as text, never as markup, not even in a page made by `vram view`; files that
// cannot be opened are rejected with a message. Prints the fastest of three runs, because the machine may be busy.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, pageRests, settles, vram } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const put = (name, bytes) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
};
const MARKUP = `</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const frames = [{ name: MARKUP, filename: `/home/${MARKUP}.py`, line: 1 }];
const event = (action, i, more = {}) => ({ action, addr: 0x7f0000000000 + i * 4096, size: 4096, stream: 0, time_us: i, frames, category: MARKUP, user_metadata: MARKUP, compile_context: MARKUP, ...more });
const block = { address: 0x7f0000000000, size: 4096, requested_size: 4000, state: "active_allocated", frames };
const hostile = {
    segments: [{ device: 0, address: 0x7f0000000000, total_size: 2097152, allocated_size: 4096, active_size: 4096, stream: 0, segment_type: "large", blocks: [block, { address: 0x7f0000001000, size: 2093056, state: "inactive", frames: [] }], frames }],
    device_traces: [[event("alloc", 0), event("alloc", 1), event("free_requested", 1), event("free_completed", 1), event("oom", 2, { device_free: 5 }), event(MARKUP, 3)]],
    allocator_settings: { [MARKUP]: MARKUP },
    external_annotations: [{ name: MARKUP, stage: "START", device: 0, time_us: 1 }, { name: MARKUP, stage: "END", device: 0, time_us: 2 }],
};
const hostilePath = put("x<img src=x onerror=window.hacked=1>.json", JSON.stringify(hostile));

// A pickle of protocol 5 with one list of n integers of nine bytes, as C++ writes it: no batches.
function oneList(n) {
    const item = Buffer.from([0x8a, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    return Buffer.concat([Buffer.from([0x80, 5, 0x7d, 0x28, 0x8c, 8]), Buffer.from("segments"), Buffer.from([0x5d, 0x8c, 13]), Buffer.from("device_traces"), Buffer.from([0x5d, 0x8c, 5]), Buffer.from("extra"), Buffer.from([0x5d, 0x28]), ...Array.from({ length: n }, () => item), Buffer.from([0x65, 0x75, 0x2e])]);
}

const { browser, page, requests, errors } = await openPage(html);
const opened = () => document.querySelectorAll("select.files option").length;
const message = () => document.querySelector(".message").textContent;

async function everyView(target, what) {
    for (const id of await target.$$eval('[role="tab"]:not([hidden])', (all) => all.map((tab) => tab.id.replace("tab-", "")))) {
        await go(target, { view: id, pick: "b7f0000000000_0", event: 1, search: "onerror" });
        await pageRests(target);
        expect(await target.evaluate(() => window.hacked === undefined && document.querySelectorAll("img").length === 0), `${what}: ${id} shows text`);
    }
    await target.locator(".chip.grave").click();
    const shown = await target.evaluate(() => document.querySelector(".details").textContent);
    expect(shown.includes("<img src=x onerror="), `${what}: the details show the frame as it is: ${shown.slice(0, 200)}`);
}

// Gives a file to the page; returns how many are open, the message, and the time.
async function give(path) {
    const begin = Date.now();
    const before = await page.evaluate(opened);
    await page.locator('input[type="file"]').setInputFiles(path);
    await page.waitForFunction((count) => document.querySelector(".loading").hidden && (document.querySelectorAll("select.files option").length > count || !document.querySelector(".message").hidden), before);
    return { opened: (await page.evaluate(opened)) - before, message: await page.evaluate(message), ms: Date.now() - begin };
}

const refusals = {
    "empty.pickle": [Buffer.alloc(0), /empty/],
    "noise.pickle": [Buffer.from("GIF89a not a recording"), /not a recording/],
    "cut.pickle": [oneList(1000).subarray(0, 5000), /ends|cut|truncated/],
    "cut.json": [readFileSync(hostilePath).subarray(0, 300), /ends|cut|end of/],
    "cut.json.gz": [gzipSync(readFileSync(hostilePath)).subarray(0, 100), /gzip/],
    "calls.pickle": [Buffer.from("\x80\x04cos\nsystem\n(S'true'\ntR.", "latin1"), /./],
};
await give(hostilePath);
for (const [name, [bytes, words]] of Object.entries(refusals)) {
    const result = await give(put(name, bytes));
    expect(result.opened === 0 && words.test(result.message) && result.message.startsWith(`${name}: `), `${name} is rejected with a message:  ${JSON.stringify(result)}`);
    const again = [await give(join(folder, name)), await give(join(folder, name))];
    console.log(`${name}: refused after ${Math.min(result.ms, ...again.map((one) => one.ms))} ms`);
}
const list = await give(put("list.pickle", oneList(3_000_000)));
console.log(`list.pickle: opened after ${list.ms} ms`);
equal([list.opened, list.message], [1, ""], "a pickle of protocol 5 with one list of 3,000,000 integers of nine bytes opens");
await go(page, { rec: 0 });
await everyView(page, "a file");
equal(requests, [], "requests to the network");
equal(errors, [], "errors of the page");
await browser.close();

const made = join(folder, "made.html");
execFileSync(vram, ["view", hostilePath, "-o", made, "--no-open"]);
const second = await openPage(made);
await settles(second.page, opened, null, 1, "the page made by vram view opens its recording");
equal(await second.page.evaluate(() => document.querySelector("select.files option").textContent), "x<img src=x onerror=window.hacked=1>.json", "its name is text");
await everyView(second.page, "a page made by vram view");
// Anything that a script on the page tries to load is refused.
const tried = await second.page.evaluate(() => fetch("https://example.com/").then(() => "loaded", () => "refused"));
equal(tried, "refused", "the policy of the page");
await second.browser.close();

// An old browser, or one with disabled features, gets a message, not an empty page.
for (const name of ["DecompressionStream", "WebAssembly"]) {
    const old = await openPage(html, { init: `delete window.${name}` });
    await settles(old.page, (what) => document.body.innerText.includes(`no ${what}`), name, true, `without ${name} the page says so`);
    await old.browser.close();
}
finish();

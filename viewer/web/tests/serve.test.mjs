// Tests the page of `vram view --serve`: the command answers, with the report's numbers, and a message appears when the command has ended.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPage } from "./browser.mjs";
import { equal, finish, pageRests, report, settles, vram } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/train.json.gz");
if (!existsSync(example)) {
    console.log("no example recording here: skipped");
    process.exit(77);
}
const server = spawn(vram, ["view", "--serve", "--no-open", example]);
process.on("exit", () => server.kill());
const address = await new Promise((resolve, reject) => {
    let told = "";
    server.stdout.on("data", (text) => {
        const found = /http:\S+/.exec((told += text));
        if (found) resolve(found[0]);
    });
    server.on("exit", (code) => reject(new Error(`vram view ended with ${code}`)));
});
const { browser, page, requests, errors } = await openPage(address, { offline: false });
await settles(page, () => document.querySelector(".chart-stage")?.dataset.largest, null, String(report(example).devices[0].allocated.peak_bytes), "the largest total of the timeline");
for (const [id, key] of await page.$$eval('[role="tab"]:not([hidden])', (all) => all.map((tab) => [tab.id, /\((.)\)$/.exec(tab.title)?.[1]]))) {
    await page.keyboard.press(key);
    await settles(page, () => document.querySelector('[role="tab"][aria-selected="true"]').id, null, id, `the key ${key}`);
    await pageRests(page);
}
equal(await page.evaluate(() => document.querySelector(".message").textContent), "", "nothing is wrong");
equal(await page.getByRole("button", { name: "Open" }).count(), 0, "files are given to the server, not to the page");
equal(requests, [], "requests to others");
equal(errors, [], "errors of the page");
const ended = new Promise((resolve) => server.once("exit", resolve));
server.kill("SIGINT");
await ended;
await page.keyboard.press("1");
await page.keyboard.press("w");
await settles(page, () => document.querySelector(".message").textContent, null, "the server does not answer: is `vram view --serve` still running?", "a message when the server has ended");
await browser.close();
finish();

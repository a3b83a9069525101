// Tests the page in a frame of another page, as in notebooks: its state is in its own address, not the outer page's.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPage } from "./browser.mjs";
import { equal, finish, html, settles } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const frames = [{ name: "step", filename: "/home/me/train.py", line: 12 }];
const events = Array.from({ length: 9 }, (_, i) => ({ action: "alloc", addr: 0x7f0000000000 + i * 4096, size: 4096, stream: 0, time_us: i, frames }));
writeFileSync(join(folder, "few.json"), JSON.stringify({ segments: [], device_traces: [events] }));
writeFileSync(join(folder, "around.html"), '<!doctype html><iframe style="width: 1100px; height: 700px"></iframe>');

const { browser, page, errors } = await openPage(join(folder, "around.html"));
await page.evaluate((text) => void (document.querySelector("iframe").srcdoc = text), readFileSync(html, "utf8"));
const inside = page.frameLocator("iframe");
await inside.locator('input[type="file"]').setInputFiles(join(folder, "few.json"));
await inside.locator("select.files option").first().waitFor({ state: "attached" });
for (const view of ["peak", "state"]) {
    await inside.locator(`#tab-${view}`).click();
    await settles(page, (name) => document.querySelector("iframe").contentWindow.location.hash.includes(`view=${name}`), view, true, `${view}: the state stands in the address`);
}
equal(await page.evaluate(() => location.hash), "", "the page around it keeps its address");
equal(errors, [], "errors of the page");
await browser.close();
rmSync(folder, { recursive: true });
finish();

// Tests recordings with a known cause of their out-of-memory error (tests/explain/causes.py: handmade, from real PyTorch on the simulator,
// from a real GPU): the sentence above every view names the cause and the holder of the memory; a long one is complete in its title.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordings } from "./check.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const script = fileURLToPath(new URL("../../../tests/explain/causes.py", import.meta.url));
const run = spawnSync("python3", [script, "--make", folder, ...(recordings ? [recordings] : [])], { encoding: "utf8" });
if (run.status !== 0) {
    console.log(`no recordings with known causes here (${run.stderr.trim().split("\n").at(-1)}): skipped`);
    process.exit(77);
}
const causes = JSON.parse(readFileSync(join(folder, "causes.json"), "utf8"));
const { browser, page, errors } = await openPage(html);
await openFiles(page, causes.map(({ path }) => path));
for (const [rec, { name, says, holder }] of causes.entries()) {
    await go(page, { rec });
    const told = async () => (await page.evaluate(() => [...document.querySelectorAll(".trouble, .trouble [title], .range-facts, .range-facts [title]")].map((one) => `${one.textContent} ${one.title}`).join(" ")));
    const right = (text) => new RegExp(says, "i").test(text) && text.includes(holder);
    let text = "";
    for (let tries = 0; tries < 200 && !right(text); tries++) {
        text = await told();
        await page.waitForTimeout(50);
    }
    expect(right(text), `${name}: ${says} and ${holder} in ${text.slice(0, 600)}`);
}
console.log(`${causes.length} recordings with a known cause`);
equal(errors, [], "errors of the page");
await browser.close();
rmSync(folder, { recursive: true });
finish();

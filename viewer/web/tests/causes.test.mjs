// Tests recordings with a known cause of their out-of-memory error (tests/explain/causes.py): the view's first screen names it, and the
// holder of the memory.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, go, html, recordings } from "./check.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
execFileSync("python3", [join(here, "../../../tests/explain/causes.py"), "--make", folder, ...(recordings ? [recordings] : [])]);
const causes = JSON.parse(readFileSync(join(folder, "causes.json"), "utf8"));
expect(causes.length >= 20, `${causes.length} recordings only`);

const { browser, page, errors } = await openPage(html, { fragment: "#view=oom" });
for (const { name, path, cause, says, holder } of causes) {
    await page.reload();
    await openFiles(page, [path]);
    await go(page, { view: "oom" });
    const elsewhere = page.getByRole("button", { name: /^Show device/ });
    const card = page.locator(".oom-card[open]");
    await card.or(elsewhere).first().waitFor({ timeout: 60000 });
    if (await elsewhere.count()) await elsewhere.first().click();
    await card.waitFor({ timeout: 60000 });
    if (cause) equal(await card.getAttribute("data-cause"), cause, `${name}: cause`);
    const why = (await card.locator(".oom-why").textContent()).replace(/\s+/g, " ");
    expect(new RegExp(says, "i").test(why), `${name}: '${why}'`);
    const text = (await card.textContent()).replace(/\s+/g, " ");
    expect(text.includes(holder), `${name}: ${holder} is not named`);
    const box = await card.locator(".oom-why").boundingBox();
    expect(box.y + box.height <= 800, `${name}: the cause is below the first screen (${box.y})`);
}
equal(errors, [], "errors");
await browser.close();
rmSync(folder, { recursive: true });
finish();

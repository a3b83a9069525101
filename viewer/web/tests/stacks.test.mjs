// Tests that the user's line comes first: the call site on top of a stack, other frames folded there and in the tree, the whole stack at
// the pointer, unnamed machine code, movable borders.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { asked, equal, expect, finish, go, html, settles, vram } from "./check.mjs";
import { address, loop } from "./loop.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const put = (name, value) => {
    writeFileSync(join(folder, name), JSON.stringify(value));
    return join(folder, name);
};
const path = put("loop.json", loop().recording);

const { browser, page, errors } = await openPage(html, { width: 1440, height: 900 });
await openFiles(page, [path]);
await go(page, { pick: `b${address(100).toString(16)}_0` });
await page.waitForSelector(".details .stack");
const rows = () => [...document.querySelectorAll(".details .stack > li")].map((row) => [row.className, (row.querySelector(".frame-name, summary")?.textContent ?? "").trim()]);
await settles(page, () => document.querySelector(".details .frame-site .frame-place")?.textContent, null, "me/model.py:20", "the program's line is on top of the stack");
const list = await page.evaluate(rows);
equal(list[0], ["frame-site", "forward"], "as the call site");
equal(list[1][0], "fold", "what is further inside is folded");
expect(["frames: ", "unwinding", "allocator", "PyTorch", "interpreter"].every((word) => list[1][1].includes(word)), `and told by what it is: ${list[1][1]}`);
equal(list.filter(([kind]) => kind === "").map(([, name]) => name), ["forward", "main"], "the program's own frames are shown");
await page.locator(".details .fold summary").first().click();
expect(await page.getByText("at::_ops::addmm::call", { exact: true }).first().isVisible(), "a fold opens; C++ names keep the operator");

// The same list in the tree of call stacks, the command and the flame graph.
await go(page, { view: "peak" });
await page.waitForSelector(".peak-view tbody tr");
const tree = async () => JSON.stringify(await page.evaluate(() => 0)) && (await page.locator(".peak-view .flame canvas").count()) === 1;
expect(await tree(), "the tree is there");
const { groups } = await asked("report", "--site", "--json", path);
const shown = await page.evaluate(() => [...document.querySelectorAll(".peak-view tbody tr .site")].map((site) => site.title));
equal(shown, groups.map((group) => group.name), "the groups of the page are the command's");
expect(shown.some((name) => name === "/home/me/model.py:20:forward") && shown.some((name) => name.includes("AddmmBackward0::apply") || name.includes("model.py:5")), "lines of the program, and what tells of the backward pass");
const skipped = await asked("report", "--site", "--json", "--skip", "model\\.py", path);
expect(skipped.groups.every((group) => !group.name.includes("model.py")) && skipped.groups.some((group) => group.name.includes("train.py:9:main")), "--skip names the caller");

// Likewise on the page: in Settings, in every view, in the link, and in a page made by the command.
await go(page, { view: "settings" });
const field = page.locator('input[aria-label="Frames that are never call sites"]');
await field.fill("mod(");
await field.press("Enter");
await settles(page, () => document.querySelector('input[aria-label="Frames that are never call sites"]').getAttribute("aria-invalid"), null, "true", "what is no expression is told");
await field.fill("model\\.py");
await field.press("Enter");
await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("skip"), null, "model\\.py", "what is skipped is in the link");
const names = () => [...document.querySelectorAll(".peak-view tbody tr .site")].map((site) => site.title);
await page.keyboard.press("Escape");
await page.locator("main").focus();
await page.keyboard.press("5");
await settles(page, names, null, skipped.groups.map((group) => group.name), "the groups are those of the command");
await go(page, { view: "timeline", pick: `b${address(100).toString(16)}_0`, skip: "model\\.py" });
await settles(page, () => document.querySelector(".details .frame-site .frame-place")?.textContent, null, "me/train.py:9", "and the stack has the caller on top");
await go(page, { view: "peak" });
await settles(page, names, null, groups.map((group) => group.name), "without it they are as before");
const told = join(folder, "told.html");
execFileSync(vram, ["view", "--skip", "model\\.py", "--no-open", "-o", told, path]);
const inside = await openPage(told, { fragment: "#view=peak" });
await settles(inside.page, names, null, skipped.groups.map((group) => group.name), "`vram view --skip` puts it into the page");
equal(inside.errors, [], "errors of that page");
await inside.browser.close();

// The pointer's tip: the site, then its callers.
await go(page, { view: "timeline" });
await page.waitForSelector(".chart-stage[data-ready]");
const box = await page.locator(".chart-stage").boundingBox();
const inner = JSON.parse(await page.evaluate(() => document.querySelector(".chart-stage").dataset.box));
await page.mouse.move(box.x + inner.left + inner.width * 0.14, box.y + inner.top + inner.height * 0.55);
await page.mouse.move(box.x + inner.left + inner.width * 0.141, box.y + inner.top + inner.height * 0.55);
await page.waitForSelector(".chart-tip .tip-stack");
const tip = await page.evaluate(() => [...document.querySelectorAll(".chart-tip .tip-stack div")].map((line) => line.textContent));
expect(tip.length >= 3 && tip[0].startsWith("\u2192 ") && tip.some((line) => line.includes("train.py:9")) && tip.some((line) => /^\(\d+ frames: /.test(line)), `the whole stack beside the pointer: ${tip.join(" | ")}`);

// Borders are moved by keys and by the mouse, and remembered.
await go(page, { view: "timeline", pick: `b${address(100).toString(16)}_0` });
await page.waitForSelector(".details:not([hidden])");
const wide = () => document.querySelector(".details").getBoundingClientRect().width;
const before = await page.evaluate(wide);
await page.locator(".splitter.upright").focus();
await page.keyboard.press("ArrowLeft");
await settles(page, (was) => Math.round(document.querySelector(".details").getBoundingClientRect().width - was), before, 20, "a key makes the details wider");
const edge = await page.locator(".splitter.upright").boundingBox();
await page.mouse.move(edge.x, edge.y + 200);
await page.mouse.down();
await page.mouse.move(edge.x - 100, edge.y + 200, { steps: 4 });
await page.mouse.up();
expect(Math.abs((await page.evaluate(wide)) - before - 120) < 6, "and so does dragging");
await go(page, { view: "peak" });
await page.waitForSelector(".splitter.level");
const table = () => document.querySelector(".peak-view .table-scroll").clientHeight;
const high = await page.evaluate(table);
await page.locator(".splitter.level").focus();
for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowUp");
expect((await page.evaluate(table)) < high - 20, "the table of the peak gives room to the stacks");
equal(errors, [], "errors of the page");
await browser.close();

// Unnamed machine code is shown as its library and offset.
const code = (filename, name) => ({ filename, line: 0, name });
const binary = { segments: [], device_traces: [[{ action: "alloc", addr: address(0), size: 4096, stream: 0, time_us: 1, frames: [code("/l/libcudart.so.12", "0x10"), code("/opt/me/solver", "0x38b00"), code("/opt/me/solver", "0x99")] }]] };
const second = await openPage(html);
await openFiles(second.page, [put("binary.json", binary)]);
await go(second.page, { view: "peak" });
await settles(second.page, () => document.querySelector(".peak-view tbody .site-title")?.textContent, null, "solver+0x38b00", "the site of a program without names");
await go(second.page, { view: "timeline", pick: `b${address(0).toString(16)}_0` });
await settles(second.page, () => document.querySelector(".details .frame-site .frame-name")?.textContent, null, "solver+0x38b00", "and in its stack");
equal(second.errors, [], "errors of the second page");
await second.browser.close();
rmSync(folder, { recursive: true });
finish();

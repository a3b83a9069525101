// Tests moments and ranges: pins with notes in the link, a recording compared with itself, one step with its passes, a search's highlights
// in tables, pools as envelopes, roles as a column.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { asked, equal, expect, finish, go, html, rests, settles } from "./check.mjs";
import { loop, MIB } from "./loop.mjs";

const folder = mkdtempSync(join(tmpdir(), "vram-test-"));
const made = loop({ steps: 4 });
const path = join(folder, "loop.json");
writeFileSync(path, JSON.stringify(made.recording));

const { browser, page, errors } = await openPage(html, { width: 1440, height: 900 });
await openFiles(page, [path]);
const hash = (key) => new URLSearchParams(location.hash.slice(1)).get(key);

// The first screen names who holds the peak, with a link to what would lower it.
await page.waitForSelector(".range-facts [data-role]");
const wanted = await asked("report", "--by", "role", "--json", path);
equal(await page.evaluate(() => document.querySelector(".range-facts [data-role]").dataset.role), wanted.groups[0].name, "the role that holds most");
equal(await page.evaluate(() => Number(document.querySelector(".range-facts [data-fact='peak']").dataset.bytes)), wanted.bytes, "of the peak");
await page.locator(".range-facts").getByRole("button", { name: "what would lower it" }).click();
await page.waitForSelector(".oom-demand");
expect(/\d MiB /.test(await page.locator(".oom-demand > p").first().textContent()), "what holds it, in words");
expect(await page.locator(".oom-remedies li").count() > 0, "what would lower it");
expect(!/too much|which fits/.test(await page.locator(".oom-remedies").textContent()), "where nothing had to fit nothing is said to fit or not");
await go(page, {});

// A pin: the chosen event with a note, in the link, on the strip and on the charts.
await page.locator(".facts .jump").click();
await page.waitForSelector(".facts .pin-it");
await page.keyboard.press("b");
await page.waitForSelector(".pins:not([hidden])");
await page.keyboard.type("the peak; a 50 % one");
await page.keyboard.press("Enter");
await settles(page, () => document.querySelector(".pin .pin-name")?.textContent, null, "the peak; a 50 % one", "the pin has its note");
await settles(page, (key) => (new URLSearchParams(location.hash.slice(1)).get(key) ?? "").startsWith("0.0."), "pins", true, "it is in the link");
equal(await page.locator(".strip-flags .pin-flag").count(), 1, "it is on the strip");
const peak = await page.evaluate(() => Number(document.querySelector(".pin").dataset.event));
await go(page, { pins: await page.evaluate(hash, "pins"), event: 3 });
await page.getByRole("button", { name: "the peak; a 50 % one", exact: true }).click();
await settles(page, hash, "event", String(peak), "and leads back to its event");
await page.getByRole("button", { name: "Remove the pin" }).click();
await settles(page, () => document.querySelectorAll(".pin").length, null, 0, "it can be removed");

// With one recording, Compare offers its start and peak, its peak and end, or two of its steps, and marks both moments.
await go(page, { view: "compare" });
const sides = () => ["A", "B"].map((side) => Number(document.querySelector(`.compare-facts [data-side="${side}"]`)?.dataset.event));
await settles(page, sides, null, [-1, peak], "the beginning and the peak, without a click");
const marked = () => JSON.parse(document.querySelector(".compare-curve canvas").dataset.moments).map(({ letter }) => letter).join("");
await settles(page, marked, null, "AB", "both are marked on the curve");
await page.locator('select[aria-label="Compare at"]').selectOption("end");
await settles(page, sides, null, [peak, made.events.length - 1], "the peak and the end");
await page.locator('select[aria-label="Compare at"]').selectOption("step");
await page.locator('input[aria-label="Step"]').fill("3");
await page.keyboard.press("Tab");
const inStep = (event, step) => event >= made.starts[step - 1] && (step === 4 || event < made.starts[step]);
await settles(page, ([one, three]) => {
    const [a, b] = ["A", "B"].map((side) => Number(document.querySelector(`.compare-facts [data-side="${side}"]`)?.dataset.event));
    return a >= one[0] && a < one[1] && b >= three[0] && b < three[1];
}, [[made.starts[0], made.starts[1]], [made.starts[2], made.starts[3]]], true, "two of its steps");
expect(inStep((await page.evaluate(sides))[1], 3), "the third is the third");

// One step: the passes in order, a lane's peak, and its allocations.
await go(page, { view: "step", step: 1 });
await settles(page, () => document.querySelector(".step-view").dataset.passes, null, "forward backward optimizer", "the passes of a step");
await page.locator('select[aria-label="A lane per"]').selectOption("role");
const lane = (name) => {
    const row = [...document.querySelectorAll(".step-lane")].find((one) => one.querySelector(".step-name").textContent.trim() === name);
    return row && [Number(row.querySelector("[data-bytes]").dataset.bytes), row.querySelector(".step-numbers span:last-child").textContent];
};
await settles(page, lane, "activations", [4 * 8 * MIB, "32.0\u202fMiB"], "activations: all layers at once, and made once");
await settles(page, (name) => document.querySelectorAll(".step-lane").length >= 4, null, true, "a lane per role");
const { groups } = await asked("report", "--by", "role", "--at", String(peak), "--json", path);
expect(groups.some((group) => group.name === "activations" && group.bytes === 32 * MIB), "as the command says");
await page.keyboard.press("Escape");
await page.locator("main").focus();
await page.keyboard.press("]");
await settles(page, hash, "step", "2", "] goes to the next step");
await page.getByRole("button", { name: "Show it in the timeline" }).click();
await settles(page, hash, "from", String(made.starts[1]), "and the timeline shows it");

// The tables highlight groups that contain matches.
await go(page, { view: "peak", by: "role" });
await page.locator(".peak-view select[aria-label='Group by']").selectOption("role");
await page.locator(".search input").fill("model.py:21");
await settles(page, () => [...document.querySelectorAll(".peak-view tr.found-row .site-title")].map((cell) => cell.textContent), null, ["activations"], "the role that holds what was found");
expect((await page.locator(".peak-view .table-rest").textContent()).startsWith("1 of "), "and how many rows");
await page.locator(".peak-view select[aria-label='Group by']").selectOption("site");
await settles(page, () => [...document.querySelectorAll(".peak-view tr.found-row .site")].map((cell) => cell.title), null, ["/home/me/model.py:21:forward"], "the site");
// Each site has its role in the next column.
const roles = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".peak-view tbody tr")].map((row) => [row.querySelector(".site").title, row.querySelector(".role-cell")?.textContent])));
equal([roles["/home/me/model.py:20:forward"], roles["/home/me/model.py:5:__init__"]], ["activations", "parameters"], "roles beside the sites");
await go(page, { view: "leaks", search: "model.py:21" });
await settles(page, () => [...document.querySelectorAll(".leaks-view tr.found-row .site")].map((cell) => cell.title).filter((name, i, all) => all.indexOf(name) === i), null, ["/home/me/model.py:21:forward"], "marked among temporary allocations");

// Likewise in the tables of Compare and the lanes of a step.
await go(page, { view: "compare", search: "model.py:21" });
const marks = (selector) => [...document.querySelectorAll(selector)].map((cell) => cell.title);
await settles(page, marks, ".compare-view tr.found-row .site", ["/home/me/model.py:21:forward"], "marked among the differences");
await go(page, { view: "compare" });
await settles(page, marks, ".compare-view tr.found-row .site", [], "and not without a search");
await go(page, { view: "step", step: 1, search: "model.py:21" });
await page.locator('select[aria-label="A lane per"]').selectOption("site");
await settles(page, marks, ".found-lane .step-name", ["/home/me/model.py:21:forward"], "and the lane of it");

// A pool as its envelope: reserved, in use, free.
await go(page, { view: "segments" });
await page.waitForSelector(".chart-stage[data-ready]");
expect(await page.getByText("in use (below), free (above)").first().isVisible(), "the line of what is in use has a name");
const box = await page.locator(".segments-view .chart-stage, .chart-stage").first().boundingBox();
const inner = JSON.parse(await page.evaluate(() => [...document.querySelectorAll(".chart-stage")].find((stage) => stage.clientWidth > 0).dataset.box));
let tip = "";
for (let share = 0.95; share > 0.05 && !/64\.0\u202fMiB held, 16\.0\u202fMiB in use, 48\.0\u202fMiB free/.test(tip); share -= 0.06) {
    await page.mouse.move(box.x + inner.left + inner.width * 0.5, box.y + inner.top + inner.height * share);
    await rests(page, () => document.querySelector(".chart-tip:not([hidden])")?.textContent);
    tip = await page.evaluate(() => [...document.querySelectorAll(".chart-tip:not([hidden])")].map((one) => one.textContent).join(" "));
}
expect(/private pool \(0, 1\).*64\.0\u202fMiB held, 16\.0\u202fMiB in use, 48\.0\u202fMiB free/.test(tip), `a private pool's envelope: ${tip}`);
equal(errors, [], "errors of the page");
await browser.close();
rmSync(folder, { recursive: true });
finish();

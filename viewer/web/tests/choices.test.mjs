// Tests choices: roles as colouring and table, the peak as one bar, back and forward, everything in the link, and the same colours at every
// load. Tests the search: its count at the peak, its next match, its errors, and C++ names that keep the operator.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage, saved } from "./browser.mjs";
import { asked, equal, expect, finish, go, html, pageRests, settles } from "./check.mjs";

const example = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings/oom.pickle.gz");
const state = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const legend = () => [...document.querySelectorAll(".chart-legend button")].map((button) => [button.title, button.querySelector(".swatch").style.background]);
const ready = (page) => settles(page, () => Number(document.querySelector(".chart-stage")?.dataset.ready) > 0 && document.querySelectorAll(".chart-legend button").length > 0, null, true, "a picture");

async function roles(page) {
    for (const by of ["role", "module"]) {
        const wanted = (await asked("report", "--by", by, "--json", "--top", "5000", example)).groups.map(({ name, bytes }) => [name, bytes]);
        await go(page, { view: "peak" });
        await page.locator('.peak-view select[aria-label="Group by"]').selectOption(by);
        const table = () => [...document.querySelectorAll('table[aria-label="Groups"] tbody .site')].map((cell) => cell.title);
        await settles(page, table, null, wanted.map(([name]) => name), `groups by ${by}`);
        const bar = () => [...document.querySelectorAll(".held-bar button")].filter((part) => !part.disabled).map((part) => Number(part.dataset.bytes));
        await settles(page, bar, null, wanted.slice(0, 24).map(([, bytes]) => bytes), `the bar by ${by}`);
        const wide = await page.evaluate(() => [...document.querySelectorAll(".held-bar button")].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / document.querySelector(".held-bar").getBoundingClientRect().width);
        expect(wide > 0.9 && wide <= 1.001, `the bar by ${by} is as wide as it can be: ${wide}`);
    }
    await go(page, { view: "timeline", by: "role" });
    const known = (await asked("report", "--by", "role", "--json", example)).totals.map(({ name }) => name);
    await settles(page, (names) => [...document.querySelectorAll(".chart-legend button")].length > 0 && [...document.querySelectorAll(".chart-legend button")].every((button) => names.includes(button.title)), known, true, "the timeline by role");
}

async function back(page) {
    await go(page, {});
    await pageRests(page);
    await page.keyboard.press("5");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("view"), null, "peak", "a view is in the link");
    await page.keyboard.press("4");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("view"), null, "map", "another view");
    await page.evaluate(() => history.back());
    await settles(page, () => document.querySelector('[role=tab][aria-selected="true"]').id, null, "tab-peak", "back");
    await page.evaluate(() => history.back());
    await settles(page, () => document.querySelector('[role=tab][aria-selected="true"]').id, null, "tab-timeline", "back again");
    await page.evaluate(() => history.forward());
    await settles(page, () => document.querySelector('[role=tab][aria-selected="true"]').id, null, "tab-peak", "forward");
    await page.keyboard.press("1");
    await ready(page);
    const name = await page.evaluate(() => document.querySelector(".chart-legend button").title);
    await page.locator(".chart-legend button").first().click();
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("legend"), null, name, "the legend's choice is in the link");
    equal(await page.evaluate(() => document.querySelector(".chart-legend button").getAttribute("aria-pressed")), "true", "and shown");
    await page.keyboard.press("Escape");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("legend"), null, null, "Esc clears it");
}

async function searching(page) {
    await go(page, { view: "timeline" });
    const input = page.locator(".search input");
    await input.fill("serve_sim");
    await settles(page, () => /at the peak$/.test(document.querySelector(".search .found").textContent), null, true, "what of it is live at the peak");
    await input.press("Enter");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).has("pick"), null, true, "Enter goes to the first");
    const first = (await state(page)).pick;
    await input.press("Enter");
    await settles(page, (before) => ![null, before].includes(new URLSearchParams(location.hash.slice(1)).get("pick")), first, true, "Enter goes to the next");
    await input.press("Shift+Enter");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("pick"), null, first, "and Shift+Enter back");
    await page.getByRole("button", { name: "Next match" }).click();
    await settles(page, (before) => ![null, before].includes(new URLSearchParams(location.hash.slice(1)).get("pick")), first, true, "a button goes to the next");
    await page.getByRole("button", { name: "Previous match" }).click();
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("pick"), null, first, "and one back");
    await go(page, { view: "timeline", search: "a(b", regex: "true" });
    await settles(page, () => !document.querySelector(".message").hidden && /^Search: .{12}/.test(document.querySelector(".message").textContent), null, true, "an error in full");
    await go(page, { view: "timeline" });
    await settles(page, () => document.querySelector(".message").hidden, null, true, "and gone with it");
}

// The bytes that a window allocated and freed equal the list of events.
async function range(page) {
    const [from, to] = [4000, 9000];
    const { trace } = await asked("report", "--list", "trace", "--json", example);
    let [made, freed] = [0, 0];
    const live = new Map();
    trace.forEach((event, i) => {
        const inside = i >= from && i < to;
        if (event.action === "alloc") {
            live.set(event.address, event.bytes);
            if (inside) made += event.bytes;
        } else if (event.action === "free_requested" && live.has(event.address)) {
            if (inside) freed += live.get(event.address);
            live.delete(event.address);
        }
    });
    await go(page, { view: "timeline", from, to });
    const told = () => Object.fromEntries([...document.querySelectorAll(".range-facts:not([hidden]) [data-fact]")].map((fact) => [fact.dataset.fact, Number(fact.dataset.bytes)]).filter(([name]) => name !== "peak"));
    await settles(page, told, null, { change: made - freed, allocated: made, freed }, "what the window made and freed");
    expect((await page.locator(".range-facts .link").count()) > 0, "and who made most");
    await go(page, { view: "timeline" });
    await settles(page, () => document.querySelector(".range-facts:not(.stale) [data-fact='peak'] ~ [data-lead]")?.textContent, null, "what holds it", "of the whole history who holds its peak");
}

async function card(page) {
    await go(page, { view: "oom" });
    const box = page.locator(".oom-card").first();
    await box.locator(".oom-stack summary").click();
    await settles(page, () => document.querySelectorAll(".oom-stack .stack li").length > 0, null, true, "the request's own stack");
    const [wanted] = Object.values((await asked("report", "--json", example)).devices).filter((device) => device.oom_causes.length > 0).map((device) => device.oom_causes.at(-1));
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (window.copied = text) }, configurable: true }));
    await box.getByRole("button", { name: "Copy as text" }).click();
    const text = await page.evaluate(() => window.copied);
    expect(text.startsWith("### ") && text.includes(wanted.holders[0].site) && text.toLowerCase().includes(wanted.text.slice(0, 30).toLowerCase()), `the card as text: ${text}`);
    await box.getByRole("button", { name: wanted.holders[0].site, exact: true }).first().click();
    await settles(page, () => { const { view, search, event } = Object.fromEntries(new URLSearchParams(location.hash.slice(1))); return [view, search, event]; }, null, ["state", wanted.holders[0].site, String(wanted.index)], "a site leads to its blocks at that moment");
}

async function sources(page) {
    await go(page, { view: "settings" });
    const field = page.locator('input[aria-label="Open sources with"]');
    await field.fill("javascript:alert({file})");
    await field.press("Enter");
    await field.blur();
    await settles(page, () => document.querySelector('input[aria-label="Open sources with"]').hasAttribute("aria-invalid"), null, true, "an address that runs code is refused");
    await field.fill("vscode://file/{file}:{line}");
    await field.press("Enter");
    await settles(page, () => document.querySelector(".settings-view").textContent.includes("Source lines in call stacks are links now."), null, true, "an address with {file} and {line} is taken");
    await go(page, { view: "oom" });
    await page.reload();
    await openFiles(page, [example]);
    await page.locator(".oom-stack summary").first().click();
    await settles(page, () => document.querySelector(".oom-stack a.frame-place")?.getAttribute("href").startsWith("vscode://file/examples/serve_sim.c:"), null, true, "a place is a link");
}

// A page saved by the page contains the recording, and is read by the command and by the page itself.
async function pages(page) {
    await go(page, { view: "timeline" });
    const path = join(mkdtempSync(join(tmpdir(), "vram-page-")), "saved.html");
    writeFileSync(path, await saved(page, "This page"));
    equal((await asked("report", "--json", path)).devices, (await asked("report", "--json", example)).devices, "the command reads the saved page");
    const init = () => {
        window.told = new Set();
        new MutationObserver(() => document.querySelectorAll(".zone-title").forEach((zone) => window.told.add(zone.textContent))).observe(document, { subtree: true, childList: true });
    };
    for (const inside of [false, true]) {
        const second = await openPage(inside ? html : path, { init });
        if (inside) await openFiles(second.page, [path]);
        await settles(second.page, () => document.querySelector("select.files option")?.textContent, null, "oom.pickle.gz", "the recording is inside");
        await settles(second.page, () => document.title, null, await page.title(), "and shown as before");
        const told = inside ? ["Drop a recording here", "Opening saved.html\u2026"] : ["Opening oom.pickle.gz\u2026"];
        equal(await second.page.evaluate(() => [...window.told]), told, "what is said until then");
        equal(second.errors, [], "errors of the saved page");
        await second.browser.close();
    }
}

// Handmade: long C++ names.
const LONG = "at::_ops::empty_memory_format::redispatch(c10::DispatchKeySet, c10::ArrayRef<c10::SymInt>, std::optional<c10::ScalarType>)";
const RESULT = "std::vector<at::Tensor, std::allocator<at::Tensor> > torch::autograd::PyNode::apply(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)";
const frames = (name) => [{ filename: "??", line: 0, name }];
const event = (action, addr, name) => ({ action, addr, size: 1 << 20, stream: 0, frames: frames(name) });
const snapshot = { segments: [], device_traces: [[event("alloc", 0x7f0000000000, LONG), event("alloc", 0x7f0000200000, RESULT), event("alloc", 0x7f0000400000, "Foo<int>::operator()(int) const")]] };
const made = join(mkdtempSync(join(tmpdir(), "vram-names-")), "names.json");
writeFileSync(made, JSON.stringify(snapshot));

async function names() {
    const { browser, page, errors } = await openPage(html);
    await openFiles(page, [made]);
    await ready(page);
    const shown = await page.evaluate(() => [...document.querySelectorAll(".chart-legend button")].map((button) => button.textContent).sort());
    for (const wanted of ["at::_ops::empty_memory_format::redispatch", "torch::autograd::PyNode::apply", "Foo::operator()"]) expect(shown.some((text) => text.endsWith(wanted)), `${wanted} in ${JSON.stringify(shown)}`);
    await go(page, { view: "peak" });
    await settles(page, () => [...document.querySelectorAll(".peak-view .site-title")].map((cell) => cell.textContent).sort(), null, ["Foo::operator()", "at::_ops::empty_memory_format::redispatch", "torch::autograd::PyNode::apply"], "names in the table");
    // A zoomed part of the tree fills the height, with its callers named above.
    equal(errors, [], "errors of the page");
    await browser.close();
}

const seen = [];
for (const first of ["timeline", "peak", "state"]) {
    const { browser, page, errors } = await openPage(html, { fragment: `#view=${first}` });
    await openFiles(page, [example]);
    await pageRests(page);
    equal(await page.title(), await page.evaluate(() => `oom.pickle.gz \u2013 ${document.querySelector(".facts .jump").textContent.replace("\u202f", " ")} \u2013 vram`), "the title");
    await page.keyboard.press("1");
    await ready(page);
    seen.push(JSON.stringify(await page.evaluate(legend)));
    if (first === "timeline") {
        await roles(page);
        await back(page);
        await searching(page);
        await range(page);
        await pages(page);
        await card(page);
        await sources(page);
    }
    equal(errors, [], `${first}: errors of the page`);
    await browser.close();
}
equal(new Set(seen).size, 1, `the same colours whatever was looked at first: ${seen}`);
await names();
finish();

// Tests accessibility: every view by keys alone, names and roles of controls, and contrast by numbers, in light and dark.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, html, pageRests, settles } from "./check.mjs";

const events = [];
for (let i = 0; i < 400; i++) {
    const frames = [{ name: `layer_${i % 7}`, filename: "/home/me/model.py", line: i % 7 }];
    events.push({ action: "alloc", addr: 0x7f0000000000 + i * 4096, size: 4096, stream: 0, time_us: 10 * i, frames });
    if (i % 3 === 0) for (const action of ["free_requested", "free_completed"]) events.push({ action, addr: 0x7f0000000000 + i * 4096, size: 4096, stream: 0, time_us: 10 * i + 5, frames });
}
const made = join(mkdtempSync(join(tmpdir(), "vram-test-")), "made.json");
writeFileSync(made, JSON.stringify({ segments: [], device_traces: [events] }));

// Returns texts whose contrast with their background is below AA: 4.5, or 3 for large ones.
function lowContrast() {
    const channel = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    // Returns a colour, in any CSS form, painted over others.
    const over = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
        }
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const grounds = (element) => {
        const found = [];
        for (let at = element; at; at = at.parentElement) found.unshift(getComputedStyle(at).backgroundColor);
        return found;
    };
    const low = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        const text = walker.currentNode.textContent.trim();
        if (text === "" || element.closest("script, style, option") || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        if (element.closest("[aria-disabled='true'], :disabled")) continue; // WCAG excludes these
        const style = getComputedStyle(element);
        const behind = grounds(element);
        const [a, b] = [light(over([...behind, style.color])), light(over(behind))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
        if (ratio < (large ? 3 : 4.5)) low.push(`${text.slice(0, 40)} (${element.className || element.tagName}): ${ratio.toFixed(2)}`);
    }
    return low;
}

// Returns controls without a name or a valid role.
function unnamed() {
    const bad = [];
    for (const element of document.querySelectorAll("button, input, select, textarea, canvas, [role], [tabindex]")) {
        if (!element.checkVisibility()) continue;
        const labels = element.labels?.length ? [...element.labels].map((label) => label.textContent).join("") : "";
        const name = element.getAttribute("aria-label") || element.getAttribute("aria-labelledby") || labels || element.title || element.textContent || element.placeholder;
        const passive = ["presentation", "none", "status", "alert", "rowgroup", "row", "listbox", "list", "group", "menu", "tooltip"].includes(element.getAttribute("role"));
        const hidden = element.closest("[aria-hidden='true']");
        if (!name?.trim() && !passive && !hidden && element.tagName !== "MAIN") bad.push(element.outerHTML.slice(0, 120));
    }
    return bad;
}

// Browsers that resist fingerprinting falsify a canvas's pixels, so the page must not read them.
function guard() {
    CanvasRenderingContext2D.prototype.getImageData = () => {
        throw new Error("pixels are asked for");
    };
}

async function walk(dark) {
    const theme = dark ? "dark" : "light";
    const { browser, page, requests, errors } = await openPage(html, { dark, init: guard });
    equal(await page.evaluate(lowContrast), [], `${theme}: contrast with nothing open`);
    await pageRests(page);
    expect(await page.locator(".message").isHidden(), `${theme}: nothing is open, and nothing is wrong: ${await page.locator(".message").textContent()}`);
    await openFiles(page, [made]);
    const tabs = await page.$$eval('[role="tab"]:not([hidden])', (all) => all.map((tab) => [tab.id, /\((.)\)$/.exec(tab.title)?.[1]]));
    expect(tabs.length >= 9, `${theme}: nine views, not ${tabs.length}`);
    const selected = () => document.querySelector('[role="tab"][aria-selected="true"]').id;
    for (const [id, key] of tabs) {
        await page.keyboard.press(key);
        await settles(page, selected, null, id, `${theme}: the key ${key} chooses ${id}`);
        await pageRests(page);
        equal(await page.evaluate(lowContrast), [], `${theme}: contrast in ${id}`);
        equal(await page.evaluate(unnamed), [], `${theme}: names in ${id}`);
        // Tab from the top reaches the view and returns.
        await page.locator("header button").first().focus();
        const places = new Set(["header"]);
        for (let i = 0; i < 80 && !places.has("stage"); i++) {
            await page.keyboard.press("Tab");
            places.add(await page.evaluate(() => (document.activeElement.closest("main") ? "stage" : document.activeElement.closest("header") ? "header" : "other")));
        }
        expect(places.has("stage"), `${theme}: Tab reaches ${id}: ${[...places]}`);
        await page.evaluate(() => document.activeElement.blur());
    }
    await page.keyboard.press("?");
    await settles(page, () => document.querySelector("dialog.help").open, null, true, `${theme}: ? opens the help`);
    equal(await page.evaluate(lowContrast), [], `${theme}: contrast in the help`);
    await page.keyboard.press("Escape");
    await settles(page, () => document.querySelector("dialog.help").open, null, false, `${theme}: Escape closes it`);
    if (!dark) await useKeys(page);
    equal(requests, [], "requests to the network");
    equal(errors, [], `${theme}: errors of the page`);
    await browser.close();
}

// Tests the frame's own keys.
async function useKeys(page) {
    const within = (key, least, most, what) =>
        settles(page, ([name, low, high]) => {
            const value = Number(new URLSearchParams(location.hash.slice(1)).get(name));
            return value > low && value < high;
        }, [key, least, most], true, what);
    await page.keyboard.press("1");
    await page.keyboard.press("0");
    await page.keyboard.press("w");
    await within("from", 0, 1000, "w zooms in: the window begins later");
    await within("to", 0, 2000, "w zooms in: the window ends");
    const from = await page.evaluate(() => Number(new URLSearchParams(location.hash.slice(1)).get("from")));
    await page.keyboard.press("d");
    await within("from", from, 1000, "d moves on");
    await page.keyboard.press("0");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("from"), null, null, "0 shows everything");
    await page.keyboard.press("e");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("axis"), null, "time", "e chooses time");
    await page.keyboard.press("e");
    await page.keyboard.press("v");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("notion"), null, "active", "v counts active memory");
    await page.keyboard.press("v");
    await page.keyboard.press("/");
    await page.keyboard.type("layer_3");
    await settles(page, () => /^57 /.test(document.querySelector(".search .found").textContent), null, true, "the search finds 57 allocations");
    await page.keyboard.press("Escape");
    await settles(page, () => document.querySelector(".search .found").textContent, null, "", "Escape ends the search");
    await page.keyboard.press("x");
    await settles(page, () => document.activeElement.getAttribute("role"), null, "menuitem", "x opens the menu");
    await page.keyboard.press("Escape");
    await page.keyboard.press("6");
    await page.keyboard.press("x");
    const off = () => [...document.querySelectorAll('[role="menuitem"]')].map((item) => item.getAttribute("aria-disabled"));
    await settles(page, off, null, ["true", "true", "false", "false", "false"], "a view without a picture says so in the menu");
    await page.keyboard.press("Escape");
    await page.keyboard.press("l");
    await settles(page, () => document.documentElement.dataset.theme, null, "dark", "l makes it dark");
    await page.keyboard.press("l");
    await settles(page, () => new URLSearchParams(location.hash.slice(1)).get("dark"), null, "false", "the address keeps the choice of light");
}

await walk(false);
await walk(true);
finish();

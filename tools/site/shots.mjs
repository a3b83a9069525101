// Takes pictures of the site for a person to check: node tools/site/shots.mjs HTML FOLDER. Shows each page in light and dark, wide and at a
// phone's width. Also tests that the search works in a page opened as a file, that code has a button to copy it, and that no page is wider
// than the phone.
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(new URL("../../viewer/web/package.json", import.meta.url))("playwright-core");

const [html, folder] = process.argv.slice(2).map((path) => resolve(path));
const PAGES = ["index", "docs/guides/fit", "docs/guides/simulator", "docs/architecture", "docs/differences", "commands/leaks", "commands/flame", "api/pool.h", "live/index"];
const SIZES = { wide: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
let wrong = 0;

function expect(good, what) {
    if (!good) {
        wrong++;
        console.error(what);
    }
}

async function look(browser, name, size, colorScheme) {
    const page = await browser.newPage({ viewport: SIZES[size], colorScheme });
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(join(html, `${name}.html`)).href, { waitUntil: "load" });
    await page.waitForTimeout(name.startsWith("live") ? 2500 : 300);
    await page.screenshot({ path: join(folder, `${name.replaceAll("/", "-")}-${size}-${colorScheme}.png`) });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width <= SIZES[size].width, `${name}: ${width} pixels wide on ${size}`);
    expect(!asked.some((url) => url.startsWith("http")), `${name} asks for ${asked.filter((url) => url.startsWith("http"))}`);
    await page.close();
}

async function search(browser) {
    const page = await browser.newPage({ viewport: SIZES.wide });
    await page.goto(pathToFileURL(join(html, "index.html")).href);
    await page.waitForTimeout(1000);
    await page.click(".md-search__input");
    await page.keyboard.type("vram_pool_create");
    await page.waitForSelector(".md-search-result__item", { state: "attached", timeout: 15000 });
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(folder, "search.png") });
    const found = await page.locator(".md-search-result__item").count();
    expect(found > 0, "the search finds nothing");
    await page.goto(pathToFileURL(join(html, "docs/guides/convert.html")).href);
    await page.waitForTimeout(1000);
    expect((await page.locator(".md-code__button").count()) === (await page.locator("pre > code").count()), "code has no button to copy it");
    console.log(`${found} pages found`);
}

mkdirSync(folder, { recursive: true });
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const name of PAGES) for (const size of Object.keys(SIZES)) for (const colours of ["light", "dark"]) await look(browser, name, size, colours);
await search(browser);
await browser.close();
process.exit(wrong ? 1 : 0);

// Opens the page in a headless browser without network, and records every attempted request and every error. Uses Chromium, or with
// VRAM_TEST_BROWSER=firefox the system's Firefox (with VRAM_TEST_HEADED=1 on a display, where it has WebGL2).
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, firefox } from "playwright-core";

export const isFirefox = process.env.VRAM_TEST_BROWSER === "firefox";
const programs = isFirefox ? ["/usr/bin/firefox-esr", "/usr/bin/firefox"] : ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const saves = mkdtempSync(join(tmpdir(), "vram-saved-"));
process.on("exit", () => rmSync(saves, { recursive: true, force: true }));

// An unmodified Firefox uses WebDriver BiDi, through which Playwright can neither set the colour scheme or the network nor see saved files;
// preferences do that.
function launch(dark) {
    const executablePath = programs.find(existsSync);
    if (!isFirefox) return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu-sandbox"] });
    const firefoxUserPrefs = {
        "layout.css.prefers-color-scheme.content-override": dark ? 0 : 1,
        "accessibility.mouse_focuses_formcontrol": 0, // a click does not focus a button, as on macOS
        "network.proxy.type": 1, // a nonexistent proxy
        "network.proxy.http": "127.0.0.1",
        "network.proxy.http_port": 9,
        "network.proxy.ssl": "127.0.0.1",
        "network.proxy.ssl_port": 9,
        "browser.download.folderList": 2,
        "browser.download.dir": saves,
    };
    return firefox.launch({ channel: "moz-firefox", executablePath, headless: !process.env.VRAM_TEST_HEADED, firefoxUserPrefs });
}

// Firefox logs this about errors that the page has caught and reported.
const NOTED = /^Failed to read data from the ReadableStream/;

// Reopens a Firefox whose page does not respond (its content process may end at the start, for any page).
async function opened(htmlPath, options) {
    for (let tries = 0; ; tries++) {
        const all = await openOnce(htmlPath, options);
        if (!isFirefox || tries === 3) return all;
        const silent = new Promise((resolve) => setTimeout(resolve, 15000, false));
        const answer = all.page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500, true))).catch(() => false);
        if (await Promise.race([answer, silent])) return all;
        await Promise.race([all.browser.close().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 5000))]);
    }
}

export const openPage = (htmlPath, options = {}) => opened(htmlPath, options);

async function openOnce(htmlPath, { width = 1280, height = 800, dark = false, fragment = "", init, offline = true }) {
    const browser = await launch(dark);
    const emulated = isFirefox ? {} : { colorScheme: dark ? "dark" : "light", offline, acceptDownloads: true };
    const context = await browser.newContext({ viewport: { width, height }, ...emulated });
    const page = await context.newPage();
    page.setDefaultTimeout(120000); // A busy machine is not an error of the page.
    // Firefox does not combine Playwright's two clicks of a double click.
    if (isFirefox)
        page.mouse.dblclick = async (x, y) => {
            await page.mouse.click(x, y);
            await page.mouse.click(x, y);
            await page.evaluate(([clientX, clientY]) => document.elementFromPoint(clientX, clientY).dispatchEvent(new MouseEvent("dblclick", { bubbles: true, clientX, clientY })), [x, y]);
        };
    if (init) await page.addInitScript(init);
    const requests = [];
    const errors = [];
    page.on("request", (request) => {
        if (!/^(file|blob|data):/.test(request.url()) && !request.url().startsWith(htmlPath)) requests.push(request.url());
    });
    const note = (text) => NOTED.test(text) || errors.push(text);
    page.on("pageerror", (error) => note(String(error)));
    page.on("console", (message) => message.type() === "error" && note(message.text()));
    await page.goto(`${htmlPath.startsWith("http:") ? "" : "file://"}${htmlPath}${fragment}`);
    return { browser, page, requests, errors };
}

// Gives files to the page as a user does, and waits until they are opened or refused.
export async function openFiles(page, paths) {
    await page.locator('input[type="file"]').setInputFiles(paths);
    await page.waitForFunction(() => {
        const told = document.querySelector("select.files option") || !document.querySelector(".message").hidden;
        return document.querySelector(".loading").hidden && told;
    }, null, { timeout: 120000 });
}

async function arrived(page, before) {
    for (let tries = 0; tries < 600; tries++) {
        const names = readdirSync(saves);
        const name = names.find((one) => !before.has(one) && !one.endsWith(".part"));
        const path = join(saves, name ?? "");
        // The browser may rename the file between the two checks.
        if (name && !names.includes(`${name}.part`) && existsSync(path) && statSync(path).size > 0) return path;
        await page.waitForTimeout(50);
    }
    throw new Error("nothing was saved");
}

// Returns the bytes of the file made by a command of the menu "Save".
export async function saved(page, title) {
    const before = new Set(readdirSync(saves));
    const download = isFirefox ? null : page.waitForEvent("download");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("menuitem", { name: title }).click();
    return readFileSync(download ? await (await download).path() : await arrived(page, before));
}

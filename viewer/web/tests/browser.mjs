// A page in headless Chromium with the network cut off; every request that is tried, and every error of the page, is remembered.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const chromiumPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

export async function openPage(htmlPath, { width = 1280, height = 800, dark = false, fragment = "", init } = {}) {
    const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-gpu-sandbox"] });
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", offline: true, acceptDownloads: true });
    const page = await context.newPage();
    if (init) await page.addInitScript(init);
    const requests = [];
    const errors = [];
    page.on("request", (request) => {
        if (!/^(file|blob|data):/.test(request.url())) requests.push(request.url());
    });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
        if (message.type() === "error") errors.push(message.text());
    });
    await page.goto(`file://${htmlPath}${fragment}`);
    return { browser, page, requests, errors };
}

// Gives files to the page as a user does, and waits until they are open or refused.
export async function openFiles(page, paths) {
    await page.locator('input[type="file"]').setInputFiles(paths);
    await page.waitForFunction(() => {
        const told = document.querySelector("select.files option") || !document.querySelector(".message").hidden;
        return document.querySelector(".loading").hidden && told;
    }, null, { timeout: 120000 });
}

// Shared by the tests of the page inside other programs' pages.
import { createServer } from "node:net";

export const freePort = () =>
    new Promise((resolve) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });

// Waits up to a minute for an answer at the address.
export async function answers(address) {
    for (let tries = 0; tries < 600; tries++) {
        const answer = await fetch(address).catch(() => null);
        if (answer?.ok) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`${address} does not answer`);
}

// Returns the frame with the viewer's page for a recording of that name; it may be inside another frame.
export async function viewerFrame(page, name) {
    for (let tries = 0; tries < 600; tries++) {
        for (const frame of page.frames()) {
            const shown = await frame
                .evaluate(() => !!document.querySelector(".loading")?.hidden && document.querySelector("select.files option")?.textContent)
                .catch(() => null);
            const element = shown && (await frame.frameElement().catch(() => null));
            if (element && shown.includes(name) && (await element.isVisible())) return frame;
        }
        await page.waitForTimeout(100);
    }
    throw new Error(`${name} is not shown; frames: ${page.frames().map((frame) => frame.url())}`);
}

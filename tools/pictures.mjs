// Makes the pictures of the documents from the page itself: node tools/pictures.mjs PAGE.html [RECORDING]. Without RECORDING, shows the
// example recording of a training program. Needs the packages of the page's tests (tools/setup.sh).
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openFiles, openPage } from "../viewer/web/tests/browser.mjs";
import { pageRests } from "../viewer/web/tests/check.mjs";
import { loop } from "../viewer/web/tests/loop.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [html, recording = join(root, "examples/recordings/train.json.gz")] = process.argv.slice(2);
if (!html) {
    console.error("usage: node tools/pictures.mjs PAGE.html [RECORDING]");
    process.exit(2);
}
const SIZE = { width: 1280, height: 720 };
// For each picture: a view, the state of the page, and the actions before it.
const pictures = [
    { name: "timeline", view: "timeline", pick: true },
    { name: "map", view: "map" },
    { name: "state", view: "state" },
    { name: "peak", view: "peak" },
    { name: "step", view: "step", made: () => loop({ steps: 4, layers: 12 }).recording },
    { name: "oom", view: "oom", of: "examples/recordings/oom.pickle.gz", until: ".oom-cure[data-verdict]" },
];

function written(recording) {
    const path = join(mkdtempSync(join(tmpdir(), "vram-picture-")), "train.json");
    writeFileSync(path, JSON.stringify(recording));
    return path;
}

async function shoot({ name, view, dark = false, pick = false, of, made, until }) {
    const { browser, page, errors } = await openPage(resolve(html), { ...SIZE, dark, fragment: `#view=${view}` });
    await openFiles(page, [made ? written(made()) : of ? join(root, of) : recording]);
    await pageRests(page);
    if (until) await page.waitForSelector(until);
    if (pick) {
        const box = await page.locator("main canvas").first().boundingBox();
        await page.mouse.click(box.x + box.width * 0.655, box.y + box.height * 0.5);
        await pageRests(page);
    }
    const path = join(root, "docs/pictures", `${name}.png`);
    const bytes = await page.screenshot();
    writeFileSync(path, bytes);
    console.log(`${path}: ${bytes.length} bytes${errors.length ? ` ${errors}` : ""}`);
    await browser.close();
}

mkdirSync(join(root, "docs/pictures"), { recursive: true });
for (const picture of pictures) await shoot(picture);

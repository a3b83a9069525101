// Tests out of memory with other processes on the device, as recorded; process names are shown as text, never as markup.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFiles, openPage } from "./browser.mjs";
import { equal, expect, finish, html, pageRests } from "./check.mjs";

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), "vram-test-"));

// Makes a whole program with 100 of 1000 MiB, of which 300 are free: 600 MiB is outside.
function recording(name, accounts) {
    const event = (action, more) => ({ action, addr: 0x7f0000000000, size: 100 * MIB, stream: 0, time_us: 5, frames: [], user_metadata: "libnccl.so.2", ...more });
    const what = {
        segments: [],
        device_traces: [[event("alloc"), event("oom", { device_free: 300 * MIB, size: 400 * MIB, time_us: 9 })]],
        allocator_settings: { vram_run_process: 7, vram_device_0_total_bytes: 1000 * MIB, ...(accounts ? { vram_accounts_3: { device: 0, time_us: 9, ...accounts } } : {}) },
    };
    writeFileSync(join(folder, name), JSON.stringify(what));
    return join(folder, name);
}

const { browser, page, errors } = await openPage(html);

async function look(path) {
    await openFiles(page, [path]);
    await page.locator("select.files").selectOption({ index: (await page.locator("select.files option").count()) - 1 }).catch(() => {});
    await page.keyboard.press("7");
    await page.waitForSelector(".oom-view .oom-card");
    await pageRests(page);
    const rows = await page.locator(".oom-card").first().locator("table").first().locator("tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    return { rows: Object.fromEntries(rows.map(([name, size, why]) => [name, `${size} ${why}`])), text: await page.locator(".oom-card").first().innerText() };
}

const known = await look(recording("known.json", {
    context_bytes: 200 * MIB, module_bytes: 50 * MIB, at_start_bytes: null, has_self: true, self_bytes: 360 * MIB, left_out: 2,
    processes: [{ pid: 4711, name: "<img src=x onerror=window.hacked=1>", bytes: 250 * MIB }, { pid: 12, name: "", bytes: null }],
}));
expect(/^260\.0\sMiB also held by this process: contexts 200\.0\sMiB, modules 50\.0\sMiB, other driver memory 10\.0\sMiB$/.test(known.rows.context), `context: ${known.rows.context}`);
expect(known.rows.others?.includes("other processes"), `others: ${known.rows.others}`);
expect(known.rows["not known"]?.includes("owner not known"), `not known: ${known.rows["not known"]}`);
expect(known.rows.outside === undefined, "no sum of all of them");
expect(known.text.includes("process 4711 (<img src=x onerror=window.hacked=1>)"), `a name is text: ${known.text}`);
expect(/not known\s+process 12\s/.test(known.text) && known.text.includes("and 2 more"), "what is not told");
expect(known.text.includes("libnccl.so.2"), "who asked");
equal(await page.evaluate(() => window.hacked), undefined, "no markup");

const refused = await look(recording("refused.json", { context_bytes: null, module_bytes: null, at_start_bytes: null, why: "NVML is not there" }));
expect(refused.text.includes("Other processes are not known: NVML is not there."), refused.text);
expect(refused.rows["not known"]?.startsWith("600"), `all of it is not known: ${refused.rows["not known"]}`);

const silent = await look(recording("silent.json", null));
expect(silent.rows.outside?.startsWith("600"), `one sum: ${JSON.stringify(silent.rows)}`);

equal(errors, [], "errors of the page");
await browser.close();
rmSync(folder, { recursive: true });
finish();

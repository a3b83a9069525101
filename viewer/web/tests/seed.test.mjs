// Tests the secret of the engine's hash tables: the page sets it from the browser's random numbers before anything is opened, and no answer
// depends on it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { gunzipSync, gzipSync } from "node:zlib";
import { openEngine } from "../../../tests/bench/engine.mjs";
import { equal, expect, finish, html } from "./check.mjs";

const wasm = join(dirname(html), "engine.wasm");
const examples = join(dirname(fileURLToPath(import.meta.url)), "../../../examples/recordings");
const folder = mkdtempSync(join(tmpdir(), "vram-test-"));

// Starts the page's worker with a watched engine and watched random numbers.
async function begin() {
    const parts = /<script[^>]*id="parts"[^>]*>([\s\S]*?)<\/script>/.exec(readFileSync(html, "utf8"))[1];
    const { worker: script } = JSON.parse(gunzipSync(Buffer.from(parts, "base64")));
    const calls = [];
    let drawn = null;
    const exports = new Proxy({}, { get: (_, name) => (name === "memory" ? new WebAssembly.Memory({ initial: 1 }) : (...values) => calls.push([name, ...values])) });
    const self = { postMessage() {} };
    const crypto = { getRandomValues: (room) => (drawn = room.set([0x12345678, 0x9abcdef0])) ?? room };
    runInContext(script, createContext({ self, crypto, performance, TextEncoder, TextDecoder, Blob, Response, DecompressionStream, Uint8Array, atob, WebAssembly: { instantiate: async () => ({ instance: { exports } }) } }));
    self.onmessage({ data: { kind: "start", engine: gzipSync("").toString("base64") } });
    for (let tries = 0; tries < 1000 && calls.length < 2; tries++) await new Promise((resolve) => setTimeout(resolve, 10));
    return calls;
}
equal(await begin(), [["_initialize"], ["engine_seed", 0x12345678, 0x9abcdef0]], "what the worker calls first");

const page = readFileSync(html).length;
expect(page < 700_000, `the page stays below 700 kB: ${page} bytes`);

const queries = [
    "list", "curve?pixels=300", "marks", "notes", "allocation?row=3", "timeline?pixels=400&height=300&by=category", "search?text=0x7f", "state", "events?count=1000",
    "segments?pixels=400&height=300", "segments?pixels=400&height=300&lanes=1", "map?pixels=300&height=300&by=pool", "allocations?limit=500&by=stack", "groups?by=function",
    "groups?by=size&made=1", "tree", "tree?order=up&event2=10&rec2=0", "compare?event=10&event2=20&by=file", "leaks?every=20", "churn?every=20", "steps?every=20&pixels=100", "ranks", "settings", "oom", "cure", "paged",
];
for (const name of ["oom.pickle", "train.json"]) {
    const path = join(folder, name);
    writeFileSync(path, gunzipSync(readFileSync(join(examples, `${name}.gz`))));
    const engines = [];
    for (const seed of [[0, 0], [0xdeadbeef, 0x0badf00d]]) engines.push(await openEngine(wasm, path, { seed, whole: true }));
    for (const query of queries) {
        for (const engine of engines) engine.ask(query);
        expect(engines[0].bytes() > 8 && Buffer.compare(engines[0].answer(), engines[1].answer()) === 0, `${name}: ${query} is answered alike by two secrets`);
    }
}
rmSync(folder, { recursive: true });
finish();

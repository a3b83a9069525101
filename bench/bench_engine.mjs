// How long the viewer's engine itself works, without a page: node bench/bench_engine.mjs ENGINE.wasm RECORDING EVENTS. Prints, as JSON,
// milliseconds of this process's time (other load does not count): reading, the first picture's tables, then the timeline of 200 windows.
import { fstatSync, openSync, readFileSync, readSync } from "node:fs";

const [wasm, recording, events] = process.argv.slice(2);
if (!(Number(events) > 0)) {
    console.error("usage: node bench/bench_engine.mjs ENGINE.wasm RECORDING EVENTS");
    process.exit(2);
}
const file = openSync(recording, "r");
let engine;
const page = {
    page_read: (room, capacity) => readSync(file, new Uint8Array(engine.memory.buffer, room >>> 0, capacity >>> 0)),
    page_answer: () => {},
};
const absent = () => 52;
const wasi_snapshot_preview1 = { fd_close: absent, fd_seek: absent, fd_write: absent };
engine = (await WebAssembly.instantiate(readFileSync(wasm), { page, wasi_snapshot_preview1 })).instance.exports;
engine._initialize();

function timed(text, call) {
    const bytes = new TextEncoder().encode(`${text}\0`);
    const room = engine.engine_room(bytes.length) >>> 0;
    new Uint8Array(engine.memory.buffer, room, bytes.length).set(bytes);
    const begin = process.cpuUsage().user;
    const failed = call(room);
    const milliseconds = (process.cpuUsage().user - begin) / 1000;
    engine.engine_free(room);
    if (failed) throw new Error(`${text}: the engine refuses`);
    return milliseconds;
}

const timeline = (from, to) => timed(`timeline?device=0&from=${from}&to=${to}&pixels=1200&height=600&by=site`, engine.engine_ask);
const read = timed(recording, (name) => engine.engine_open(name, fstatSync(file).size));
const tables = timeline(0, events);
let seed = 1;
const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32;
const windows = Array.from({ length: 200 }, () => {
    const length = Math.min(Number(events), 10 ** (2 + 5 * random()));
    const from = random() * (events - length);
    return timeline(from, from + length);
}).sort((a, b) => a - b);
const result = { read_ms: read, tables_ms: tables, window_ms_median: windows[100], window_ms_99: windows[198], memory_mb: engine.memory.buffer.byteLength / 1e6 };
console.log(JSON.stringify(result, null, 1));

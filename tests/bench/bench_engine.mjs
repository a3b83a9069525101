// Measures the viewer's engine without a page: node tests/bench/bench_engine.mjs ENGINE.wasm RECORDING EVENTS. Prints, as JSON,
// milliseconds of this process's CPU time: reading, the tables of the first picture, then the timeline of 200 windows.
import { generator, openEngine } from "./engine.mjs";

const [wasm, recording, events] = process.argv.slice(2);
if (!(Number(events) > 0)) {
    console.error("usage: node tests/bench/bench_engine.mjs ENGINE.wasm RECORDING EVENTS");
    process.exit(2);
}
const engine = await openEngine(wasm, recording);
const timeline = (from, to) => engine.ask(`timeline?device=0&from=${from}&to=${to}&pixels=1200&height=600&by=site`);
const tables = timeline(0, events);
const random = generator();
const windows = Array.from({ length: 200 }, () => {
    const length = Math.min(Number(events), 10 ** (2 + 5 * random()));
    const from = random() * (events - length);
    return timeline(from, from + length);
}).sort((a, b) => a - b);
const result = { read_ms: engine.read_ms, tables_ms: tables, window_ms_median: windows[100], window_ms_99: windows[198], memory_mb: engine.memory() / 1e6 };
console.log(JSON.stringify(result, null, 1));

// Measures the viewer's engine with the queries of every view: node tests/bench/bench_queries.mjs ENGINE.wasm RECORDING. Prints a table in
// milliseconds of this process's CPU time: the longest piece of the preparation, the first answer after it, and the median and the 99th
// percentile of 200 answers about windows and moments of the whole history.
import { generator, openEngine } from "./engine.mjs";

const [wasm, recording] = process.argv.slice(2);
if (!recording) {
    console.error("usage: node tests/bench/bench_queries.mjs ENGINE.wasm RECORDING");
    process.exit(2);
}
const engine = await openEngine(wasm, recording);
const list = engine.ask("list");
const busiest = engine.json().recordings[0].devices.reduce((best, device) => (device.events > best.events ? device : best));
const { device, events } = busiest;
const random = generator();
const moment = () => Math.floor(random() * events);
// Returns a window of 100 events up to all of them, with a log-uniform size.
function spread() {
    const length = Math.min(events, 100 * (events / 100) ** random());
    const from = random() * (events - length);
    return `from=${from}&to=${from + length}`;
}
const picture = "pixels=1700&height=600&limit=4000"; // a window of 1100 pixels, and half as much on its sides

const views = [
    ["Active memory timeline", "timeline", () => `${spread()}&${picture}&by=site`],
    ["State history: blocks", "state", () => `event=${moment()}`],
    ["State history: list", "events", () => `first=${moment()}&count=32&event=${moment()}`],
    ["Segments over time", "segments", () => `${spread()}&${picture}&lanes=1`],
    ["Address map", "map", () => `${spread()}&${picture}&by=site`],
    ["Peak: table", "groups", () => `event=${moment()}&top=5000`],
    ["Peak: call stacks", "tree", () => `event=${moment()}`],
    ["Leaks and steps: growth", "leaks", () => "every=50000&top=200"],
    ["Leaks and steps: churn", "churn", () => "every=50000&top=500"],
    ["Out of memory", "oom", () => ""],
    ["Compare: table", "compare", () => `event=${moment()}&event2=${moment()}&top=5000`],
    ["Compare: call stacks", "tree", () => `event=${moment()}&event2=${moment()}&rec2=0`],
    ["Compare: curves by steps", "steps", () => `every=50000&pixels=1000`],
    ["Settings", "settings", () => ""],
];
const prepared = new Set(["state", "map", "leaks", "churn", "steps"]);
const show = (ms) => ms.toFixed(1).padStart(9);
console.log(`read ${engine.read_ms.toFixed(0)} ms, list ${list.toFixed(0)} ms, ${events} events`);
console.log("view                         piece    first   median      99%   answer");
for (const [title, name, values] of views) {
    let piece = 0;
    if (prepared.has(name))
        do piece = Math.max(piece, engine.ask(`prepare?for=${name}&device=${device}&${values()}`));
        while (!engine.json().ready);
    const first = engine.ask(`${name}?device=${device}&${values()}`);
    const times = Array.from({ length: 200 }, () => engine.ask(`${name}?device=${device}&${values()}`)).sort((a, b) => a - b);
    console.log(`${title.padEnd(25)}${show(piece)}${show(first)}${show(times[100])}${show(times[198])} ${(engine.bytes() / 1024).toFixed(0).padStart(6)} KiB`);
}
console.log(`memory ${Math.round(engine.memory() / 1e6)} MB`);

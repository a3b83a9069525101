// The viewer's engine without a page, and the milliseconds of CPU time that it needs for a question.
import { fstatSync, openSync, readFileSync, readSync } from "node:fs";

// `seed`: two halves of a random number, which the page draws from the browser; `whole`: keeps answers with their columns.
export async function openEngine(wasm, recording, { seed = [1, 2], whole = false } = {}) {
    const file = openSync(recording, "r");
    let engine;
    let answer = { kept: new Uint8Array(8), length: 0, bytes: 0 };
    // An answer's bytes are valid during the call only.
    function take(at, bytes) {
        const length = new DataView(engine.memory.buffer).getUint32(at >>> 0, true);
        const kept = new Uint8Array(engine.memory.buffer, at >>> 0, whole ? bytes >>> 0 : 8 + length).slice();
        answer = { kept, length, bytes: bytes >>> 0 };
    }
    const page = {
        page_read: (room, capacity) => readSync(file, new Uint8Array(engine.memory.buffer, room >>> 0, capacity >>> 0)),
        page_answer: take,
    };
    const absent = () => 52;
    const clock = (_id, _precision, time) => {
        new DataView(engine.memory.buffer).setBigUint64(time >>> 0, process.hrtime.bigint(), true);
        return 0;
    };
    const wasi_snapshot_preview1 = { clock_time_get: clock, fd_close: absent, fd_seek: absent, fd_write: absent };
    engine = (await WebAssembly.instantiate(readFileSync(wasm), { page, wasi_snapshot_preview1 })).instance.exports;
    engine._initialize();
    engine.engine_seed(...seed);

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
    const read_ms = timed(recording, (name) => engine.engine_open(name, fstatSync(file).size));
    return {
        read_ms,
        ask: (question) => timed(question, engine.engine_ask),
        // The last answer: its JSON, its length with all columns, and the kept part.
        json: () => JSON.parse(new TextDecoder().decode(answer.kept.subarray(8, 8 + answer.length))),
        bytes: () => answer.bytes,
        answer: () => answer.kept,
        memory: () => engine.memory.buffer.byteLength,
    };
}

// Returns the same sequence of numbers from 0 to 1 in every run.
export function generator(seed = 1) {
    return () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32;
}

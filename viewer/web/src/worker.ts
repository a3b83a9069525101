// The worker: runs the engine, feeds it files as streams of slices, and passes questions on.
import { bytesOfBase64 } from "./base64";
import type { FromWorker, ToWorker } from "./protocol";

declare const self: {
    onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
    postMessage(message: FromWorker, transfer?: Transferable[]): void;
};
declare class FileReaderSync {
    readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

type Exports = {
    memory: WebAssembly.Memory;
    _initialize(): void;
    engine_seed(low: number, high: number): void;
    engine_room(bytes: number): number;
    engine_free(room: number): void;
    engine_open(name: number, bytes: number): number;
    engine_preview(name: number, bytes: number): number;
    engine_ask(question: number): number;
    engine_error(): number;
};

const CHUNK_BYTES = 4 << 20;
const ENOSYS = 52;

let engine: Exports;
let answer: ArrayBuffer | null = null;
let source: { file: Blob; at: number; chunk: Uint8Array; used: number; id: number; told: number } | null = null;

function readPage(buffer: number, capacity: number): number {
    if (!source) return -1;
    if (source.used === source.chunk.length) {
        if (source.at >= source.file.size) return 0;
        const slice = source.file.slice(source.at, source.at + CHUNK_BYTES);
        try {
            source.chunk = new Uint8Array(new FileReaderSync().readAsArrayBuffer(slice));
        } catch {
            return -1;
        }
        source.at += source.chunk.length;
        source.used = 0;
        const now = performance.now();
        if (now - source.told > 50) {
            source.told = now;
            self.postMessage({ kind: "progress", id: source.id, done: source.at, total: source.file.size });
        }
    }
    const bytes = source.chunk.subarray(source.used, source.used + (capacity >>> 0));
    new Uint8Array(engine.memory.buffer, buffer >>> 0, bytes.length).set(bytes);
    source.used += bytes.length;
    return bytes.length;
}

function takeAnswer(bytes: number, length: number): void {
    answer = engine.memory.buffer.slice(bytes >>> 0, (bytes >>> 0) + (length >>> 0));
}

function textAt(address: number): string {
    const bytes = new Uint8Array(engine.memory.buffer, address >>> 0);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

// Calls with a text copied into the engine's memory.
function withText(text: string, call: (address: number) => number): number {
    const bytes = new TextEncoder().encode(text.replaceAll("\0", " ") + "\0");
    const room = engine.engine_room(bytes.length);
    if (room === 0) return 1;
    new Uint8Array(engine.memory.buffer, room >>> 0, bytes.length).set(bytes);
    const result = call(room);
    engine.engine_free(room);
    return result;
}

async function start(packed: string): Promise<void> {
    // The C library imports file functions that are never used.
    const absent = () => ENOSYS;
    const clock = (_id: number, _precision: bigint, time: number) => {
        new DataView(engine.memory.buffer).setBigUint64(time >>> 0, BigInt(Math.round(performance.now() * 1e6)), true);
        return 0;
    };
    const imports = {
        page: { page_read: readPage, page_answer: takeAnswer },
        wasi_snapshot_preview1: { clock_time_get: clock, fd_close: absent, fd_seek: absent, fd_write: absent },
    };
    const code = new Blob([bytesOfBase64(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { instance } = await WebAssembly.instantiate(await new Response(code).arrayBuffer(), imports);
    engine = instance.exports as unknown as Exports;
    engine._initialize();
    // Set the secret of its hash tables, because WebAssembly has no random memory layout.
    const [low, high] = crypto.getRandomValues(new Uint32Array(2));
    engine.engine_seed(low, high);
}

function finish(id: number, failed: number): void {
    if (failed !== 0) {
        self.postMessage({ kind: "failed", id, message: textAt(engine.engine_error()) || "the engine has no memory left" });
        return;
    }
    const transfer = answer ? [answer] : [];
    self.postMessage({ kind: "done", id, answer }, transfer);
    answer = null;
}

function handle(message: ToWorker): void {
    if (message.kind === "open" || message.kind === "preview") {
        const read = message.kind === "open" ? engine.engine_open : engine.engine_preview;
        source = { file: message.file, at: 0, chunk: new Uint8Array(), used: 0, id: message.id, told: performance.now() };
        const failed = withText(message.name, (name) => read(name, message.file.size));
        source = null;
        finish(message.id, failed);
    } else if (message.kind === "ask") {
        finish(message.id, withText(message.question, (question) => engine.engine_ask(question)));
    }
}

let ready: Promise<void>;
self.onmessage = (event) => {
    const message = event.data;
    if (message.kind === "start") {
        ready = start(message.engine);
        return;
    }
    ready
        .then(() => handle(message))
        .catch((error) => self.postMessage({ kind: "failed", id: message.id, message: `the engine stopped: ${error}` }));
};

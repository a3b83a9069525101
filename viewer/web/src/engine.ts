// The page's interface to the engine: opens files and answers questions.
import { Answer, type FromWorker, type ToWorker } from "./protocol";
import { asRecorded, visible } from "./visible";

export type Progress = (done: number, total: number) => void;
export type Question = { name: string; [key: string]: string | number | boolean | undefined };

// Answers questions: an engine in a worker, or a server on this machine.
export interface Engine {
    // Opens a file. For a large file, calls `early` when its beginning can be queried; the rest is read after `early` is done.
    open(name: string, file: Blob, progress?: Progress, early?: () => Promise<void>): Promise<void>;
    ask<T = Record<string, unknown>>(question: Question): Promise<Answer<T>>;
}

let skipped: string | undefined;

// Sets the frames that are not call sites, for all later questions.
export function skipFrames(expression: string): void {
    skipped = expression === "" ? undefined : expression;
}

export function questionText({ name, ...values }: Question): string {
    const pairs = Object.entries({ skip: skipped, ...values }).filter(([, value]) => value !== undefined);
    return pairs.length === 0 ? name : `${name}?${pairs.map(([key, value]) => `${key}=${encodeURIComponent(asRecorded(String(value)))}`).join("&")}`;
}

function inline(id: string): string {
    return document.getElementById(id)?.textContent?.trim() ?? "";
}

// Decompresses a gzip blob; returns other blobs unchanged.
export async function unwrapped(blob: Blob): Promise<Blob> {
    const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
    if (head[0] !== 0x1f || head[1] !== 0x8b) return blob;
    try {
        return await new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).blob();
    } catch {
        throw new Error("the gzip data is damaged or cut off");
    }
}

// Features that the engine needs, and that old browsers lack or users disable.
const NEEDED = ["WebAssembly", "Worker"]; // besides those that unpacked this script (boot.ts)

const OWN_MAGIC = "VRAM"; // from the second byte
const PREVIEW_LEAST = 8 << 20;
const PREVIEW_BYTES = 1 << 20; // about 150,000 events, ready in a fifth of a second

export class WorkerEngine implements Engine {
    private readonly worker: Worker;
    private readonly waiting = new Map<number, { resolve(bytes: ArrayBuffer | null): void; reject(error: Error): void; progress?: Progress }>();
    private next = 1;

    private constructor() {
        this.worker = new Worker(URL.createObjectURL(new Blob([inline("worker")], { type: "text/javascript" })));
        this.worker.onmessage = (event: MessageEvent<FromWorker>) => this.receive(event.data);
        this.worker.onerror = (event) => {
            for (const { reject } of this.waiting.values()) reject(new Error(`the engine stopped: ${event.message}`));
            this.waiting.clear();
        };
    }

    // The worker unpacks the engine while the page is displayed.
    static create(): WorkerEngine {
        const absent = NEEDED.find((name) => !(name in globalThis));
        if (absent) throw new Error(`This browser has no ${absent}: the page needs Firefox 113, Chromium 111, Safari 16.4 or newer. \`vram view --serve\` does not need it.`);
        const engine = new WorkerEngine();
        engine.worker.postMessage({ kind: "start", engine: inline("engine") } satisfies ToWorker);
        return engine;
    }

    async open(name: string, file: Blob, progress?: Progress, early?: () => Promise<void>): Promise<void> {
        const plain = await unwrapped(file);
        if (early && plain.size > PREVIEW_LEAST && (await plain.slice(1, 1 + OWN_MAGIC.length).text()) === OWN_MAGIC) {
            // Our own format can be read up to any cut.
            const begun = await this.send((id) => ({ kind: "preview", id, name, file: plain.slice(0, PREVIEW_BYTES) })).then(
                () => true,
                () => false,
            );
            if (begun) await early();
        }
        await this.send((id) => ({ kind: "open", id, name, file: plain }), progress);
    }

    async ask<T>(question: Question): Promise<Answer<T>> {
        const bytes = await this.send((id) => ({ kind: "ask", id, question: questionText(question) }));
        return new Answer<T>(bytes!);
    }

    // Resolves when no question has been open for two frames.
    async quiet(): Promise<void> {
        const frame = () => new Promise((resolve) => setTimeout(resolve, 16));
        for (let still = 0; still < 2; still = this.waiting.size === 0 ? still + 1 : 0) await frame();
    }

    private send(message: (id: number) => ToWorker, progress?: Progress): Promise<ArrayBuffer | null> {
        const id = this.next++;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject, progress });
            this.worker.postMessage(message(id));
        });
    }

    private receive(message: FromWorker): void {
        const waiter = this.waiting.get(message.id);
        if (!waiter) return;
        if (message.kind === "progress") {
            waiter.progress?.(message.done, message.total);
            return;
        }
        this.waiting.delete(message.id);
        if (message.kind === "done") waiter.resolve(message.answer);
        else waiter.reject(new Error(visible(message.message)));
    }
}

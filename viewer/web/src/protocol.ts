// The messages between the page and its worker, and the parsing of an answer.
import { parseAnswer } from "./exact";

export type ToWorker =
    | { kind: "start"; engine: string } // gzip in base64
    | { kind: "open" | "preview"; id: number; name: string; file: Blob }
    | { kind: "ask"; id: number; question: string };

export type FromWorker =
    | { kind: "progress"; id: number; done: number; total: number }
    | { kind: "done"; id: number; answer: ArrayBuffer | null }
    | { kind: "failed"; id: number; message: string };

type Column = { type: "u8" | "i32" | "u32" | "f32" | "f64"; offset: number; count: number };
export type Numbers = Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;

// An answer of the engine: `json` as described in docs/reference/formats/queries.md, and columns of numbers.
export class Answer<T = Record<string, unknown>> {
    readonly json: T & { columns: Record<string, Column> };
    constructor(private readonly bytes: ArrayBuffer) {
        const head = new DataView(bytes);
        this.json = parseAnswer(new TextDecoder().decode(new Uint8Array(bytes, 8, head.getUint32(0, true))));
    }
    column(name: string): Numbers {
        const { type, offset, count } = this.json.columns[name];
        const at = new DataView(this.bytes).getUint32(4, true) + offset;
        switch (type) {
            case "u8":
                return new Uint8Array(this.bytes, at, count);
            case "i32":
                return new Int32Array(this.bytes, at, count);
            case "u32":
                return new Uint32Array(this.bytes, at, count);
            case "f32":
                return new Float32Array(this.bytes, at, count);
            case "f64":
                return new Float64Array(this.bytes, at, count);
        }
    }
}

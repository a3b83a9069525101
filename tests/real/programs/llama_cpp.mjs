// Decodes a few tokens with llama.cpp (node-llama-cpp): a small Llama with all its layers on the device.
//
// usage: llama_cpp.mjs ROW FOLDER   FOLDER contains node_modules. The last line is "ok".
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const UINT32 = 4, INT32 = 5, FLOAT32 = 6, STRING = 8, ARRAY = 9; // of GGUF's metadata
const F32 = 0, F16 = 1; // of its tensors
const ALIGNMENT = 32;
const MODEL = { layers: 4, embedding: 512, heads: 8, feedForward: 1376, context: 2048, vocabulary: 300 };

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const scalar = { [UINT32]: u32, [INT32]: u32, [FLOAT32]: (value) => Buffer.from(Float32Array.of(value).buffer), [STRING]: text };
const entry = (key, type, value) => Buffer.concat([text(key), u32(type), scalar[type](value)]);
const list = (key, type, values) => Buffer.concat([text(key), u32(ARRAY), u32(type), u64(values.length), ...values.map(scalar[type])]);

/** Every byte is a token; 0 is unknown, 1 begins, 2 ends. */
function vocabulary() {
    const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
    const words = Array.from({ length: MODEL.vocabulary - 259 }, (_, i) => `w${i}`);
    const types = [2, 3, 3, ...bytes.map(() => 6), ...words.map(() => 1)];
    return { tokens: ["<unk>", "<s>", "</s>", ...bytes, ...words], types };
}

function metadata() {
    const { tokens, types } = vocabulary();
    return [
        entry("general.architecture", STRING, "llama"), entry("general.alignment", UINT32, ALIGNMENT),
        entry("llama.context_length", UINT32, MODEL.context), entry("llama.embedding_length", UINT32, MODEL.embedding),
        entry("llama.block_count", UINT32, MODEL.layers), entry("llama.feed_forward_length", UINT32, MODEL.feedForward),
        entry("llama.attention.head_count", UINT32, MODEL.heads), entry("llama.attention.head_count_kv", UINT32, MODEL.heads),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5), entry("llama.rope.dimension_count", UINT32, MODEL.embedding / MODEL.heads),
        entry("tokenizer.ggml.model", STRING, "llama"), list("tokenizer.ggml.tokens", STRING, tokens),
        list("tokenizer.ggml.scores", FLOAT32, tokens.map(() => 0)), list("tokenizer.ggml.token_type", INT32, types),
        entry("tokenizer.ggml.bos_token_id", UINT32, 1), entry("tokenizer.ggml.eos_token_id", UINT32, 2),
    ];
}

function tensors() {
    const { layers, embedding, feedForward, vocabulary } = MODEL;
    const of = (name, ...shape) => ({ name, shape, type: shape.length === 1 ? F32 : F16 });
    const layer = (i) => [
        of(`blk.${i}.attn_norm.weight`, embedding), of(`blk.${i}.ffn_norm.weight`, embedding),
        ...["q", "k", "v", "output"].map((name) => of(`blk.${i}.attn_${name}.weight`, embedding, embedding)),
        of(`blk.${i}.ffn_gate.weight`, embedding, feedForward), of(`blk.${i}.ffn_up.weight`, embedding, feedForward),
        of(`blk.${i}.ffn_down.weight`, feedForward, embedding),
    ];
    return [of("token_embd.weight", embedding, vocabulary), of("output_norm.weight", embedding), of("output.weight", embedding, vocabulary),
        ...Array.from({ length: layers }, (_, i) => layer(i)).flat()];
}

/** A GGUF file whose weights are a hole in the file: zeros. */
function writeModel(file) {
    let offset = 0;
    const infos = tensors().map(({ name, shape, type }) => {
        const info = Buffer.concat([text(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)]);
        const bytes = shape.reduce((a, b) => a * b) * (type === F32 ? 4 : 2);
        offset += Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
        return info;
    });
    const entries = metadata();
    const head = Buffer.concat([Buffer.from("GGUF"), u32(3), u64(infos.length), u64(entries.length), ...entries, ...infos]);
    const dataStart = Math.ceil(head.length / ALIGNMENT) * ALIGNMENT;
    fs.writeFileSync(file, head);
    fs.truncateSync(file, dataStart + offset);
    return offset;
}

function must(holds, what) {
    if (!holds) throw new Error(what);
}

async function decode() {
    const { getLlama } = await import(pathToFileURL(path.join(process.argv[3], "node_modules/node-llama-cpp/dist/index.js")));
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "gguf."));
    try {
        const file = path.join(folder, "model.gguf");
        const weights = writeModel(file);
        const llama = await getLlama({ gpu: "cuda", build: "never", skipDownload: true });
        must(llama.gpu === "cuda", `the GPU is ${llama.gpu}`);
        const before = await llama.getVramState();
        const model = await llama.loadModel({ modelPath: file, gpuLayers: "max", useMmap: false });
        must(model.gpuLayers === MODEL.layers + 1, `${model.gpuLayers} layers are on the device`);
        const context = await model.createContext({ contextSize: 512 });
        const used = (await llama.getVramState()).used - before.used;
        must(used > weights, `the model takes ${used} B of the device, its weights ${weights}`);
        const tokens = [];
        for await (const token of context.getSequence().evaluate([1, 70, 71, 72], { temperature: 0, yieldEogToken: true })) {
            tokens.push(token);
            if (tokens.length === 8) break;
        }
        must(tokens.length === 8, `${tokens.length} tokens`);
        await context.dispose();
        await model.dispose();
        await llama.dispose();
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}

const rows = { llama_cpp_decode: decode, llama_cpp_cached: decode };
await rows[process.argv[2]]();
console.log("ok");
process.exit(0);

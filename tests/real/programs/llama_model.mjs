// Loads a GGUF model with llama.cpp (node-llama-cpp), with all its layers on the device, and makes a context.
//
// usage: llama_model.mjs FOLDER MODEL CONTEXT   FOLDER contains node_modules.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file, length] = process.argv.slice(2);
const { getLlama } = await import(pathToFileURL(path.join(folder, "node_modules/node-llama-cpp/dist/index.js")));
const llama = await getLlama({ gpu: "cuda", build: "never", skipDownload: true });
const model = await llama.loadModel({ modelPath: file, gpuLayers: "max", useMmap: process.env.NO_MMAP ? false : undefined });
const context = await model.createContext({ contextSize: Number(length) });
const tokens = [];
for await (const token of context.getSequence().evaluate([1, 70, 71, 72], { temperature: 0, yieldEogToken: true })) {
    tokens.push(token);
    if (tokens.length === 4) break;
}
console.log(model.gpuLayers, "layers,", tokens.length, "tokens");
process.exit(0);

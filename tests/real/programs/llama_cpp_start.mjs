// Loads a GGUF file with llama.cpp (node-llama-cpp), all its layers on the device, creates a context, and prints llama.cpp's own lines.
//
// usage: llama_cpp_start.mjs FOLDER FILE CONTEXT MICROBATCH FLASH_ATTENTION   FOLDER contains node_modules
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file, contextSize, batchSize, flashAttention] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(path.join(folder, "node_modules/node-llama-cpp/dist/index.js")));
const llama = await getLlama({
    gpu: "cuda", build: "never", skipDownload: true, logLevel: LlamaLogLevel.debug, logger: (_, line) => console.log(line),
});
const model = await llama.loadModel({ modelPath: file, gpuLayers: "max", useMmap: true });
// node-llama-cpp uses one size for batches and micro batches.
await model.createContext({ contextSize: +contextSize, batchSize: +batchSize, flashAttention: flashAttention === "1" });
await new Promise((resolve) => setTimeout(resolve, 500)); // llama.cpp's lines arrive later
process.exit(0);

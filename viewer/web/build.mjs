// Builds the page: one self-contained HTML file, with a content security policy that blocks all network access. Usage: node build.mjs
// ENGINE.wasm OUTPUT.html
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [enginePath, outputPath] = process.argv.slice(2);
if (!outputPath) {
    console.error("usage: node build.mjs ENGINE.wasm OUTPUT.html");
    process.exit(2);
}

async function bundle(entry) {
    const result = await build({
        entryPoints: [join(here, "src", entry)],
        bundle: true,
        minify: true,
        format: "iife",
        target: ["chrome111", "firefox113", "safari16.4"],
        charset: "ascii",
        write: false,
        legalComments: "none",
    });
    return result.outputFiles[0].text.trim();
}

// Text inside <script> must not end it.
const safe = (script) => script.replaceAll("</script", "<\\/script");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const packed = (bytes) => gzipSync(bytes, { level: 9 }).toString("base64");

const engine = packed(readFileSync(enginePath));
const boot = safe(await bundle("boot.ts"));
const [style, worker, painting, main] = await Promise.all(["style.css", "worker.ts", "draw/painting.ts", "main.ts"].map(bundle));
const parts = packed(JSON.stringify({ style, worker, painting, main }));
const policy = [
    "default-src 'none'",
    `script-src ${hash(boot)} ${hash(main)} 'wasm-unsafe-eval' blob:`,
    `style-src ${hash(style)}`,
    "worker-src blob:",
    "img-src blob: data:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
].join("; ");

// Replace with functions, so that "$&" and similar text is literal.
const fill = (template, parts) => Object.entries(parts).reduce((page, [name, text]) => page.replace(`{{${name}}}`, () => text), template);
const page = fill(readFileSync(join(here, "src", "index.html"), "utf8"), { policy, engine, parts, boot });
writeFileSync(outputPath, page);
console.log(`${outputPath}: ${Buffer.byteLength(page)} bytes`);

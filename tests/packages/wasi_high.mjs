// Tests every WASI call of the npm package that takes an address, with addresses beyond 2 GiB, which arrive as negative numbers. usage:
// wasi_high.mjs FOLDER-OF-THE-PACKAGE
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { Wasi } = await import(pathToFileURL(path.resolve(process.argv[2], "wasi.mjs")));
const HIGH = 2 ** 31 + 4096;
const TABLE = HIGH + 1024;
const OUT = HIGH + 2048;
const DATA = HIGH + 4096;
const ROOT = 3;
const ALL = (1n << 30n) - 1n;
const signed = (address) => address | 0;

const folder = mkdtempSync(path.join(tmpdir(), "vram-wasi-"));
const wasi = new Wasi({ args: ["vram"], env: { NAME: "value" }, toHost: (name) => name });
const memory = new WebAssembly.Memory({ initial: HIGH / 65536 + 2 });
wasi.start({ exports: { memory, _start() {} } });
const calls = wasi.imports();
const view = new DataView(memory.buffer);
const text = (address, length) => Buffer.from(memory.buffer, address, length).toString();
const put = (address, words) => Buffer.from(memory.buffer, address).write(words);
const must = (name, ...values) => assert.equal(calls[name](...values), 0, name);

try {
    // Opens a path, writes and reads.
    const name = path.join(folder, "a file");
    const length = put(HIGH, name.slice(1));
    const open = (how) => {
        must("path_open", ROOT, 1, signed(HIGH), length, how, ALL, ALL, 0, signed(OUT));
        return view.getUint32(OUT, true);
    };
    view.setUint32(TABLE, DATA, true);
    view.setUint32(TABLE + 4, put(DATA, "high above"), true);
    let file = open(1 | 8);
    must("fd_write", file, signed(TABLE), 1, signed(OUT));
    assert.equal(view.getUint32(OUT, true), 10);
    must("fd_close", file);
    assert.equal(readFileSync(name, "utf8"), "high above");
    writeFileSync(name, "far below!");
    file = open(0);
    must("fd_read", file, signed(TABLE), 1, signed(OUT));
    assert.equal(text(DATA, 10), "far below!");
    must("fd_seek", file, -4n, 2, signed(OUT));
    assert.equal(view.getBigUint64(OUT, true), 6n);
    must("fd_filestat_get", file, signed(OUT));
    assert.equal(view.getBigUint64(OUT + 32, true), BigInt(statSync(name).size));
    must("path_filestat_get", ROOT, 1, signed(HIGH), length, signed(OUT));
    assert.equal(view.getBigUint64(OUT + 32, true), 10n);

    must("environ_sizes_get", signed(OUT), signed(OUT + 4));
    must("environ_get", signed(TABLE), signed(DATA));
    assert.equal(text(view.getUint32(TABLE, true), 10), "NAME=value");
    must("clock_time_get", 1, 0n, signed(OUT));
    must("random_get", signed(DATA), 16);
    must("path_rename", ROOT, signed(HIGH), length, ROOT, signed(HIGH), length);
    must("path_unlink_file", ROOT, signed(HIGH), length);
    // A number that is not a descriptor is rejected.
    assert.equal(calls.fd_close(-1), 8);
    console.log("ok");
} finally {
    rmSync(folder, { recursive: true, force: true });
}

#!/usr/bin/env node
// The command `vram`: runs vram.wasm with access to this user's files and nothing else: no network, and no other program except a browser
// for `vram view`.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { isatty } from "node:tty";
import { pathsOf } from "./paths.mjs";
import { Wasi } from "./wasi.mjs";

const windows = path.sep !== "/";
const { inside, toHost } = pathsOf(windows);

const openBrowser = (target) => {
    if (process.platform === "linux" && !["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].some((name) => process.env[name])) return 0;
    const opener = { darwin: "open", win32: "explorer.exe" }[process.platform] ?? "xdg-open";
    const file = windows ? toHost(target).replaceAll("/", "\\") : target;
    spawn(opener, [file], { stdio: "ignore", detached: true }).on("error", () => {}).unref();
    return 1;
};

const env = { ...process.env, PWD: inside(process.cwd()), TMPDIR: inside(os.tmpdir()) };
if (isatty(1) && process.stdout.columns) env.COLUMNS ??= String(process.stdout.columns);
const wasi = new Wasi({ args: ["vram", ...process.argv.slice(2)], env, toHost });
const module = await WebAssembly.compile(readFileSync(new URL("vram.wasm", import.meta.url)));
const instance = await WebAssembly.instantiate(module, {
    wasi_snapshot_preview1: wasi.imports(),
    vram: { open_browser: (start, length) => openBrowser(wasi.bytes(start >>> 0, length).toString()) },
});
process.exitCode = wasi.start(instance);

// Tests how the npm package translates Windows paths for WebAssembly and back. usage: windows_paths.mjs FOLDER-OF-THE-PACKAGE
import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { pathsOf } = await import(pathToFileURL(path.resolve(process.argv[2], "paths.mjs")));
const { inside, toHost } = pathsOf(true);

// Joins a word of the command line to its folder as WebAssembly's C library does.
const joined = (folder, word) => (word.startsWith("/") ? word : `${inside(folder)}/${word}`);
const opened = (folder, word) => path.win32.resolve(toHost(joined(folder, word)));
const FOLDER = "C:\\Users\\Zoë Müller";

for (const [word, want] of [
    ["rank 0.pickle", "C:\\Users\\Zoë Müller\\rank 0.pickle"],
    ["ranks\\rank0.pickle", "C:\\Users\\Zoë Müller\\ranks\\rank0.pickle"],
    ["ranks/rank0.pickle", "C:\\Users\\Zoë Müller\\ranks\\rank0.pickle"],
    ["..\\x.pickle", "C:\\Users\\x.pickle"],
    ["D:\\data\\x.pickle", "D:\\data\\x.pickle"],
    ["D:/data/x.pickle", "D:\\data\\x.pickle"],
    ["D:\\\\data\\\\x.pickle", "D:\\data\\x.pickle"],
    ["d:\\", "d:\\"],
    ["\\\\server\\share\\x.pickle", "\\\\server\\share\\x.pickle"],
    ["snapshot of C:x.pickle", "C:\\Users\\Zoë Müller\\snapshot of C:x.pickle"],
    ["page.html#http://somewhere", "C:\\Users\\Zoë Müller\\page.html#http:\\somewhere"],
]) {
    assert.equal(opened(FOLDER, word), want, word);
}
// The folder itself, drives, and a folder on a server.
for (const folder of [FOLDER, "C:\\", "D:\\data", "\\\\server\\share", "\\\\server\\share\\run 7"]) {
    assert.equal(path.win32.resolve(toHost(inside(folder))), path.win32.resolve(folder), folder);
    assert.equal(opened(folder, "x.pickle"), path.win32.join(folder, "x.pickle"), folder);
}
assert.equal(toHost("/C:"), "C:/");
assert.equal(opened("\\\\server\\share\\a", "E:\\x.pickle"), "E:\\x.pickle");

// On other systems a path stays unchanged.
const elsewhere = pathsOf(false);
for (const name of ["/home/C:/x", "a\\b", "//x"]) assert.equal(elsewhere.toHost(elsewhere.inside(name)), name);
console.log("ok");

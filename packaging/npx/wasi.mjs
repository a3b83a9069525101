// WASI (preview 1) on top of Node's own modules: the functions that vram.wasm needs, with this user's whole file system. Does not use
// node:wasi, whose calls can end the process at a garbage collection, and write to memory that moved when the program's memory grew.
import { randomFillSync } from "node:crypto";
import fs from "node:fs";
import { isatty } from "node:tty";

const ERRORS = {
    EACCES: 2, EAGAIN: 6, EBADF: 8, EBUSY: 10, EEXIST: 20, EFBIG: 22, EILSEQ: 25, EINVAL: 28, EIO: 29, EISDIR: 31, ELOOP: 32, EMFILE: 33,
    ENAMETOOLONG: 37, ENFILE: 41, ENODEV: 43, ENOENT: 44, ENOSPC: 51, ENOSYS: 52, ENOTDIR: 54, ENOTEMPTY: 55, ENXIO: 60, EOVERFLOW: 61,
    EPERM: 63, EPIPE: 64, EROFS: 69, ESPIPE: 70, ETXTBSY: 74, EXDEV: 75,
};
const TYPE = { block: 1, character: 2, folder: 3, plain: 4, socket: 6, link: 7, unknown: 0 };
const RIGHT = { read: 1n << 1n, seek: 1n << 2n, tell: 1n << 5n, write: 1n << 6n };
const ALL_RIGHTS = (1n << 30n) - 1n;
const FIRST = 3; // descriptor of the root
const FOLLOW = 1;

const failure = (code) => Object.assign(new Error(code), { code });

// Thrown by proc_exit() to leave the program.
class Exit {
    constructor(code) {
        this.code = code;
    }
}

const sleep = (milliseconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

// Retries a call while a non-blocking pipe is not ready.
const waiting = (call) => {
    for (;;) {
        try {
            return call();
        } catch (error) {
            if (error.code === "EOF") return 0; // a pipe's end, on Windows
            if (error.code !== "EAGAIN") throw error;
            sleep(1);
        }
    }
};

const typeOf = (facts) =>
    facts.isFile() ? TYPE.plain
    : facts.isDirectory() ? TYPE.folder
    : facts.isSymbolicLink() ? TYPE.link
    : facts.isCharacterDevice() ? TYPE.character
    : facts.isBlockDevice() ? TYPE.block
    : facts.isSocket() || facts.isFIFO() ? TYPE.socket
    : TYPE.unknown;

// `toHost` turns a path below `/` into one of this system.
export class Wasi {
    constructor({ args, env, toHost }) {
        this.lists = [args, Object.entries(env).map(([name, value]) => `${name}=${value}`)].map((list) =>
            list.map((text) => Buffer.from(`${text}\0`)),
        );
        this.toHost = toHost;
        // place: position of the next byte, for plain files opened here; null if the system keeps it. path: of folders, below `/`.
        this.files = [0, 1, 2].map((host) => ({ host, place: null }));
        this.files[FIRST] = { host: null, path: "" };
    }

    // Runs the program and returns its exit code.
    start(instance) {
        this.memory = instance.exports.memory;
        try {
            instance.exports._start();
            return 0;
        } catch (error) {
            if (error instanceof Exit) return error.code;
            throw error;
        }
    }

    get view() {
        return new DataView(this.memory.buffer);
    }
    bytes(start, length) {
        return Buffer.from(this.memory.buffer, start, length);
    }
    file(number) {
        const file = this.files[number];
        if (file === undefined) throw failure("EBADF");
        return file;
    }
    below(number, start, length) {
        const { path } = this.file(number);
        if (path === undefined) throw failure("ENOTDIR");
        return `${path}/${this.bytes(start, length).toString()}`;
    }
    path(number, start, length) {
        return this.toHost(this.below(number, start, length));
    }
    *pieces(list, count) {
        for (let i = 0; i < count; i++) {
            const at = list + 8 * i;
            yield this.bytes(this.view.getUint32(at, true), this.view.getUint32(at + 4, true));
        }
    }
    putFacts(at, facts) {
        const view = this.view;
        [facts.dev, facts.ino, BigInt(typeOf(facts)), facts.nlink, facts.size, facts.atimeNs, facts.mtimeNs, facts.ctimeNs].forEach(
            (value, index) => view.setBigUint64(at + 8 * index, BigInt.asUintN(64, value), true),
        );
    }
    putList(list, pointers, at) {
        for (const bytes of list) {
            this.view.setUint32(pointers, at, true);
            this.bytes(at, bytes.length).set(bytes);
            pointers += 4;
            at += bytes.length;
        }
    }
    putSizes(list, count, bytes) {
        this.view.setUint32(count, list.length, true);
        this.view.setUint32(bytes, list.reduce((sum, one) => sum + one.length, 0), true);
    }

    // The functions, by name. An exception becomes an error number. Addresses of 2 GiB and more arrive as negative numbers.
    imports() {
        const calls = {};
        for (const name of Object.getOwnPropertyNames(Calls)) {
            if (typeof Calls[name] !== "function") continue;
            calls[name] = (...values) => {
                try {
                    return Calls[name](this, ...values.map((value) => (typeof value === "number" ? value >>> 0 : value))) ?? 0;
                } catch (error) {
                    if (error instanceof Exit) throw error;
                    return ERRORS[error.code] ?? ERRORS.EIO;
                }
            };
        }
        return calls;
    }
}

const Calls = {
    args_get: (w, pointers, at) => w.putList(w.lists[0], pointers, at),
    args_sizes_get: (w, count, bytes) => w.putSizes(w.lists[0], count, bytes),
    environ_get: (w, pointers, at) => w.putList(w.lists[1], pointers, at),
    environ_sizes_get: (w, count, bytes) => w.putSizes(w.lists[1], count, bytes),
    clock_time_get: (w, clock, _precision, at) =>
        w.view.setBigUint64(at, clock === 0 ? BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n : process.hrtime.bigint(), true),
    random_get: (w, at, length) => void randomFillSync(w.bytes(at, length)),
    proc_exit: (_w, code) => {
        throw new Exit(code);
    },
    // Waits only for clocks, because files are always ready.
    poll_oneoff: (w, asked, answers, count, counted) => {
        for (let i = 0; i < count; i++) {
            const [at, to] = [asked + 48 * i, answers + 32 * i];
            const clock = w.view.getUint8(at + 8) === 0;
            if (clock) sleep(Number(w.view.getBigUint64(at + 24, true)) / 1e6);
            w.bytes(to, 32).fill(0);
            w.view.setBigUint64(to, w.view.getBigUint64(at, true), true);
            w.view.setUint8(to + 10, w.view.getUint8(at + 8));
        }
        w.view.setUint32(counted, count, true);
    },

    fd_prestat_get: (w, number, at) => {
        if (number !== FIRST) throw failure("EBADF");
        w.view.setUint32(at, 0, true);
        w.view.setUint32(at + 4, 1, true);
    },
    fd_prestat_dir_name: (w, _number, at) => void w.bytes(at, 1).write("/"),
    fd_close: (w, number) => {
        const file = w.file(number);
        delete w.files[number];
        if (file.host !== null && number > FIRST) fs.closeSync(file.host);
    },
    fd_fdstat_get: (w, number, at) => {
        const file = w.file(number);
        const terminal = file.host !== null && isatty(file.host);
        w.bytes(at, 24).fill(0);
        w.view.setUint8(at, file.host === null ? TYPE.folder : typeOf(fs.fstatSync(file.host)));
        // WASI recognizes a terminal by the lack of a position that can be changed.
        w.view.setBigUint64(at + 8, terminal ? ALL_RIGHTS & ~(RIGHT.seek | RIGHT.tell) : ALL_RIGHTS, true);
        w.view.setBigUint64(at + 16, ALL_RIGHTS, true);
    },
    fd_fdstat_set_flags: () => {},
    fd_sync: (w, number) => fs.fsyncSync(w.file(number).host),
    fd_filestat_get: (w, number, at) => {
        const { host } = w.file(number);
        w.putFacts(at, host === null ? fs.statSync(w.toHost("/"), { bigint: true }) : fs.fstatSync(host, { bigint: true }));
    },
    fd_filestat_set_size: (w, number, size) => fs.ftruncateSync(w.file(number).host, Number(size)),
    fd_seek: (w, number, offset, whence, at) => {
        const file = w.file(number);
        if (file.place === null || file.place === undefined) throw failure("ESPIPE");
        const base = whence === 0 ? 0 : whence === 1 ? file.place : fs.fstatSync(file.host).size;
        if (base + Number(offset) < 0) throw failure("EINVAL");
        file.place = base + Number(offset);
        w.view.setBigUint64(at, BigInt(file.place), true);
    },
    fd_read: (w, number, list, count, at) => {
        const file = w.file(number);
        let sum = 0;
        for (const piece of w.pieces(list, count)) {
            const got = piece.length === 0 ? 0 : waiting(() => fs.readSync(file.host, piece, 0, piece.length, file.place));
            if (file.place !== null) file.place += got;
            sum += got;
            if (got < piece.length) break;
        }
        w.view.setUint32(at, sum, true);
    },
    fd_write: (w, number, list, count, at) => {
        const file = w.file(number);
        let sum = 0;
        for (const piece of w.pieces(list, count)) {
            for (let done = 0; done < piece.length; ) {
                const put = waiting(() => fs.writeSync(file.host, piece, done, piece.length - done, file.place));
                if (file.place !== null) file.place += put;
                done += put;
            }
            sum += piece.length;
        }
        w.view.setUint32(at, sum, true);
    },
    fd_readdir: (w, number, at, length, cookie, used) => {
        const file = w.file(number);
        if (file.path === undefined) throw failure("ENOTDIR");
        if (cookie === 0n) file.list = fs.readdirSync(w.toHost(file.path === "" ? "/" : file.path), { withFileTypes: true });
        let filled = 0;
        for (let i = Number(cookie); i < file.list.length && filled < length; i++) {
            const name = Buffer.from(file.list[i].name);
            const entry = Buffer.alloc(24 + name.length);
            entry.writeBigUInt64LE(BigInt(i + 1), 0);
            entry.writeUInt32LE(name.length, 16);
            entry.writeUInt8(typeOf(file.list[i]), 20);
            name.copy(entry, 24);
            filled += entry.copy(w.bytes(at + filled, length - filled));
        }
        w.view.setUint32(used, filled, true);
    },

    path_open: (w, folder, follow, start, length, how, rights, _inherited, flags, at) => {
        const below = w.below(folder, start, length);
        const [reads, writes] = [(rights & RIGHT.read) !== 0n, (rights & RIGHT.write) !== 0n];
        const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = fs.constants;
        const wanted = [[1, O_CREAT], [2, O_DIRECTORY], [4, O_EXCL], [8, O_TRUNC]].reduce((sum, [bit, flag]) => sum | (how & bit ? flag : 0), 0);
        const access = writes && (how & 2) === 0 ? (reads ? O_RDWR : O_WRONLY) : O_RDONLY;
        const append = (flags & 1) !== 0;
        // A new file is renamed when it is complete; until then only this user can read it.
        const host = fs.openSync(w.toHost(below), access | wanted | (append ? O_APPEND : 0) | (follow & FOLLOW ? 0 : O_NOFOLLOW), how & 4 ? 0o600 : 0o666);
        const facts = fs.fstatSync(host);
        let number = FIRST + 1;
        while (w.files[number] !== undefined) number++;
        w.files[number] = { host, place: facts.isFile() && !append ? 0 : null, path: facts.isDirectory() ? below : undefined };
        w.view.setUint32(at, number, true);
    },
    path_filestat_get: (w, folder, follow, start, length, at) => {
        const path = w.path(folder, start, length);
        w.putFacts(at, (follow & FOLLOW ? fs.statSync : fs.lstatSync)(path, { bigint: true }));
    },
    path_filestat_set_times: () => {},
    path_create_directory: (w, folder, start, length) => fs.mkdirSync(w.path(folder, start, length), 0o700),
    path_remove_directory: (w, folder, start, length) => fs.rmdirSync(w.path(folder, start, length)),
    path_unlink_file: (w, folder, start, length) => fs.unlinkSync(w.path(folder, start, length)),
    path_rename: (w, from, start, length, to, newStart, newLength) =>
        fs.renameSync(w.path(from, start, length), w.path(to, newStart, newLength)),
    path_readlink: (w, folder, start, length, at, room, used) => {
        const target = Buffer.from(fs.readlinkSync(w.path(folder, start, length)));
        w.view.setUint32(used, target.copy(w.bytes(at, room)), true);
    },
};

/* Runs the tool's commands, in a worker: there files can be read by slices while a command waits.
 * Messages in: {files: [[path, File], ...]} once, then {id, words: ["lint", ...]}.
 * Message out: {id, code, out, err}. WASM is what build.sh puts in: the module in base64. */
'use strict';

/* Numbers of WASI (wasi_snapshot_preview1). */
const OK = 0, BADF = 8, NOENT = 44, NOSYS = 52, NOTDIR = 54, INVAL = 28;
const FOLDER = 3, REGULAR = 4, CHARACTERS = 2;
const ROOT = 3; /* the file descriptor of "/" */
const decoder = new TextDecoder(), encoder = new TextEncoder();

class Exit extends Error {
    constructor(code) {
        super('exit');
        this.code = code;
    }
}

/* Paths without "/" in front; folders are the beginnings of paths. */
class Files {
    constructor(pairs) {
        this.files = new Map(pairs);
        this.folders = new Map([['', new Set()]]);
        for (const [path] of pairs) {
            const words = path.split('/');
            for (let i = 0; i < words.length; i++) {
                const folder = words.slice(0, i).join('/');
                if (!this.folders.has(folder)) this.folders.set(folder, new Set());
                this.folders.get(folder).add(words[i]);
            }
        }
    }

    find(path) {
        const words = [];
        for (const word of path.split('/')) {
            if (word === '..') words.pop();
            else if (word !== '' && word !== '.') words.push(word);
        }
        const name = words.join('/');
        if (this.files.has(name)) return { file: this.files.get(name), name };
        return this.folders.has(name) ? { folder: this.folders.get(name), name } : null;
    }
}

/* One run of the module. */
class Run {
    constructor(files, words) {
        this.files = files;
        this.words = words.map((word) => encoder.encode(word + '\0'));
        this.open = new Map([[ROOT, files.find('')]]);
        this.next = ROOT + 1;
        this.text = [null, [], []];
        this.reader = new FileReaderSync();
    }

    get view() { return new DataView(this.memory.buffer); }

    bytes(at, size) { return new Uint8Array(this.memory.buffer, at, size); }

    put64(at, value) { this.view.setBigUint64(at, BigInt(value), true); }

    vectors(at, count) {
        const list = [];
        for (let i = 0; i < count; i++)
            list.push([this.view.getUint32(at + 8 * i, true),
                       this.view.getUint32(at + 8 * i + 4, true)]);
        return list;
    }

    list(words, pointers, at) {
        for (const word of words) {
            this.view.setUint32(pointers, at, true);
            this.bytes(at, word.length).set(word);
            pointers += 4;
            at += word.length;
        }
        return OK;
    }

    put_stat(at, found) {
        this.bytes(at, 64).fill(0);
        this.view.setUint8(at + 16, found.file ? REGULAR : FOLDER);
        this.put64(at + 24, 1);
        this.put64(at + 32, found.file ? found.file.size : 0);
        return OK;
    }

    read(fd, vectors, count, from, done) {
        const found = this.open.get(fd);
        let at = from, total = 0;
        if (!found || !found.file) return BADF;
        for (const [to, size] of this.vectors(vectors, count)) {
            const end = Math.min(at + size, found.file.size);
            if (end <= at) break;
            const slice = new Uint8Array(this.reader.readAsArrayBuffer(found.file.slice(at, end)));
            this.bytes(to, slice.length).set(slice);
            total += slice.length;
            at = end;
        }
        this.view.setUint32(done, total, true);
        return OK;
    }

    calls() {
        return {
            args_sizes_get: (count, size) => {
                this.view.setUint32(count, this.words.length, true);
                this.view.setUint32(size, this.words.reduce((sum, w) => sum + w.length, 0), true);
                return OK;
            },
            args_get: (pointers, at) => this.list(this.words, pointers, at),
            environ_sizes_get: (count, size) => {
                this.view.setUint32(count, 0, true);
                this.view.setUint32(size, 0, true);
                return OK;
            },
            environ_get: () => OK,
            clock_time_get: (id, precision, at) => {
                this.put64(at, Math.round(performance.now() * 1e6));
                return OK;
            },
            proc_exit: (code) => { throw new Exit(code); },
            fd_write: (fd, vectors, count, done) => {
                let total = 0;
                if (fd !== 1 && fd !== 2) return BADF;
                for (const [at, size] of this.vectors(vectors, count)) {
                    this.text[fd].push(this.bytes(at, size).slice());
                    total += size;
                }
                this.view.setUint32(done, total, true);
                return OK;
            },
            fd_fdstat_get: (fd, at) => {
                const found = this.open.get(fd);
                if (fd > 2 && !found) return BADF;
                this.bytes(at, 24).fill(0);
                this.view.setUint8(at, fd <= 2 ? CHARACTERS : found.file ? REGULAR : FOLDER);
                this.put64(at + 8, 0x1fffffff);
                this.put64(at + 16, 0x1fffffff);
                return OK;
            },
            fd_prestat_get: (fd, at) => {
                if (fd !== ROOT) return BADF;
                this.view.setUint32(at, 0, true);
                this.view.setUint32(at + 4, 1, true);
                return OK;
            },
            fd_prestat_dir_name: (fd, at) => {
                this.bytes(at, 1).set([47]);
                return OK;
            },
            path_open: (fd, flags, at, size, how, rights, more, extra, result) => {
                const found = this.files.find(decoder.decode(this.bytes(at, size)));
                if (!found) return NOENT;
                if ((how & 2) !== 0 && !found.folder) return NOTDIR;
                this.open.set(this.next, found);
                this.view.setUint32(result, this.next++, true);
                return OK;
            },
            path_filestat_get: (fd, flags, at, size, to) => {
                const found = this.files.find(decoder.decode(this.bytes(at, size)));
                return found ? this.put_stat(to, found) : NOENT;
            },
            fd_filestat_get: (fd, to) => {
                const found = this.open.get(fd);
                return found ? this.put_stat(to, found) : BADF;
            },
            fd_close: (fd) => (this.open.delete(fd) ? OK : BADF),
            fd_seek: (fd, offset, whence, to) => {
                const found = this.open.get(fd);
                if (!found || !found.file) return BADF;
                const from = [0, found.at || 0, found.file.size][whence];
                if (from === undefined || from + Number(offset) < 0) return INVAL;
                const opened = { ...found, at: from + Number(offset) };
                this.open.set(fd, opened);
                this.put64(to, opened.at);
                return OK;
            },
            fd_pread: (fd, vectors, count, offset, done) =>
                this.read(fd, vectors, count, Number(offset), done),
            fd_read: (fd, vectors, count, done) => {
                const found = this.open.get(fd);
                const code = this.read(fd, vectors, count, (found && found.at) || 0, done);
                if (code === OK)
                    this.open.set(fd, { ...found,
                                        at: (found.at || 0) + this.view.getUint32(done, true) });
                return code;
            },
            fd_readdir: (fd, at, room, cookie, done) => {
                const found = this.open.get(fd);
                let used = 0, number = 0;
                if (!found || !found.folder) return BADF;
                for (const name of [...found.folder].sort()) {
                    number++;
                    if (number <= Number(cookie)) continue;
                    const text = encoder.encode(name), entry = new Uint8Array(24 + text.length);
                    const head = new DataView(entry.buffer);
                    const inner = this.files.find(`${found.name}/${name}`);
                    head.setBigUint64(0, BigInt(number), true);
                    head.setBigUint64(8, BigInt(number), true);
                    head.setUint32(16, text.length, true);
                    head.setUint8(20, inner && inner.file ? REGULAR : FOLDER);
                    entry.set(text, 24);
                    const part = entry.subarray(0, Math.min(entry.length, room - used));
                    this.bytes(at + used, part.length).set(part);
                    used += part.length;
                    if (used === room) break;
                }
                this.view.setUint32(done, used, true);
                return OK;
            },
        };
    }

    /* What the module asks for and nobody needs here is refused. */
    imports(module) {
        const calls = this.calls(), found = {};
        for (const wanted of WebAssembly.Module.imports(module))
            found[wanted.name] = calls[wanted.name] || (() => NOSYS);
        return { wasi_snapshot_preview1: found };
    }

    start(module) {
        const instance = new WebAssembly.Instance(module, this.imports(module));
        let code = 0;
        this.memory = instance.exports.memory;
        try {
            instance.exports._start();
        } catch (error) {
            if (!(error instanceof Exit)) throw error;
            code = error.code;
        }
        const text = this.text.map((parts) => parts && new Blob(parts));
        return { code, out: text[1], err: text[2] };
    }
}

let module = null, files = new Files([]);

function decode(base64) {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

self.onmessage = async (event) => {
    const { id, words } = event.data;
    if (event.data.files) {
        files = new Files(event.data.files);
        return;
    }
    try {
        module = module || await WebAssembly.compile(decode(WASM));
        const done = new Run(files, ['epctx', ...words]).start(module);
        self.postMessage({ id, ...done });
    } catch (error) {
        const text = `epctx: the module ended: ${error.message}\n`;
        self.postMessage({ id, code: 1, out: new Blob([]), err: new Blob([text]) });
    }
};

/* The page around the tool: takes files, shows what the commands print. Text from files reaches the
 * page as text only; the page of `view` is shown in a frame of its own. */
'use strict';

/* A page has no memory for more; the rest is looked at by slices. */
const MOST = 512 * 1024 * 1024;
const by_id = (id) => document.getElementById(id);
const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' })));
const waiting = new Map();
let number = 0, models = [], current = null;

worker.onmessage = (event) => {
    waiting.get(event.data.id)(event.data);
    waiting.delete(event.data.id);
};

function run(...words) {
    return new Promise((done) => {
        waiting.set(++number, done);
        worker.postMessage({ id: number, words });
    });
}

/* -- files that are dropped or chosen -- */

function entries_of(folder) {
    const reader = folder.createReader(), found = [];
    return new Promise((done, failed) => {
        const more = () => reader.readEntries((part) => {
            found.push(...part);
            if (part.length > 0) more();
            else done(found);
        }, failed);
        more();
    });
}

async function collect(entry, to) {
    if (entry.isFile) {
        const file = await new Promise((done, failed) => entry.file(done, failed));
        to.push([entry.fullPath.replace(/^\/+/, ''), file]);
        return;
    }
    for (const inner of await entries_of(entry)) await collect(inner, to);
}

async function dropped(transfer) {
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const files = [];
    for (const entry of entries) await collect(entry, files);
    await show_files(files);
}

function chosen(list) {
    return show_files([...list].map((file) => [file.webkitRelativePath || file.name, file]));
}

async function show_files(files) {
    files.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    worker.postMessage({ files });
    models = files.filter(([path]) => /\.(onnx|ort|model)$/i.test(path));
    if (models.length === 0) models = files;
    by_id('models').replaceChildren(...models.map(([path, file]) => {
        const button = document.createElement('button');
        button.textContent = path;
        button.title = `${file.size.toLocaleString('en')} bytes`;
        button.onclick = () => show_model(path);
        return button;
    }));
    by_id('tabs').hidden = models.length === 0;
    if (models.length > 0) await show_model(models[0][0]);
}

/* -- one model -- */

const tabs = {
    view: (path) => ['view', path, '-o', '-'],
    info: (path) => ['info', path],
    lint: (path) => ['lint', '--hints', path],
    ls: (path) => ['ls', path],
    scan: (path) => ['scan', path],
};

function show_model(path) {
    const file = models.find(([name]) => name === path)[1];
    current = path;
    for (const button of by_id('models').children)
        button.setAttribute('aria-current', button.textContent === path);
    return show_tab(file.size > MOST ? 'scan' : 'view');
}

async function show_tab(name) {
    const path = current, frame = by_id('frame'), text = by_id('text');
    for (const button of by_id('tabs').children)
        button.setAttribute('aria-current', button.dataset.tab === name);
    by_id('state').textContent = 'working ...';
    const done = await run(...tabs[name](`/${path}`));
    if (current !== path) return;
    const said = await done.err.text();
    const page = name === 'view' && done.code === 0;
    frame.hidden = !page;
    text.hidden = page;
    if (frame.src) URL.revokeObjectURL(frame.src);
    if (page) frame.src = URL.createObjectURL(new Blob([done.out], { type: 'text/html' }));
    else text.textContent = await done.out.text() + said;
    by_id('state').textContent = `${path}: ${name}`;
}

for (const button of by_id('tabs').children)
    button.onclick = () => show_tab(button.dataset.tab);
by_id('choose').onchange = (event) => chosen(event.target.files);
by_id('folder').onchange = (event) => chosen(event.target.files);
document.ondragover = (event) => event.preventDefault();
document.ondrop = (event) => {
    event.preventDefault();
    dropped(event.dataTransfer);
};

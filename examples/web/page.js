/* The page around the tool: takes files, shows what the commands print. Text from files reaches the
 * page as text only; the page of `view` is shown in a frame of its own. */
'use strict';

/* A page has no memory for more; the rest is looked at by slices. */
const MOST = 512 * 1024 * 1024;
const by_id = (id) => document.getElementById(id);
const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' })));
const waiting = new Map();
let number = 0, models = [], given = [], current = null, missing = [];

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
    const files = [], entries = [];
    /* What is dropped can be asked for in this event only. */
    for (const item of transfer.items) {
        const entry = item.webkitGetAsEntry(), file = entry ? null : item.getAsFile();
        if (entry) entries.push(entry);
        else if (file) files.push([file.name, file]);
    }
    for (const entry of entries) await collect(entry, files);
    await show_files(files);
}

function chosen(list) {
    return show_files([...list].map((file) => [file.webkitRelativePath || file.name, file]));
}

const is_model = ([path]) => /\.(onnx|ort|model)$/i.test(path);

/* Files without a model come to the model that is shown: the one that is missed by that name, or
 * what stands beside it. */
function beside(files) {
    const folder = current.replace(/[^/]*$/, '');
    const added = files.map(([path, file]) => {
        const wanted = missing.find((name) => `/${name}`.endsWith(`/${path.replace(/.*\//, '')}`));
        return [folder + (wanted || path), file];
    });
    const names = new Set(added.map(([path]) => path));
    return [...given.filter(([path]) => !names.has(path)), ...added];
}

async function show_files(files) {
    const more = current !== null && !files.some(is_model) && given.some(is_model);
    const before = current;
    if (files.length === 0) return;
    by_id('state').textContent = 'working ...';
    given = more ? beside(files) : files;
    given.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    worker.postMessage({ files: given });
    document.body.classList.remove('empty');
    models = given.filter(is_model);
    if (models.length === 0) models = given;
    by_id('models').replaceChildren(...models.map(([path, file]) => {
        const button = document.createElement('button');
        button.textContent = path;
        button.title = `${file.size.toLocaleString('en')} bytes`;
        button.onclick = () => show_model(path);
        return button;
    }));
    by_id('tabs').hidden = models.length === 0;
    await show_model(more ? before : models[0][0]);
}

/* -- one model -- */

const tabs = {
    view: (path) => ['view', path, '-o', '-'],
    info: (path) => ['info', path],
    lint: (path) => ['lint', '--hints', path],
    ls: (path) => ['ls', path],
    scan: (path) => ['scan', path],
};

/* As a command has it: from the folder that was dropped, and no option. */
const operand = (path) => (path.startsWith('-') ? `./${path}` : path);

/* Which files the model needs that did not come with it. */
async function tell_missing(path) {
    const done = await run('info', '--json', operand(path));
    if (current !== path) return;
    const info = done.out.size > 0 ? JSON.parse(await done.out.text()) : {};
    missing = (info.files || []).filter((file) => file.required && file.path === null)
        .map((file) => file.name);
    by_id('missing').hidden = missing.length === 0;
    const names = missing.map((name) => `'${name}'`).join(', ');
    by_id('missing').textContent =
        `${path} needs ${names}, which did not come with it: drop it here, too.`;
}

async function show_model(path) {
    const file = models.find(([name]) => name === path)[1];
    current = path;
    missing = [];
    by_id('missing').hidden = true;
    if (file.size <= MOST) await tell_missing(path);
    for (const button of by_id('models').children)
        button.setAttribute('aria-current', button.textContent === path);
    return show_tab(file.size > MOST ? 'scan' : 'view');
}

async function show_tab(name) {
    const path = current, frame = by_id('frame'), text = by_id('text');
    for (const button of by_id('tabs').children)
        button.setAttribute('aria-current', button.dataset.tab === name);
    by_id('state').textContent = 'working ...';
    const done = await run(...tabs[name](operand(path)));
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
document.ondragover = (event) => {
    event.preventDefault();
    document.body.classList.add('over');
};
document.ondragleave = (event) => {
    if (event.relatedTarget === null) document.body.classList.remove('over');
};
document.ondrop = (event) => {
    event.preventDefault();
    document.body.classList.remove('over');
    dropped(event.dataTransfer);
};

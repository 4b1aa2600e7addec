'use strict';
/* Uses the pages of `epctx view` as a reader does, in headless Chromium: clicks, keys, wheel.

     node tests/judge/view.js FOLDER

   FOLDER has the pages that tests/test_view.sh makes; pictures of them are put there, too.
   EPCTX_PLAYWRIGHT is the folder of playwright-core. */

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const {pathToFileURL} = require('url');
const {chromium} = require(process.env.EPCTX_PLAYWRIGHT);

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const FIRST_PICTURE = 2000, SEARCH = 200, REDRAW = 200; /* ms */
const folder = path.resolve(process.argv[2]);
let browser, failed = 0;

const addressOf = (name) => pathToFileURL(path.join(folder, name + '.html')).href;

const settle = (page) => page.evaluate(() =>
    new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/* A page with what went wrong in it; nothing may be asked of any network. */
async function open(name, options) {
    const context = await browser.newContext({viewport: {width: 1280, height: 800}, ...options});
    const page = await context.newPage(), address = addressOf(name);
    page.wrong = [];
    page.on('console', (message) => {
        /* An advice for those who read pixels, as the tests do. */
        if (!message.text().includes('willReadFrequently')) page.wrong.push(message.text());
    });
    page.on('pageerror', (error) => page.wrong.push(error.stack || String(error)));
    page.on('dialog', (dialog) => {
        page.wrong.push('a dialog');
        dialog.dismiss();
    });
    page.on('request', (request) => {
        if (!request.url().startsWith('blob:') && request.url().split('#')[0] !== address)
            page.wrong.push('it asks for ' + request.url());
    });
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.first);
    return page;
}

const data = (page, index = 0) => page.locator('.picture canvas').nth(index)
    .evaluate((canvas) => ({...canvas.dataset}));
const panel = (page) => page.locator('#body').innerText();

function want(what, good, found) {
    if (!good) throw new Error(what + ', found ' + JSON.stringify(found));
}
const same = (what, found, expected) =>
    want(what + ': expected ' + JSON.stringify(expected), found === expected, found);
const holds = (what, text, part) => want(what + ': expected ' + part, text.includes(part),
    text.slice(0, 600));

async function find(page, words) {
    await page.fill('#search', words);
    await page.press('#search', 'Enter');
    await settle(page);
}

async function centre(page, index = 0) {
    const box = await page.locator('.picture canvas').nth(index).boundingBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
}

const shot = (page, name) => page.screenshot({path: path.join(folder, name + '.png')});

async function test(name, pages, run, options) {
    const opened = [];
    try {
        for (const one of pages) opened.push(await open(one, options));
        await run(...opened);
        for (const page of opened)
            want('no message of the browser', page.wrong.length === 0, page.wrong);
        console.log('ok ' + name);
    } catch (error) {
        failed++;
        console.log('FAIL ' + name + ': ' + error.message.split('\n').slice(0, 4).join(' '));
        if (opened[0]) await shot(opened[0], 'failed').catch(() => {});
    }
    for (const page of opened) await page.context().close();
}

/* Names of the tabs, each opened once. */
async function openTabs(page) {
    const count = await page.locator('#tabs button').count(), names = [];
    for (let i = 0; i < count; i++) {
        await page.locator('#tabs button').nth(i).click();
        names.push(await page.locator('#tabs button').nth(i).innerText());
    }
    return names;
}

/* Text of the panel and the bars that is hard to read: WCAG's contrast below 4.5. */
const PALE = () => {
    const channel = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) =>
        0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
    const found = [];
    for (const element of document.querySelectorAll('header *, .title *, .legend *, aside *')) {
        const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== '');
        if (!own || element.offsetParent === null) continue;
        let back = element;
        while (parts(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
        const pair = [getComputedStyle(element).color, getComputedStyle(back).backgroundColor]
            .map((colour) => light(parts(colour))).sort((a, b) => b - a);
        const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
        if (contrast < 4.5) found.push(element.textContent.slice(0, 40) + contrast.toFixed(1));
    }
    return found;
};

async function plain() {
    await test('a model: picture, click, panel', ['model'], async (page) => {
        same('items', (await data(page)).items, '5');
        await shot(page, 'model');
        await find(page, 'conv');
        same('found', (await data(page)).selected, 'conv');
        await page.keyboard.press('Escape');
        await settle(page);
        same('nothing is selected', (await data(page)).selected, '');
        await page.mouse.click(...await centre(page));
        await settle(page);
        same('clicked', (await data(page)).selected, 'conv');
        same('operator', await page.innerText('#node-op'), 'Conv');
        const text = await panel(page);
        for (const part of ['kernel_shape', '[3, 3]', 'float32[1,1,6,6]',
            'float32[2,1,3,3], 72 bytes', 'float32[2], 8 bytes, [-0.625, 0.25]',
            'input of the main graph', '2 initializers'])
            holds('panel', text, part);
        await page.click('#body .link:has-text("Relu")');
        await settle(page);
        same('the reader of its output', await page.innerText('#node-op'), 'Relu');
        await page.click('#body .link:has-text("Conv")');
        same('and back', await page.innerText('#node-op'), 'Conv');
    });
    await test('pan, zoom, fit', ['model'], async (page) => {
        const [x, y] = await centre(page), before = await data(page);
        await page.mouse.move(x, y);
        await page.mouse.wheel(0, -300);
        await settle(page);
        const near = await data(page);
        want('the wheel zooms in', Number(near.scale) > Number(before.scale) * 1.3, near.scale);
        await page.mouse.down();
        await page.mouse.move(x + 100, y + 50, {steps: 5});
        await page.mouse.up();
        await settle(page);
        const moved = await data(page);
        const by = (Number(near.x) - Number(moved.x)) * Number(near.scale);
        want('dragging moves by 100 pixels', Math.abs(by - 100) < 1, by);
        same('dragging selects nothing', moved.selected, undefined);
        await page.click('#out');
        await settle(page);
        want('out', Number((await data(page)).scale) < Number(moved.scale), moved.scale);
        await page.click('#fit');
        await settle(page);
        same('fit', (await data(page)).scale, before.scale);
    });
    await test('without a mouse', ['folds'], async (page) => {
        await page.keyboard.press('/');
        await page.keyboard.type('if');
        await page.keyboard.press('Enter');
        await settle(page);
        same('the first hit', await page.innerText('#node-op'), 'If');
        const before = Number((await data(page)).items);
        await page.keyboard.press('Enter');
        await settle(page);
        want('Enter unfolds', Number((await data(page)).items) > before, before);
        await page.keyboard.press('n');
        await page.keyboard.press('n');
        await page.keyboard.press('p');
        await settle(page);
        want('n and p select', (await data(page)).selected.length > 0, await data(page));
        await page.keyboard.press('Tab');
        await page.keyboard.press('ArrowRight');
        holds('the next tab', await page.innerText('#tabs button[aria-selected=true]'), 'Files');
        await page.locator('.picture canvas').focus();
        const from = await data(page);
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('+');
        await settle(page);
        const to = await data(page);
        want('arrow keys and + move', from.y !== to.y && from.scale !== to.scale, to);
        await page.keyboard.press('0');
        await page.click('#help');
        want('the keys are listed', await page.isVisible('#keys'), false);
    });
    await test('search', ['folds'], async (page) => {
        await page.fill('#search', 'outer sqrt');
        same('name', await page.getAttribute('#results', 'data-count'), '1');
        await page.fill('#search', 'test.fun:INNER');
        same('operator', await page.getAttribute('#results', 'data-count'), '1');
        await page.fill('#search', 'choice/then_branch_n');
        want('value', Number(await page.getAttribute('#results', 'data-count')) > 1, 0);
        await page.fill('#search', 'choice/then_branch inner/else_branch exp');
        await page.press('#search', 'ArrowDown');
        await page.keyboard.press('Enter');
        await settle(page);
        same('in a body of a body', (await data(page)).selected,
            'choice/then_branch inner/else_branch exp');
        await find(page, 'inner abs');
        same('in a function', (await data(page)).selected, 'Inner abs');
        same('which is shown', await page.locator('select').evaluate((s) =>
            s.selectedOptions[0].text), 'function test.fun:Inner');
        await find(page, 'there is no such thing');
        same('nothing', await page.getAttribute('#results', 'data-count'), '0');
    });
}

async function folds() {
    await test('bodies and functions unfold', ['folds'], async (page) => {
        same('folded', (await data(page)).items, '8');
        await find(page, 'choice');
        /* Its sign is in the corner of the node, which stands in the middle. */
        const [x, y] = await centre(page), d = await data(page);
        let hit = false;
        for (let dx = 10; dx < 120 && !hit; dx += 4) {
            await page.mouse.click(x + dx, y - 10 * Number(d.scale));
            await settle(page);
            hit = Number((await data(page)).items) > 8;
        }
        want('a click on + unfolds', hit, await data(page));
        await shot(page, 'unfolded');
        await page.click('#body button:has-text("Fold")');
        await settle(page);
        same('the button folds', (await data(page)).items, '8');
        await page.click('#unfold');
        await settle(page);
        same('all', (await data(page)).items, '48');
        await shot(page, 'all');
        same('the panel knows', await page.innerText('#body button >> nth=0'), 'Fold');
        await page.click('#fold');
        await settle(page);
        same('none', (await data(page)).items, '8');
        await page.selectOption('select', {label: 'function test.fun:Outer'});
        await settle(page);
        same('a function alone', (await data(page)).items, '4');
    });
    await test('constants', ['folds'], async (page) => {
        const before = Number((await data(page)).items);
        await find(page, 'by seven');
        holds('its value', await panel(page), 'float32[], 4 bytes, 7');
        await page.click('.title button');
        await settle(page);
        same('it is drawn', Number((await data(page)).items), before + 1);
        await page.click('.title button');
        await settle(page);
        same('and not', Number((await data(page)).items), before);
        await page.click('#body .link:has-text("Constant")');
        await settle(page);
        same('clicked', (await data(page)).selected, 'constant');
    });
    await test('no valid model: cycles, recursion', ['bad'], async (page) => {
        await openTabs(page);
        await page.click('#unfold');
        await settle(page);
        want('unfolding ends', Number((await data(page)).items) < 100000, await data(page));
        await page.click('#fold');
        for (let i = 0; i < 4; i++) {
            await page.locator('.picture canvas').focus();
            await page.keyboard.press('n');
            await page.keyboard.press('Enter');
        }
        await find(page, 'left');
        holds('a value that nobody makes', await panel(page), 'nobody makes it');
    });
}

async function tabs() {
    await test('partitions, files, findings, stamp', ['context'], async (page) => {
        const names = await openTabs(page);
        same('tabs', names.join(), 'Node,Partitions 1,Files 1,Findings 0,Model,Memory');
        await page.click('#tab-model');
        holds('stamp', await panel(page), 'Build stamp of Epctx');
        await page.click('#tab-files');
        holds('file', await panel(page), 'source_npu.bin');
        await page.click('#tab-parts');
        holds('partition', await panel(page), 'in the file source_npu.bin, 32.5 KiB');
        await shot(page, 'context');
        await page.click('#body .link');
        await settle(page);
        same('its node', await page.innerText('#node-op'), 'com.microsoft:EPContext');
        holds('legend', await page.innerText('.legend'), 'EpctxNpuExecutionProvider 1');
        /* In the middle of the picture, between the node's two lines. */
        const colours = await page.evaluate(() => {
            const canvas = document.querySelector('.picture canvas'), g = canvas.getContext('2d');
            const at = g.getImageData(canvas.width / 2, canvas.height / 2 + 2, 1, 1).data;
            return [`rgb(${[...at].slice(0, 3).join(', ')})`,
                document.querySelector('.legend .swatch').style.backgroundColor];
        });
        same('the colour of the legend', colours[0], colours[1]);
    });
    await test('findings lead to their nodes', ['bad'], async (page) => {
        await page.click('#tab-findings');
        holds('finding', await panel(page), 'error E');
        holds('the command that cures it', await panel(page), 'epctx repair --in-place');
        await page.click('#body .finding .link >> nth=0');
        await settle(page);
        want('its node', (await data(page)).selected.length > 0, '');
        holds('and the finding there', await panel(page), 'Fix: ');
        await shot(page, 'findings');
    });
    await test('two models side by side', ['two'], async (page) => {
        holds('legend', await page.locator('.legend').nth(1).innerText(), 'added 1');
        await page.click('#tab-changes');
        const text = await panel(page);
        for (const part of ['renamed', "node 'changed name'", '0.25', '0.5', "node 'extra'"])
            holds('differences', text, part);
        await page.click('#body .change .link:has-text("alpha")');
        await settle(page);
        same('left', (await data(page, 0)).selected, 'first');
        same('right', (await data(page, 1)).selected, 'first');
        await shot(page, 'two');
        await page.click('#body .change .link:has-text("call 1")');
        await settle(page);
        same('the old name', (await data(page, 0)).selected, 'call 1');
        same('the new name', (await data(page, 1)).selected, 'changed name');
        await page.click('#which button >> nth=0');
        await page.click('#tab-node');
        holds('the node, too', await panel(page), 'renamed');
    });
    await test('commands and memory plan', ['context'], async (page) => {
        await page.click('#tab-memory');
        await settle(page);
        want('there is a plan', Number(await page.getAttribute('#plan', 'data-lives')) > 0, 0);
        const rows = await page.locator('#commands tbody tr').count();
        want('commands', rows > 0, rows);
        const box = await page.locator('#plan').boundingBox();
        for (let x = 70; x < box.width; x += 20)
            for (let y = 20; y < box.height - 24; y += 40)
                await page.mouse.move(box.x + x, box.y + y);
        holds('pointed at', await page.innerText('#plan-said'), 'read until command');
        await page.click('#commands .link >> nth=0');
        await settle(page);
        want('its node', (await data(page)).selected.length > 0, '');
        await shot(page, 'memory');
    });
}

/* Presses a button that saves a file; what is in it. */
async function saved(page, button) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
    return [download.suggestedFilename(), fs.readFileSync(await download.path())];
}

/* Where the page says that it is, once it has caught up. */
async function hash(page, wanted) {
    await page.waitForFunction((part) => location.hash === part, wanted, {timeout: 3000})
        .catch(() => {});
    return page.evaluate(() => location.hash);
}

async function details() {
    await test('equal findings are one card', ['found'], async (page) => {
        await page.click('#tab-findings');
        const cards = page.locator('#body .finding'), text = await panel(page);
        want('a few cards', await cards.count() < 12, await cards.count());
        for (const part of ["'nobody 0'", 'lost 4', '2\u2009001 times', '1\u2009996 more'])
            holds('findings', text, part);
        await page.click('#body .more >> nth=0');
        await page.click('#body .link:has-text("lost 204")');
        await settle(page);
        same('each leads to its node', (await data(page)).selected, 'lost 204');
    });
    await test('a folded node shows what is inside', ['found'], async (page) => {
        for (const [label, found] of [['choice', 1], ['call', 1], ['clean call', 0]]) {
            await page.goto(addressOf('found') + '#node=' + encodeURIComponent(label));
            await settle(page);
            same('selected', (await data(page)).selected, label);
            const pixel = await page.evaluate(() => {
                const canvas = document.querySelector('.picture canvas'), d = canvas.dataset;
                const shape = JSON.parse(d.box), g = canvas.getContext('2d');
                return [...g.getImageData(shape[0] + 2, shape[1] + 2, 1, 1).data].join();
            });
            same(label + ' has a mark', pixel === '179,38,30,255' ? 1 : 0, found);
            same(label + ' tells', (await panel(page)).includes('Found inside') ? 1 : 0, found);
        }
        await page.goto(addressOf('found') + '#node=choice');
        await page.click('#body .finding .link:has-text("deep")');
        await settle(page);
        same('it leads inside', (await data(page)).selected, 'deep');
    });
    await test('what is wrong with a node comes first', ['bad'], async (page) => {
        await page.goto(addressOf('bad') + '#node=twice');
        await settle(page);
        const text = await panel(page);
        holds('panel', text, 'error E');
        want('the error is above the rest', text.indexOf('error E') < text.indexOf('runs on'),
            text);
        const grades = (await page.locator('#body .finding b').allInnerTexts()).map((t) => t[0]);
        same('errors, then warnings', grades.join(''), grades.slice().sort().join(''));
    });
    await test('tabs stay where they are', ['context', 'two'], async (...pages) => {
        for (const page of pages) {
            const places = new Set(), tabs = page.locator('#tabs button');
            const note = async () => places.add(JSON.stringify(await tabs.evaluateAll((all) =>
                all.map((tab) => Math.round(tab.getBoundingClientRect().left)))));
            for (let i = 0; i < await tabs.count(); i++) {
                await tabs.nth(i).click();
                await note();
            }
            same('places of the tabs', places.size, 1);
        }
    });
    await test('types on edges, and of what is pointed at', ['found'],
        async (page) => {
            await page.goto(addressOf('found') + '#node=clean%20call');
            await settle(page);
            want('types are drawn', Number((await data(page)).types) > 0, await data(page));
            const tip = page.locator('.tip'), box = JSON.parse((await data(page)).box);
            const area = await page.locator('.picture canvas').boundingBox();
            await page.mouse.move(area.x + box[0] + box[2] / 2, area.y + box[1] + box[3] + 5);
            holds('below the node', await tip.innerText(), 'd float32[1,batch]');
            await page.mouse.move(area.x + box[0] + box[2] / 2, area.y + box[1] + box[3] / 2);
            holds('on the node', await tip.innerText(), 'd float32[1,batch]');
            await page.mouse.move(area.x + 3, area.y + 3);
            same('nothing is there', await tip.isHidden(), true);
        });
    await test('a picture as a file', ['model', 'hostile', 'folds'], async (page, evil, folded) => {
        const [file, svg] = await saved(page, '#svg');
        same('its name', file, 'plain.svg');
        for (const part of ['<svg xmlns="http://www.w3.org/2000/svg"', '>Conv</text>',
            '<path d="M'])
            holds('SVG', svg.toString(), part);
        const [, png] = await saved(page, '#png');
        same('PNG', png.subarray(1, 4).toString(), 'PNG');
        await evil.click('#unfold');
        await folded.click('#unfold');
        for (const one of [page, evil, folded]) {
            const text = (await saved(one, '#svg'))[1].toString();
            const problem = await one.evaluate((xml) => {
                const read = new DOMParser().parseFromString(xml, 'image/svg+xml');
                const tags = new Set([...read.querySelectorAll('*')].map((e) => e.localName));
                return (read.querySelector('parsererror') || {}).textContent ||
                    [...tags].sort().join();
            }, text);
            same('it is well formed', problem, 'path,rect,svg,text,title');
        }
        await shot(evil, 'hostile-unfolded');
    });
    await test('an address for each node', ['found', 'two'], async (page, two) => {
        await find(page, 'clean call');
        same('of a node', await hash(page, '#node=clean%20call'), '#node=clean%20call');
        await page.goto(addressOf('found') + '#node=sums&at=2');
        await settle(page);
        same('of the second with a name', (await data(page)).selected, 'sums');
        same('stays', await hash(page, '#node=sums&at=2'), '#node=sums&at=2');
        await page.keyboard.press('Escape');
        await page.locator('.picture canvas').focus();
        await page.keyboard.press('Escape');
        same('of nothing', await hash(page, ''), '');
        await two.click('.picture canvas >> nth=1');
        await find(two, 'changed name');
        same('of the second model', await hash(two, '#node=changed%20name&model=2'),
            '#node=changed%20name&model=2');
        await two.goto(addressOf('two') + '#node=call%201');
        await settle(two);
        same('of the first', (await data(two, 0)).selected, 'call 1');
        for (const odd of ['#node=%', '#node', '#', '#node=%ff', '#node=no&at=x', '#model=9&node=x',
            '#__proto__=x', '#node=__proto__', '#node=<img src=x onerror=window.hacked=1>']) {
            await two.goto(addressOf('two') + odd);
            same(odd, await two.evaluate(() => window.hacked), undefined);
        }
    });
    await test('on paper it is light', ['found'], async (page) => {
        await page.click('#tab-findings');
        await page.setViewportSize({width: 900, height: 1100});
        await settle(page);
        await page.emulateMedia({media: 'print', colorScheme: 'dark'});
        await page.setViewportSize({width: 700, height: 1000});
        await settle(page);
        const found = await page.evaluate(() => {
            const canvas = document.querySelector('.picture canvas');
            const box = canvas.getBoundingClientRect(), body = document.getElementById('body');
            const shape = canvas.width / canvas.height * box.height / box.width;
            return {shape: Math.round(shape * 100) / 100, wide: Math.round(box.width),
                cut: body.scrollHeight > body.clientHeight + 1,
                bars: document.querySelector('header').offsetParent !== null,
                back: [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data].join(),
                text: getComputedStyle(document.body).color};
        });
        same('the page', JSON.stringify(found), JSON.stringify({shape: 1, wide: 700,
            cut: false, bars: false, back: '255,255,255,255', text: 'rgb(27, 31, 36)'}));
        const pdf = await page.pdf({path: path.join(folder, 'paper.pdf')});
        want('a PDF', pdf.length > 10000, pdf.length);
    }, {colorScheme: 'dark'});
}

async function hostile() {
    await test('hostile names do nothing', ['hostile'], async (page) => {
        await openTabs(page);
        await page.click('#unfold');
        await settle(page);
        await page.locator('.picture canvas').focus();
        for (let i = 0; i < 40; i++) await page.keyboard.press('n');
        for (const words of ['<', 'script', '\u202e', '__proto__', 'xxx', '&', '\0'])
            await find(page, words);
        await openTabs(page);
        const state = await page.evaluate(() => ({hacked: window.hacked, proto: {}.evil,
            scripts: document.querySelectorAll('script').length,
            others: document.querySelectorAll('img, iframe, object, embed, link, base, svg').length,
            styles: document.querySelectorAll('style').length,
            raw: /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/.test(document.body.innerText) ||
                /[\u202a-\u202e\u2066-\u2069]/.test(document.title)}));
        same('state', JSON.stringify(state), JSON.stringify({scripts: 2, others: 0, styles: 1,
            raw: false}));
        await page.click('#tab-node');
        await shot(page, 'hostile');
    });
    await test('the policy holds', ['model'], async (page) => {
        const csp = await page.getAttribute('meta[http-equiv]', 'content');
        for (const tag of ['script:not([type])', 'style']) {
            const text = await page.locator(tag).evaluate((element) => element.textContent);
            const hash = crypto.createHash('sha256').update(text).digest('base64');
            holds('policy', csp, `'sha256-${hash}'`);
        }
        await page.evaluate(() => {
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 1';
            document.body.append(script);
            document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}));
            document.body.insertAdjacentHTML('beforeend',
                '<p onclick="window.hacked = 1" id="trap">x</p>');
            document.getElementById('trap').click();
        });
        await page.waitForTimeout(100);
        same('no script of others runs', await page.evaluate(() => window.hacked), undefined);
        const blocked = page.wrong.filter((text) => /Content Security Policy/.test(text));
        same('the browser refuses all three', blocked.length, 3);
        page.wrong.length = 0;
    });
    for (const colorScheme of ['light', 'dark'])
        await test('contrast, ' + colorScheme, ['two', 'context', 'bad'], async (...pages) => {
            for (const page of pages)
                for (let i = 0; i < await page.locator('#tabs button').count(); i++) {
                    await page.locator('#tabs button').nth(i).click();
                    const pale = await page.evaluate(PALE);
                    want('text that can be read', pale.length === 0, pale);
                }
            await pages[0].click('#tab-changes');
            await shot(pages[0], 'two-' + colorScheme);
        }, {colorScheme});
    await test('a narrow window', ['two'], async (page) => {
        await settle(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        same('nothing is beyond the edge', wide, false);
        await shot(page, 'narrow');
    }, {viewport: {width: 420, height: 800}});
}

/* Opens a page: how long until its first picture, and the processor's time of it, in ms. */
async function firstPicture(name) {
    const context = await browser.newContext({viewport: {width: 1280, height: 800}});
    const page = await context.newPage(), session = await context.newCDPSession(page);
    await session.send('Performance.enable', {timeDomain: 'threadTicks'});
    await page.goto(addressOf(name));
    await page.waitForFunction(() => document.documentElement.dataset.first);
    const {metrics} = await session.send('Performance.getMetrics');
    const first = await page.evaluate(() => Number(document.documentElement.dataset.first));
    await context.close();
    return [first, metrics.find((metric) => metric.name === 'ProcessTime').value * 1000];
}

/* The best of three: other programs run, too. */
async function best(run) {
    let least = Infinity;
    for (let i = 0; i < 3; i++) least = Math.min(least, await run());
    return least;
}

async function times() {
    const times = {};
    /* Where others have the processor time goes by without us. */
    await test('20,000 nodes: first picture', [], async () => {
        times.processor = Infinity;
        times.first = await best(async () => {
            const [first, processor] = await firstPicture('many');
            times.processor = Math.min(times.processor, Math.round(processor));
            return first;
        });
        want(`below ${FIRST_PICTURE} ms`, Math.min(times.first, times.processor) < FIRST_PICTURE,
            times);
    });
    await test('20,000 nodes side by side, and other big pictures', [], async () => {
        for (const name of ['wide', 'dense']) {
            const [first, processor] = await firstPicture(name);
            times[name] = Math.min(first, Math.round(processor));
            want(`${name} below ${2 * FIRST_PICTURE} ms`, times[name] < 2 * FIRST_PICTURE, times);
        }
    });
    await test('20,000 nodes: search, pan, fit', ['many'], async (page) => {
        same('items', (await data(page)).items, '20002');
        want('they stand upright', Number((await data(page)).w) < 2000, await data(page));
        for (const [words, count] of [['layers.1999/out', '1'], ['leakyrelu', '2000'],
            ['gate_output_0', '4000'], ['e', '20000'], ['nothing of it', '0']]) {
            times.search = Math.max(times.search || 0, await best(async () => {
                await page.fill('#search', '');
                await page.fill('#search', words);
                return Number(await page.getAttribute('#results', 'data-ms'));
            }));
            same('hits of ' + words, await page.getAttribute('#results', 'data-count'), count);
        }
        want(`search below ${SEARCH} ms`, times.search < SEARCH, times.search);
        await find(page, 'layers.1000/gate');
        same('found', (await data(page)).selected, '/model/layers.1000/gate');
        times.pan = await best(async () => {
            await page.keyboard.press('ArrowDown');
            await settle(page);
            return Number((await data(page)).ms);
        });
        await shot(page, 'many');
        const box = await page.locator('.picture canvas').boundingBox();
        await page.mouse.click(box.x + box.width - 4, box.y + box.height - 12);
        await settle(page);
        want('the bar leads to the end', Number((await data(page)).y) > 500000, await data(page));
        times.all = await best(async () => {
            await page.click('#fit');
            await settle(page);
            return Number((await data(page)).ms);
        });
        want(`pan below ${REDRAW} ms`, times.pan < REDRAW, times.pan);
        want(`all below ${REDRAW} ms`, times.all < REDRAW, times.all);
    });
    console.log('note 20,000 nodes, ms: ' + Object.entries(times).map(([key, ms]) =>
        key + ' ' + ms).join(', '));
}

(async () => {
    browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: FLAGS});
    for (const part of [plain, folds, tabs, details, hostile, times]) await part();
    await browser.close();
    process.exit(failed > 0 ? 1 : 0);
})().catch((error) => {
    console.log('FAIL browser: ' + error.message.split('\n').slice(0, 3).join(' '));
    process.exit(1);
});

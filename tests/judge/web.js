'use strict';
/* Uses the page of examples/web in headless Chromium: files are chosen, tabs are clicked.

     node tests/judge/web.js PAGE FOLDER

   FOLDER has the models that tests/test_web.sh makes; pictures are put there, too.
   EPCTX_PLAYWRIGHT is the folder of playwright-core. Prints the lines that tests/run reads. */

const path = require('path');
const fs = require('fs');
const {pathToFileURL} = require('url');
const {chromium} = require(process.env.EPCTX_PLAYWRIGHT);

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const address = pathToFileURL(process.argv[2]).href, folder = path.resolve(process.argv[3]);
let failed = 0;

async function test(name, run) {
    try {
        await run();
        console.log(`ok ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${String(error.message || error).split('\n')[0]}`);
    }
}

function want(what, text, part) {
    if (!text.includes(part))
        throw new Error(`${what}: expected '${part}', found '${text.slice(0, 300)}'`);
}

async function main() {
    const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: FLAGS});
    const page = await browser.newPage({viewport: {width: 1200, height: 800}});
    const wrong = [];
    page.on('console', (message) => wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(String(error)));
    page.on('request', (request) => {
        if (!/^(blob|file|data):/.test(request.url())) wrong.push(`it asks for ${request.url()}`);
    });
    await page.goto(address);
    const choose = (...names) =>
        page.setInputFiles('#choose', names.map((name) => path.join(folder, name)));
    const ready = (text) => page.waitForFunction(
        (wanted) => document.getElementById('state').textContent.endsWith(wanted), text);
    const open = async (tab) => {
        await page.click(`#tabs button[data-tab=${tab}]`);
        await ready(`: ${tab}`);
        return page.locator('#text').textContent();
    };
    await test('a compiled model and its binary', async () => {
        await choose('digits_ctx.onnx', 'digits_npu.bin');
        await ready(': view');
        const frame = page.frameLocator('#frame');
        await frame.locator('canvas').first().waitFor();
        await page.screenshot({path: path.join(folder, 'web.png')});
    });
    await test('info', async () => {
        const text = await open('info');
        want('info', text, 'EpctxNpuExecutionProvider');
        want('info', text, 'digits_npu.bin');
        await page.screenshot({path: path.join(folder, 'web_info.png')});
    });
    await test('nothing wrong', async () => want('lint', await open('lint'), '0 errors'));
    await test('files', async () => want('ls', await open('ls'), 'digits_npu.bin'));
    await test('scan', async () => want('scan', await open('scan'), 'node '));
    await test('without its binary', async () => {
        await choose('digits_ctx.onnx');
        await ready(': view');
        want('missing', await page.locator('#missing').innerText(),
            "digits_ctx.onnx needs 'digits_npu.bin', which did not come with it");
        want('lint', await open('lint'), 'digits_npu.bin');
        await page.screenshot({path: path.join(folder, 'web_missing.png')});
    });
    await test('which comes later', async () => {
        await choose('digits_npu.bin');
        await ready(': view');
        if (await page.locator('#missing').isVisible()) throw new Error('it is still missing');
        want('lint', await open('lint'), '0 errors');
    });
    await test('dropped where it is said', async () => {
        await page.reload();
        const box = await page.locator('#drop').boundingBox();
        if (box.height < 150) throw new Error(`the place has ${box.height} pixels`);
        await page.screenshot({path: path.join(folder, 'web_empty.png')});
        const bytes = [...fs.readFileSync(path.join(folder, 'digits_ctx.onnx'))];
        const over = await page.evaluate((data) => {
            const what = new DataTransfer();
            what.items.add(new File([new Uint8Array(data)], 'digits_ctx.onnx'));
            const event = (name) => document.getElementById('drop').dispatchEvent(
                new DragEvent(name, {dataTransfer: what, bubbles: true, cancelable: true}));
            event('dragover');
            const shown = document.body.classList.contains('over');
            event('drop');
            return [shown, document.body.classList.contains('over')];
        }, bytes);
        want('it shows that', over.join(), 'true,false');
        await ready(': view');
        want('missing', await page.locator('#missing').innerText(), 'digits_npu.bin');
    });
    await test('the picture as a file', async () => {
        await choose("-it's odd.onnx", 'digits_npu.bin');
        await ready(': view');
        const frame = page.frameLocator('#frame');
        await frame.locator('.title b', {hasText: 'odd'}).waitFor();
        const [download] = await Promise.all([page.waitForEvent('download', {timeout: 5000}),
            frame.locator('#svg').click()]);
        want('its name', download.suggestedFilename(), '-it_s_odd.svg');
    });
    await test('a command that can be pasted', async () => {
        const text = await open('lint');
        fs.writeFileSync(path.join(folder, 'command'), /run: (epctx .*)/.exec(text)[1]);
    });

    await test('a file that is no model', async () => {
        await choose('broken.onnx');
        await ready(': view');
        want('view', await page.locator('#text').textContent(), 'not an ONNX');
    });
    await test('hostile names are text', async () => {
        await choose('<img src=x onerror=alert(1)>.onnx');
        await ready(': view');
        want('models', await page.locator('#models').innerText(), '<img src=x');
    });
    await test('a large file is read by slices', async () => {
        const before = Date.now();
        await choose('large_ctx.onnx');
        await ready(': scan');
        want('scan', await page.locator('#text').textContent(), 'bytes at');
        const size = fs.statSync(path.join(folder, 'large_ctx.onnx')).size;
        console.log(`note ${size >> 20} MiB scanned in ${Date.now() - before} ms`);
    });
    await test('no error, nothing from a network', async () => {
        if (wrong.length > 0) throw new Error(wrong.join('; '));
    });
    await browser.close();
}

main().then(() => process.exit(failed > 0 ? 1 : 0), (error) => {
    console.log(`FAIL web: ${String(error.stack || error).split('\n').slice(0, 3).join(' ')}`);
    process.exit(1);
});

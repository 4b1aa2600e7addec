#!/usr/bin/env node
// Runs a model in the real ONNX Runtime, through its Node.js binding.
//
//     ort_run.js MODEL IN_DIR OUT_DIR [--repeat N] [--threads N] [--exact 1]
//
// IN_DIR holds what `epctx run --dump` writes: io.txt, with one line for each
// input and output of the model,
//
//     input  <i> <ONNX element type> <d0,d1,...> <name>
//     output <i> <ONNX element type> <d0,d1,...> <name>
//
// ("-" for the dimensions of a scalar) and input_<i>.bin, the elements in row
// order, little-endian. Writes output_<i>.bin of the same kind, and io.txt with
// the shapes found, to OUT_DIR. Prints the times, of which
//
//     open-to-first-output: <ms> ms
//
// leaves out loading the runtime itself and reading the inputs. --exact 1: QDQ models sum exactly
// on processors without VNNI, too, where products of bytes saturate.
//
// The runtime comes from ORT_BINDING (onnxruntime_binding.node), which demo.sh
// asks tests/deps.sh for. The package's own JavaScript, and with it the further
// packages that it wants, is not needed: the binding takes plain objects.
'use strict';

const fs = require('fs');
const path = require('path');
const { performance } = require('perf_hooks');

// Must stand before the library is loaded.
process.env.ORT_DISABLE_TELEMETRY = '1';

// ONNX element type -> the binding's name and the array class of the data
const TYPES = {
    1: ['float32', Float32Array],
    2: ['uint8', Uint8Array],
    3: ['int8', Int8Array],
    6: ['int32', Int32Array],
    7: ['int64', BigInt64Array],
    9: ['bool', Uint8Array],
};

function fail(message) {
    console.error(`ort_run: ${message}`);
    process.exit(1);
}

// What the binding makes of outputs, and what it takes as inputs.
class Tensor {
    constructor(type, data, dims) {
        this.type = type;
        this.data = data;
        this.dims = dims;
        this.location = 'cpu';
    }
}

function readTensor(file, elemType, dims) {
    if (!TYPES[elemType]) fail(`${file}: element type ${elemType} is not supported here`);
    const [type, ArrayClass] = TYPES[elemType];
    const bytes = fs.readFileSync(file);
    const count = dims.reduce((a, b) => a * b, 1);
    const want = count * ArrayClass.BYTES_PER_ELEMENT;
    if (bytes.length !== want) fail(`${file}: ${bytes.length} bytes, expected ${want}`);
    // A copy with an alignment of its own: readFileSync may return a slice of a pool.
    const data = new ArrayClass(new Uint8Array(bytes).buffer);
    return new Tensor(type, data, dims);
}

function parseIo(file) {
    const rows = [];
    for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
        if (line === '') continue;
        const m = /^(input|output) (\d+) (\d+) (-|\d+(?:,\d+)*) (.*)$/.exec(line);
        if (!m) fail(`${file}: cannot read the line "${line}"`);
        rows.push({
            what: m[1],
            index: Number(m[2]),
            elemType: Number(m[3]),
            dims: m[4] === '-' ? [] : m[4].split(',').map(Number),
            name: m[5],
        });
    }
    return rows;
}

function parseArguments(argv) {
    const options = { repeat: 0, threads: 1, exact: 0 };
    const rest = [];
    for (let i = 0; i < argv.length; i++) {
        const option = /^--(repeat|threads|exact)$/.exec(argv[i]);
        if (option) options[option[1]] = Number(argv[++i]);
        else rest.push(argv[i]);
    }
    if (rest.length !== 3) {
        fail('usage: ort_run.js MODEL IN_DIR OUT_DIR [--repeat N] [--threads N] [--exact 1]');
    }
    [options.model, options.inputs, options.outputs] = rest;
    return options;
}

function main() {
    const options = parseArguments(process.argv.slice(2));
    if (!process.env.ORT_BINDING) {
        fail('ORT_BINDING is not set: the path of onnxruntime_binding.node');
    }

    const rows = parseIo(path.join(options.inputs, 'io.txt'));
    const feeds = {};
    for (const row of rows) {
        if (row.what !== 'input') continue;
        const file = path.join(options.inputs, `input_${row.index}.bin`);
        feeds[row.name] = readTensor(file, row.elemType, row.dims);
    }

    const { InferenceSession, initOrtOnce } = require(path.resolve(process.env.ORT_BINDING));
    initOrtOnce(3 /* errors only */, Tensor, true);
    const sessionOptions = {
        intraOpNumThreads: options.threads,
        interOpNumThreads: 1,
        extra: { session: { x64quantprecision: String(options.exact) } },
    };

    const start = performance.now();
    const session = new InferenceSession();
    session.loadModel(options.model, sessionOptions);
    const created = performance.now();
    const fetches = {};
    for (const output of session.outputMetadata) fetches[output.name] = null;
    const results = session.run(feeds, fetches, {});
    const ran = performance.now();

    const outputs = rows.filter((row) => row.what === 'output');
    if (outputs.length !== session.outputMetadata.length)
        fail(`io.txt lists ${outputs.length} outputs, ` +
             `the model has ${session.outputMetadata.length}`);
    fs.mkdirSync(options.outputs, { recursive: true });
    const lines = [];
    for (const row of outputs) {
        const result = results[row.name];
        if (!result) fail(`the model has no output "${row.name}"`);
        const elemType = Object.keys(TYPES).find((key) => TYPES[key][0] === result.type);
        if (!elemType) fail(`output "${row.name}": ${result.type} is not supported here`);
        fs.writeFileSync(
            path.join(options.outputs, `output_${row.index}.bin`),
            Buffer.from(result.data.buffer, result.data.byteOffset, result.data.byteLength));
        const dims = result.dims.length ? result.dims.join(',') : '-';
        lines.push(`output ${row.index} ${elemType} ${dims} ${row.name}\n`);
    }
    fs.writeFileSync(path.join(options.outputs, 'io.txt'), lines.join(''));

    console.log(`session-creation: ${(created - start).toFixed(2)} ms`);
    console.log(`first-run: ${(ran - created).toFixed(2)} ms`);
    console.log(`open-to-first-output: ${(ran - start).toFixed(2)} ms`);
    if (options.repeat > 0) {
        const times = [];
        for (let i = 0; i < options.repeat; i++) {
            const from = performance.now();
            session.run(feeds, fetches, {});
            times.push(performance.now() - from);
        }
        times.sort((a, b) => a - b);
        console.log(`median-run: ${times[times.length >> 1].toFixed(3)} ms`);
    }
}

// Also a module: tests/judge/ort_cases.js runs many models in one process.
module.exports = { TYPES, Tensor, parseIo, readTensor };
if (require.main === module) main();

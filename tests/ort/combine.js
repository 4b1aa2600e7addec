// What merge, chain and split make, run by the real ONNX Runtime.
//
//     combine.js spec MODEL VALUE...            NAME:TYPE[DIMS] of outputs, for split --inputs
//     combine.js side MERGED A B ...            MERGED gives what its parts give side by side
//     combine.js row CHAINED A B ...            y of each feeds x of the next
//     combine.js halves MODEL FIRST SECOND WHOLE
//                                               FIRST, then SECOND, and WHOLE give what MODEL gives
//
// The runtime comes from ORT_BINDING (see examples/demo/ort_run.js). Exit code 1 with a reason on
// standard error when outputs differ.
'use strict';

const path = require('path');

const { Tensor } = require('../../examples/demo/ort_run.js');

process.env.ORT_DISABLE_TELEMETRY = '1';

const ARRAYS = {
    float32: Float32Array, float64: Float64Array, uint8: Uint8Array, int8: Int8Array,
    uint16: Uint16Array, int16: Int16Array, int32: Int32Array, uint32: Uint32Array,
    int64: BigInt64Array, uint64: BigUint64Array, bool: Uint8Array,
};

// ONNX element types, as the binding tells them of inputs.
const NAMES = {
    1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 9: 'bool',
    11: 'float64', 12: 'uint32', 13: 'uint64',
};

function fail(message) {
    console.error(`combine: ${message}`);
    process.exit(1);
}

const { InferenceSession, initOrtOnce } = require(path.resolve(process.env.ORT_BINDING));
initOrtOnce(3, Tensor, true);

// The same numbers for the same name and size, whatever the model.
function makeInput(seed, type, dims) {
    const ArrayClass = ARRAYS[type];
    if (!ArrayClass) fail(`inputs of type ${type} are not supported here`);
    const data = new ArrayClass(dims.reduce((a, b) => a * b, 1));
    let state = 12345;
    for (const c of seed) state = (state * 31 + c.charCodeAt(0)) % 2147483647;
    for (let i = 0; i < data.length; i++) {
        state = (state * 48271) % 2147483647;
        const unit = state / 2147483647;
        if (type.startsWith('float')) data[i] = unit * 2 - 1;
        else if (type.includes('64')) data[i] = BigInt(Math.floor(unit * 2));
        else data[i] = Math.floor(unit * (type === 'bool' ? 2 : 100));
    }
    return new Tensor(type, data, dims);
}

function open(file) {
    const session = new InferenceSession();
    session.loadModel(file, { intraOpNumThreads: 1, interOpNumThreads: 1,
                              graphOptimizationLevel: 'disabled' });
    return session;
}

// `given` has values by name; others are made from `seed` and the name.
function run(session, given, seed) {
    const feeds = {};
    for (const input of session.inputMetadata) {
        const dims = (input.shape || []).map((d) => (typeof d === 'number' && d >= 0 ? d : 1));
        feeds[input.name] = given[input.name] ||
            makeInput(seed + input.name, NAMES[input.type] || input.type, dims);
    }
    const fetches = {};
    for (const output of session.outputMetadata) fetches[output.name] = null;
    return { feeds, results: session.run(feeds, fetches, {}) };
}

function compare(what, got, want) {
    if (!got) fail(`${what}: there is no such output`);
    if (got.type !== want.type || got.dims.join() !== want.dims.join())
        fail(`${what}: ${got.type}[${got.dims}], expected ${want.type}[${want.dims}]`);
    for (let i = 0; i < want.data.length; i++) {
        if (Object.is(got.data[i], want.data[i])) continue;
        fail(`${what}: element ${i} is ${got.data[i]}, expected ${want.data[i]}`);
    }
}

const [command, ...files] = process.argv.slice(2);
if (command === 'spec') {
    const { results } = run(open(files[0]), {}, 'x');
    const specs = files.slice(1).map((name) => {
        const t = results[name];
        return `${name}:${t.type}[${t.dims.join()}]`;
    });
    console.log(specs.join());
} else if (command === 'side') {
    const merged = open(files[0]);
    const names = new Set(merged.inputMetadata.map((i) => i.name));
    const given = {};
    const wanted = [];
    files.slice(1).forEach((file, at) => {
        const now = (name, all) => (all.has(`m${at + 1}_${name}`) ? `m${at + 1}_${name}` : name);
        const { feeds, results } = run(open(file), {}, `${at}`);
        const outputs = new Set(merged.outputMetadata.map((o) => o.name));
        for (const name in feeds) given[now(name, names)] = feeds[name];
        for (const name in results) wanted.push([now(name, outputs), results[name]]);
    });
    if (Object.keys(given).length !== merged.inputMetadata.length)
        fail(`${files[0]}: ${merged.inputMetadata.length} inputs, ` +
             `expected ${Object.keys(given).length}`);
    const { results } = run(merged, given, '');
    if (wanted.length !== merged.outputMetadata.length)
        fail(`${files[0]}: ${merged.outputMetadata.length} outputs, expected ${wanted.length}`);
    for (const [name, tensor] of wanted) compare(`${files[0]}: ${name}`, results[name], tensor);
    console.log(`${wanted.length} outputs`);
} else if (command === 'row') {
    const { feeds, results } = run(open(files[0]), {}, 'x');
    let x = feeds.x;
    for (const file of files.slice(1)) x = run(open(file), { x }, '').results.y;
    const [last] = Object.keys(results);
    compare(`${files[0]}: ${last}`, results[last], x);
    console.log('1 output');
} else if (command === 'halves') {
    const [model, first, second, whole] = files;
    const { feeds, results } = run(open(model), {}, 'x');
    const head = run(open(first), feeds, 'x').results;
    const tail = run(open(second), { ...feeds, ...head }, 'x').results;
    const both = run(open(whole), feeds, 'x').results;
    for (const name in results) {
        compare(`${second}: ${name}`, tail[name], results[name]);
        compare(`${whole}: ${name}`, both[name], results[name]);
    }
    console.log(`${Object.keys(results).length} outputs`);
} else {
    fail('usage: combine.js spec|side|row|halves FILE...');
}

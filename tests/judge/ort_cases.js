#!/usr/bin/env node
// Runs many small models in ONNX Runtime, in one process.
//
//     ort_cases.js [--plain] FOLDER...
//
// Each folder holds model.onnx and what ort_run.js reads: io.txt and input_<i>.bin. Writes
// ort_<i>.bin and ort_<i>.dims for every output, or ort_error.txt when session or run fails.
// --plain: plain_... instead, of the model as it is, without optimizations.
'use strict';

const fs = require('fs');
const path = require('path');
const { Tensor, parseIo, readTensor } = require('../../examples/demo/ort_run.js');
const { InferenceSession, initOrtOnce } = require(path.resolve(process.env.ORT_BINDING));

const plain = process.argv[2] === '--plain';
const stem = plain ? 'plain' : 'ort';

function runCase(folder) {
    const rows = parseIo(path.join(folder, 'io.txt'));
    const feeds = {};
    for (const row of rows.filter((r) => r.what === 'input')) {
        const file = path.join(folder, `input_${row.index}.bin`);
        feeds[row.name] = readTensor(file, row.elemType, row.dims);
    }
    const session = new InferenceSession();
    session.loadModel(path.join(folder, 'model.onnx'),
                      { intraOpNumThreads: 1, interOpNumThreads: 1,
                        graphOptimizationLevel: plain ? 'disabled' : 'all' });
    const fetches = {};
    for (const output of session.outputMetadata) fetches[output.name] = null;
    const results = session.run(feeds, fetches, {});
    for (const row of rows.filter((r) => r.what === 'output')) {
        const { data, dims } = results[row.name];
        fs.writeFileSync(path.join(folder, `${stem}_${row.index}.dims`), dims.join(',') || '-');
        fs.writeFileSync(path.join(folder, `${stem}_${row.index}.bin`),
            Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    }
}

initOrtOnce(4 /* fatal errors only */, Tensor, true);
for (const folder of process.argv.slice(plain ? 3 : 2)) {
    try {
        runCase(folder);
    } catch (error) {
        fs.writeFileSync(path.join(folder, `${stem}_error.txt`), String(error.message));
    }
}

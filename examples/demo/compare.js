#!/usr/bin/env node
// Compares the outputs of two runs of a model.
//
//     compare.js REFERENCE_DIR DIR [--tolerance T] [--allow-zero]
//
// Both folders hold io.txt and output_<i>.bin (see ort_run.js). An output
// passes when type and dimensions agree and
//
//     max|difference| <= T * max|reference|          (T is 1e-4 by default)
//
// with no NaN on either side. Empty outputs and references that are zero
// throughout prove nothing, so they fail; --allow-zero lets the latter pass.
'use strict';

const fs = require('fs');
const path = require('path');

// ONNX element type -> bytes per element and a reader giving a Number. 64-bit
// integers lose their low bits beyond 2^53, far under the tolerance.
const READERS = {
    1: [4, (b, at) => b.readFloatLE(at)],
    2: [1, (b, at) => b.readUInt8(at)],
    3: [1, (b, at) => b.readInt8(at)],
    6: [4, (b, at) => b.readInt32LE(at)],
    7: [8, (b, at) => Number(b.readBigInt64LE(at))],
    9: [1, (b, at) => b.readUInt8(at)],
};

function outputs(dir) {
    const found = new Map();
    for (const line of fs.readFileSync(path.join(dir, 'io.txt'), 'utf8').split('\n')) {
        const m = /^output (\d+) (\d+) (\S+) (.*)$/.exec(line);
        if (m) found.set(Number(m[1]), { elemType: m[2], dims: m[3], name: m[4] });
    }
    return found;
}

// Returns the text for one output and whether it passes.
function compare(reference, got, elemType, tolerance, allowZero) {
    const [size, read] = READERS[elemType];
    if (reference.length !== got.length)
        return [false, `${got.length} bytes, expected ${reference.length}`];
    if (reference.length === 0) return [false, 'empty'];
    let maxDifference = 0;
    let maxReference = 0;
    for (let at = 0; at < reference.length; at += size) {
        const r = read(reference, at);
        const g = read(got, at);
        if (Number.isNaN(r) || Number.isNaN(g)) return [false, `NaN at element ${at / size}`];
        if (r === g) {
            maxReference = Math.max(maxReference, Math.abs(r));
            continue; // two equal infinities have no difference
        }
        maxDifference = Math.max(maxDifference, Math.abs(r - g));
        maxReference = Math.max(maxReference, Math.abs(r));
    }
    const ratio = maxReference > 0 ? maxDifference / maxReference : 0;
    const text = `max|d| ${maxDifference.toExponential(2)}  max|ref| ` +
        `${maxReference.toExponential(2)}  ratio ${ratio.toExponential(2)}`;
    if (maxReference === 0 && !allowZero) return [false, `${text}  (the reference is all zero)`];
    return [maxDifference <= tolerance * maxReference, text];
}

function main() {
    const argv = process.argv.slice(2);
    let tolerance = 1e-4;
    let allowZero = false;
    const dirs = [];
    for (let i = 0; i < argv.length; i++) {
        if (argv[i] === '--tolerance') tolerance = Number(argv[++i]);
        else if (argv[i] === '--allow-zero') allowZero = true;
        else dirs.push(argv[i]);
    }
    if (dirs.length !== 2 || !(tolerance >= 0)) {
        console.error('usage: compare.js REFERENCE_DIR DIR [--tolerance T] [--allow-zero]');
        process.exit(2);
    }
    const reference = outputs(dirs[0]);
    const got = outputs(dirs[1]);
    let good = reference.size > 0 && reference.size === got.size;
    if (!good) console.log(`  ${got.size} outputs, expected ${reference.size} and at least one`);
    for (const [index, want] of reference) {
        const have = got.get(index);
        let result = [false, 'missing'];
        if (have && (have.elemType !== want.elemType || have.dims !== want.dims)) {
            result = [false, `type ${have.elemType}, dimensions ${have.dims}, ` +
                `expected type ${want.elemType}, dimensions ${want.dims}`];
        } else if (have) {
            const file = `output_${index}.bin`;
            result = compare(fs.readFileSync(path.join(dirs[0], file)),
                fs.readFileSync(path.join(dirs[1], file)), want.elemType, tolerance, allowZero);
        }
        console.log(`  ${result[0] ? 'same ' : 'WRONG'}  ${want.name.padEnd(16)} ${result[1]}`);
        good = good && result[0];
    }
    process.exit(good ? 0 : 1);
}

main();

/* The page of `epctx view`. The JSON of the models stands in the element #data; nothing of it is
 * ever markup, only text. */
'use strict';
(() => {

/* -- text -- */

const byId = (id) => document.getElementById(id);

/* An element: properties, then children; strings become text. */
function el(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
        if (value === undefined || value === null) continue;
        if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
        else if (key === 'class') made.className = value;
        else made.setAttribute(key, value);
    }
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined) made.append(child);
    return made;
}

/* What cannot be seen, or changes the direction of what follows, stands as its number. */
const HIDDEN = new RegExp('[\\u0000-\\u001f\\u007f-\\u00a0\\u00ad\\u034f\\u061c\\u115f\\u1160' +
    '\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3164' +
    '\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1d173}-\\u{1d17a}' +
    '\\u{e0000}-\\u{e0fff}]', 'gu');
const LONGEST = 400;

function shown(text, most = LONGEST) {
    let cut = text;
    if (cut.length > most) cut = cut.slice(0, most).replace(/[\ud800-\udbff]$/, '');
    cut = cut.replace(HIDDEN, (c) => '\\u{' + c.codePointAt(0).toString(16) + '}');
    return text.length > most ? cut + '... (' + count(text.length, 'character') + ')' : cut;
}

/* The end of a name tells more than its beginning. */
function tail(text, most) {
    const end = text.slice(-most).replace(/^[\udc00-\udfff]/, '');
    return (text.length > most ? '...' : '') + shown(end);
}

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, '\u2009');
const count = (number, word) => grouped(number) + ' ' + word + (number === 1 ? '' : 's');

function bytes(number) {
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0, value = number;
    while (value >= 10240 && unit < 4) {
        value /= 1024;
        unit++;
    }
    if (unit === 0) return count(number, 'byte');
    return (value < 100 ? value.toFixed(1) : grouped(Math.round(value))) + ' ' + units[unit];
}

const name = (text, kind) => el('span', {class: 'name' + (kind ? ' ' + kind : '')}, shown(text));

/* -- the models -- */

const data = JSON.parse(byId('data').textContent);
const CPU = 'CPU';

/* The default domain has two spellings. */
const qualified = (domain, op, overload) => (domain === '' || domain === 'ai.onnx' ? '' :
    domain + ':') + op + (overload ? ':' + overload : '');

function fullOp(node) {
    return qualified(node.domain, node.op, node.overload);
}

function epOf(node) {
    if (node.ep === undefined) return CPU;
    return node.ep === null ? 'unreadable EPContext' : node.ep || 'an unnamed EP';
}

function addTypes(graph, values) {
    for (const value of values)
        if (typeof value !== 'string' && !graph.types.has(value[0])) graph.types.set(...value);
}

/* What the bodies of a node read of the graphs around them. */
const NOTHING = new Set();

/* Who makes which value, who reads it, and which graph is in which node. */
function prepareGraph(model, graph, parent) {
    graph.model = model;
    graph.parent = parent;
    graph.makers = new Map();
    graph.readers = new Map();
    graph.types = new Map();
    graph.constants = new Map();
    graph.callers = []; /* of a function */
    model.graphs_all.push(graph);
    addTypes(graph, graph.inputs);
    addTypes(graph, graph.outputs);
    addTypes(graph, graph.values);
    graph.inputs = new Set(graph.inputs.map((v) => typeof v === 'string' ? v : v[0]));
    graph.outputs = new Set(graph.outputs.map((v) => typeof v === 'string' ? v : v[0]));
    for (const init of graph.inits) graph.constants.set(init[0], init);
    graph.nodes.forEach((node, index) => {
        node.graph = graph;
        node.index = index;
        model.nodes.push(node);
        for (const value of node.out) if (value !== '') graph.makers.set(value, node);
        for (const [, body] of node.bodies || []) prepareGraph(model, body, node);
    });
    const read = (value, node) => {
        const readers = graph.readers.get(value);
        if (value === '') return;
        if (!readers) graph.readers.set(value, [node]);
        else if (readers[readers.length - 1] !== node) readers.push(node);
    };
    for (const node of graph.nodes) {
        for (const value of node.in) read(value, node);
        node.outer = NOTHING;
        if (!node.bodies) continue;
        node.outer = new Set(node.bodies.flatMap(([, body]) => body.free));
        for (const value of node.outer) read(value, node);
    }
    graph.free = [...graph.readers.keys(), ...graph.outputs].filter((value) =>
        !graph.inputs.has(value) && !graph.makers.has(value) && !graph.constants.has(value));
}

function prepareModel(model) {
    model.nodes = [];
    model.graphs_all = [];
    model.functions = new Map();
    for (const graph of model.graphs) {
        prepareGraph(model, graph, null);
        if (graph.kind === 'function')
            model.functions.set(qualified(graph.domain, graph.name, graph.overload), graph);
    }
    for (const node of model.nodes) {
        node.inner = model.functions.get(fullOp(node));
        if (node.inner) node.inner.callers.push(node);
    }
    return model;
}

const models = data.models.map(prepareModel);

/* The graph around a value: where it is made, given to the graph, or constant. */
function scopeOf(graph, value) {
    for (let g = graph; g; g = g.parent ? g.parent.graph : null)
        if (g.makers.has(value) || g.constants.has(value) || g.inputs.has(value)) return g;
    return null;
}

function typeOf(graph, value) {
    for (let g = graph; g; g = g.parent ? g.parent.graph : null) {
        if (g.types.has(value)) return g.types.get(value);
        if (g.constants.has(value)) return g.constants.get(value)[1];
    }
    return '';
}

const nodeLabel = (node) => node.name || (node.out.find((value) => value !== '') || '');
const graphLabel = (graph) => graph.kind === 'main' ? 'main graph' : graph.kind + ' ' +
    (graph.kind === 'function' ? qualified(graph.domain, graph.name, graph.overload) : graph.name);

/* -- colours: one for each EP, in the order of the models -- */

const LIGHT = {
    back: '#ffffff', box: '#e8ebef', text: '#1b1f24', soft: '#57606a', line: '#8c959f',
    edge: '#8c959f', value: '#ffffff', inner: '#f6f8fa', select: '#0b62c4', into: '#0b62c4',
    from: '#b45309', fills: ['#a6cee3', '#fdbf6f', '#b2df8a', '#cab2d6', '#fb9a99', '#ffe680',
        '#8dd3c7', '#fccde5'],
    marks: {added: '#1a7f37', removed: '#b3261e', changed: '#b45309', renamed: '#8250df'},
    error: '#b3261e', warning: '#b45309'};
const DARK = {
    back: '#15181d', box: '#39414b', text: '#f0f3f6', soft: '#b6c0cb', line: '#717c88',
    edge: '#717c88', value: '#15181d', inner: '#1e2329', select: '#6cb0ff', into: '#6cb0ff',
    from: '#f0b849', fills: ['#1f5f85', '#85520c', '#3a6f28', '#5c4080', '#8f3733', '#6b5c0c',
        '#1f6e62', '#86476a'],
    marks: {added: '#6fd08c', removed: '#ff8a80', changed: '#f0b849', renamed: '#c297ff'},
    error: '#ff8a80', warning: '#f0b849'};
const dark = matchMedia('screen and (prefers-color-scheme: dark)'); /* paper is white */
const paper = matchMedia('print');
let theme = dark.matches ? DARK : LIGHT;

const eps = new Map(); /* name -> place in the palette */
for (const model of models)
    for (const node of model.nodes)
        if (node.ep !== undefined && !eps.has(epOf(node))) eps.set(epOf(node), eps.size);

const colourOf = (ep) => ep === CPU ? theme.box : theme.fills[eps.get(ep) % theme.fills.length];

/* -- layout: layers by the longest path, a few sweeps over their order, then places -- */

const GAP_X = 22, GAP_Y = 34, PAD = 12, HEAD = 42;
const SWEEPS = 6, LONG = 64; /* edges over more layers are drawn straight */

/* Neighbours as one list with the place where each one's begin. */
function lists(n, from, to) {
    const start = new Int32Array(n + 1), list = new Int32Array(from.length);
    for (let i = 0; i < from.length; i++) start[from[i] + 1]++;
    for (let i = 0; i < n; i++) start[i + 1] += start[i];
    const at = start.slice();
    for (let i = 0; i < from.length; i++) list[at[from[i]]++] = to[i];
    return {start, list};
}

/* Cycles, which no valid model has, are cut where they are met. */
function layersOf(n, into, out, fed) {
    const layer = new Int32Array(n), left = new Int32Array(n), order = new Int32Array(n);
    const queued = new Uint8Array(n), done = new Uint8Array(n), live = new Uint8Array(n);
    let last = 0, next = 0;
    for (let i = 0; i < n; i++) {
        left[i] = into.start[i + 1] - into.start[i];
        live[i] = fed[i];
        if (left[i] === 0) order[last++] = i, queued[i] = 1;
    }
    for (let first = 0; first < n; first++) {
        if (first === last) {
            while (queued[next]) next++;
            order[last++] = next;
            queued[next] = 1;
        }
        const i = order[first];
        done[i] = 1;
        for (let k = out.start[i]; k < out.start[i + 1]; k++) {
            const to = out.list[k];
            if (live[i]) live[to] = 1;
            if (done[to]) continue;
            layer[to] = Math.max(layer[to], layer[i] + 1);
            if (--left[to] === 0 && !queued[to]) order[last++] = to, queued[to] = 1;
        }
    }
    /* Inputs and what is computed of constants only stand near to those who read them. */
    for (let k = n - 1; k >= 0; k--) {
        const i = order[k];
        if (live[i] && !fed[i]) continue;
        let least = Infinity;
        for (let j = out.start[i]; j < out.start[i + 1]; j++)
            if (layer[out.list[j]] > layer[i]) least = Math.min(least, layer[out.list[j]]);
        if (least < Infinity) layer[i] = least - 1;
    }
    return {layer, live};
}

/* The places nearest to those that are wanted, in this order and apart: neighbours that would
 * overlap move together (pool adjacent violators). */
function placeRow(row, width, want, weight, x) {
    const sum = [], mass = [], size = [];
    let offset = 0, k = 0;
    const offsets = new Float64Array(row.length);
    for (let i = 0; i < row.length; i++) {
        if (i > 0) offset += (width[row[i - 1]] + width[row[i]]) / 2 + GAP_X;
        offsets[i] = offset;
        let s = (want[row[i]] - offset) * weight[row[i]], m = weight[row[i]], c = 1;
        while (sum.length > 0 && sum[sum.length - 1] / mass[mass.length - 1] > s / m) {
            s += sum.pop();
            m += mass.pop();
            c += size.pop();
        }
        sum.push(s);
        mass.push(m);
        size.push(c);
    }
    for (let block = 0; block < sum.length; block++)
        for (let c = 0; c < size[block]; c++, k++)
            x[row[k]] = sum[block] / mass[block] + offsets[k];
}

const DRIFT = 24; /* rows that are looked at together */

/* Small shifts from row to row in one direction add up to pictures that lean: what rows near each
 * other have in common is taken away. Neighbours move alike, so that lines stay as straight. */
function straighten(rows, x, weight) {
    const middles = rows.map((row) => {
        let sum = 0, mass = 0;
        for (const i of row) {
            sum += x[i] * weight(i);
            mass += weight(i);
        }
        return sum / mass;
    });
    let sum = 0, from = 0, to = 0;
    rows.forEach((row, k) => {
        for (; to < rows.length && to <= k + DRIFT; to++) sum += middles[to];
        for (; from < k - DRIFT; from++) sum -= middles[from];
        for (const i of row) x[i] -= sum / (to - from);
    });
}

/* Gives the items of a scene their places in it, and edges their points. */
function layout(scene) {
    const items = scene.items, n = items.length;
    const from = Int32Array.from(scene.edges, (e) => e.from);
    const to = Int32Array.from(scene.edges, (e) => e.to);
    const {layer, live} = layersOf(n, lists(n, to, from), lists(n, from, to),
        Uint8Array.from(items, (item) => item.kind === 'in' ? 1 : 0));
    const width = items.map((item) => item.w), segFrom = [], segTo = [], dummyLayer = [];
    const most = 4 * n + 1000;
    for (const edge of scene.edges) {
        const span = layer[edge.to] - layer[edge.from];
        edge.bends = [];
        edge.straight = span < 1 || span > LONG || dummyLayer.length + span > most;
        if (edge.straight) continue;
        let before = edge.from;
        for (let k = 1; k < span; k++) {
            const dummy = n + dummyLayer.length;
            dummyLayer.push(layer[edge.from] + k);
            width.push(0);
            edge.bends.push(dummy);
            segFrom.push(before);
            segTo.push(dummy);
            before = dummy;
        }
        segFrom.push(before);
        segTo.push(edge.to);
    }
    const all = n + dummyLayer.length, rows = [], position = new Float64Array(all);
    const rowOf = (i) => i < n ? layer[i] : dummyLayer[i - n];
    const above = lists(all, segTo, segFrom), below = lists(all, segFrom, segTo);
    for (let i = 0; i < all; i++) {
        while (rows.length <= rowOf(i)) rows.push([]);
        position[i] = rows[rowOf(i)].length;
        rows[rowOf(i)].push(i);
    }
    /* Constants go to those who read them, not the other way. */
    const mean = (values, near, i) => {
        let sum = 0, mass = 0;
        for (let k = near.start[i]; k < near.start[i + 1]; k++) {
            const heavy = near.list[k] >= n || live[near.list[k]] ? 1 : 0.02;
            sum += values[near.list[k]] * heavy;
            mass += heavy;
        }
        return sum / mass;
    };
    const key = new Float64Array(all);
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
        const down = sweep % 2 === 0, near = down ? above : below;
        for (let k = 0; k < rows.length; k++) {
            const row = rows[down ? k : rows.length - 1 - k];
            if (row.length < 2) continue;
            for (const i of row)
                key[i] = near.start[i] < near.start[i + 1] ? mean(position, near, i) : position[i];
            row.sort((a, b) => key[a] - key[b] || a - b);
            row.forEach((i, at) => { position[i] = at; });
        }
    }
    const x = new Float64Array(all), want = new Float64Array(all), weight = new Float64Array(all);
    for (const row of rows) {
        let total = -GAP_X;
        for (const i of row) total += width[i] + GAP_X;
        let at = -total / 2;
        for (const i of row) {
            x[i] = at + width[i] / 2;
            at += width[i] + GAP_X;
        }
    }
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
        const down = sweep % 2 === 0, near = down ? above : below;
        for (let k = 0; k < rows.length; k++) {
            const row = rows[down ? k : rows.length - 1 - k];
            for (const i of row) {
                const alone = near.start[i] === near.start[i + 1];
                want[i] = alone ? x[i] : mean(x, near, i);
                weight[i] = alone ? 0.01 : i >= n ? 2 : live[i] ? 1 : 0.05;
            }
            placeRow(row, width, want, weight, x);
        }
    }
    straighten(rows, x, (i) => i >= n || live[i] ? 1 : 0.02);
    let least = Infinity, right = -Infinity, y = 0;
    for (let i = 0; i < all; i++) {
        least = Math.min(least, x[i] - width[i] / 2);
        right = Math.max(right, x[i] + width[i] / 2);
    }
    const top = [], bottom = [];
    for (const row of rows) {
        let height = 0;
        for (const i of row) if (i < n) height = Math.max(height, items[i].h);
        top.push(y);
        bottom.push(y + height);
        for (const i of row)
            if (i < n) {
                items[i].x = x[i] - items[i].w / 2 - least;
                items[i].y = y + (height - items[i].h) / 2;
            }
        y += height + GAP_Y;
    }
    for (const edge of scene.edges) {
        const a = items[edge.from], b = items[edge.to];
        edge.points = [a.x + a.w / 2, a.y + a.h];
        for (const i of edge.bends)
            edge.points.push(x[i] - least, top[rowOf(i)], x[i] - least, bottom[rowOf(i)]);
        edge.points.push(b.x + b.w / 2, b.y);
    }
    scene.w = n > 0 ? right - least : 60;
    scene.h = n > 0 ? y - GAP_Y : 20;
}

/* -- scenes: a graph as it is drawn, with what is unfolded in it -- */

const measuring = document.createElement('canvas').getContext('2d');
const FONT = 'system-ui, sans-serif', SIZE = 13, SMALL = 11;
const LABEL_FONT = '600 ' + SIZE + 'px ' + FONT, SMALL_FONT = SMALL + 'px ' + FONT;
const widths = new Map(); /* of each character in each font: to measure every name takes long */

function widthOf(text, font) {
    let sum = 2;
    if (!widths.has(font)) {
        const all = new Float32Array(128);
        measuring.font = font;
        for (let code = 32; code < 127; code++)
            all[code] = measuring.measureText(String.fromCharCode(code)).width;
        widths.set(font, all);
    }
    const known = widths.get(font);
    for (let i = 0; i < text.length; i++) sum += known[text.charCodeAt(i)] || known[87];
    return sum;
}

function newItem(kind, label, small) {
    const item = {kind, label: shown(label.slice(0, 60)), small: tail(small, 30), kids: []};
    const wide = Math.max(widthOf(item.label, LABEL_FONT), widthOf(item.small, SMALL_FONT));
    item.w = Math.min(wide, 240) + 22;
    item.h = kind === 'node' ? item.small ? HEAD : 30 : 26;
    return item;
}

const innerGraphs = (node) => [...(node.bodies || []).map(([attr, graph]) => ({attr, graph})),
    ...(node.inner ? [{attr: 'function', graph: node.inner}] : [])];
const canUnfold = (node) => (node.bodies || []).length > 0 || node.inner !== undefined;

/* Constants are values rather than work: who reads one tells it, so they need not be drawn. */
const isConstant = (node) => node.op === 'Constant' && node.in.length === 0 &&
    !node.out.some((value) => node.graph.outputs.has(value)) && node.domain === '';

function nodeItem(node, path, how) {
    const item = newItem('node', node.op, node.name);
    item.node = node;
    item.path = path;
    if (canUnfold(node)) item.w += 18;
    if (!how.unfolded.has(path)) return item;
    let x = PAD, height = 0;
    innerGraphs(node).forEach(({attr, graph}, index) => {
        const scene = makeScene(graph, path + '.' + index, how);
        scene.attr = attr;
        scene.x = x;
        scene.y = item.h + 26;
        x += scene.w + 2 * PAD;
        height = Math.max(height, scene.h);
        item.kids.push(scene);
    });
    item.w = Math.max(item.w, x - PAD);
    item.h += 26 + height + PAD;
    return item;
}

/* `how`: the paths of what is unfolded, and whether constants are drawn. */
function makeScene(graph, path, how) {
    const scene = {graph, items: [], edges: []}, makers = new Map(), last = [], drawn = [];
    const add = (item) => scene.items.push(item) - 1;
    const addValue = (kind, value) => {
        const item = newItem(kind === 'outer' ? 'in' : kind, value, '');
        item.value = value;
        item.graph = graph;
        item.outer = kind === 'outer';
        item.path = path + '/' + kind + ':' + value;
        return add(item);
    };
    const connect = (value, at, to) => {
        if (at === undefined || at === to) return;
        if (last[at] === undefined || last[at].to !== to)
            scene.edges.push(last[at] = {from: at, to, graph, values: [value]});
        else if (!last[at].values.includes(value)) last[at].values.push(value); /* but one line */
    };
    for (const value of graph.inputs)
        if (!graph.constants.has(value)) makers.set(value, addValue('in', value));
    graph.nodes.forEach((node, index) => {
        if (!how.constants && isConstant(node)) return;
        drawn[index] = add(nodeItem(node, path + '/' + index, how));
        for (const value of node.out) if (value !== '') makers.set(value, drawn[index]);
    });
    const makerOf = (value) => {
        if (value === '' || makers.has(value) || graph.constants.has(value))
            return makers.get(value);
        const scope = graph.parent ? scopeOf(graph.parent.graph, value) : null;
        const maker = scope ? scope.makers.get(value) : undefined;
        if (!scope || scope.constants.has(value) || graph.makers.has(value) ||
            (maker && !how.constants && isConstant(maker)))
            return undefined;
        makers.set(value, addValue('outer', value));
        return makers.get(value);
    };
    graph.nodes.forEach((node, index) => {
        for (const value of node.in) connect(value, makerOf(value), drawn[index]);
        for (const value of node.outer) connect(value, makerOf(value), drawn[index]);
    });
    for (const value of graph.outputs) {
        const maker = makerOf(value);
        connect(value, maker, addValue('out', value));
    }
    layout(scene);
    return scene;
}

/* -- panes: a model with its canvas -- */

const panes = [];
let active = 0;
const say = (text) => { byId('said').textContent = text; };

/* Items and edges of a scene and of what is unfolded in it, with their places in the picture. */
function flatten(pane, scene, dx, dy, inside) {
    const begin = pane.items.length;
    for (const item of scene.items) {
        item.ax = item.x + dx;
        item.ay = item.y + dy;
        item.inside = inside;
        item.at = pane.items.length;
        pane.items.push(item);
        pane.paths.set(item.path, item);
    }
    for (const edge of scene.edges) {
        edge.a = begin + edge.from;
        edge.b = begin + edge.to;
        const points = edge.points;
        let x1 = Infinity, x2 = -Infinity, y1 = Infinity, y2 = -Infinity;
        for (let i = 0; i < points.length; i += 2) {
            const x = points[i] += dx, y = points[i + 1] += dy;
            x1 = Math.min(x1, x);
            x2 = Math.max(x2, x);
            y1 = Math.min(y1, y);
            y2 = Math.max(y2, y);
        }
        edge.box = [x1, y1, x2, y2];
        pane.edges.push(edge);
    }
    for (const item of scene.items)
        for (const kid of item.kids) flatten(pane, kid, item.ax + kid.x, item.ay + kid.y, item);
}

function rebuild(pane) {
    pane.items = [];
    pane.edges = [];
    pane.paths = new Map();
    const scene = makeScene(pane.root, '', pane);
    flatten(pane, scene, 0, 0, null);
    pane.w = scene.w;
    pane.h = scene.h;
    pane.selected = pane.selected ? pane.paths.get(pane.selected.path) || null : null;
    Object.assign(pane.canvas.dataset, {items: pane.items.length, w: Math.round(pane.w)});
    if (pane.selected && open === 'node' && pane.index === active) openTab('node');
    redraw(pane);
}

function fit(pane, readable) {
    const {width, height} = pane;
    pane.scale = Math.min(1.5, (width - 40) / pane.w, (height - 40) / pane.h);
    pane.x = pane.w / 2 - width / 2 / pane.scale;
    pane.y = pane.h / 2 - height / 2 / pane.scale;
    /* A big picture begins where it begins, with most of what is there, and can be read. */
    if (readable && pane.scale < 0.3) {
        pane.scale = 0.6;
        pane.y = -20 / pane.scale;
        const middles = pane.items.filter((item) => !item.inside && item.ay < height / pane.scale)
            .map((item) => item.ax + item.w / 2).sort((a, b) => a - b);
        pane.x = middles[middles.length >> 1] - width / 2 / pane.scale;
    }
    redraw(pane);
}

/* -- bars: which part of a big picture this is -- */

const BAR = 10;

/* The bar of an axis: where it begins, its length and its thumb; null: all can be seen. */
function barOf(pane, down) {
    const length = (down ? pane.height : pane.width) - BAR, seen = length / pane.scale;
    const whole = down ? pane.h : pane.w, from = down ? pane.y : pane.x;
    if (seen >= whole) return null;
    const size = Math.max(length * seen / whole, 24);
    const at = Math.min(Math.max(from / (whole - seen), 0), 1) * (length - size);
    return {at, size, length, whole, seen, across: (down ? pane.width : pane.height) - BAR};
}

function drawBars(g, pane) {
    for (const down of [false, true]) {
        const bar = barOf(pane, down);
        if (!bar) continue;
        g.fillStyle = theme.box;
        if (down) g.fillRect(bar.across, 0, BAR, bar.length + BAR);
        else g.fillRect(0, bar.across, bar.length + BAR, BAR);
        g.fillStyle = theme.line;
        if (down) g.fillRect(bar.across + 2, bar.at, BAR - 4, bar.size);
        else g.fillRect(bar.at, bar.across + 2, bar.size, BAR - 4);
    }
}

/* The axis whose bar is at a place: true is down; null: none. */
function barAt(pane, px, py) {
    for (const down of [false, true]) {
        const bar = barOf(pane, down);
        if (bar && (down ? px : py) >= bar.across) return down;
    }
    return null;
}

function moveBar(pane, down, px, py) {
    const bar = barOf(pane, down);
    if (!bar) return;
    const part = ((down ? py : px) - bar.size / 2) / (bar.length - bar.size);
    pane[down ? 'y' : 'x'] = Math.min(Math.max(part, 0), 1) * (bar.whole - bar.seen);
    redraw(pane);
}

function zoom(pane, factor, px, py) {
    const before = pane.scale;
    const least = Math.min(0.02, pane.height / pane.h / 2, pane.width / pane.w / 2);
    pane.scale = Math.min(4, Math.max(pane.scale * factor, least));
    pane.x += px / before - px / pane.scale;
    pane.y += py / before - py / pane.scale;
    redraw(pane);
}

const zoomMiddle = (pane, factor) =>
    zoom(pane, factor, pane.width / 2, pane.height / 2);

/* -- drawing -- */

function redraw(pane) {
    if (pane.waiting) return;
    pane.waiting = true;
    requestAnimationFrame(() => {
        pane.waiting = false;
        draw(pane);
    });
}

function roundBox(g, x, y, w, h, r) {
    g.beginPath();
    g.moveTo(x + r, y);
    g.arcTo(x + w, y, x + w, y + h, r);
    g.arcTo(x + w, y + h, x, y + h, r);
    g.arcTo(x, y + h, x, y, r);
    g.arcTo(x, y, x + w, y, r);
    g.closePath();
}

/* A line cut to what can be seen: drawing one that goes far beyond takes long. */
function traceFar(g, pane, edge) {
    const s = pane.scale, p = edge.points, w = pane.width, h = pane.height;
    for (let i = 2; i < p.length; i += 2) {
        const x = (p[i - 2] - pane.x) * s, y = (p[i - 1] - pane.y) * s;
        const dx = (p[i] - pane.x) * s - x, dy = (p[i + 1] - pane.y) * s - y;
        let from = 0, to = 1;
        for (const [start, by, most] of [[x, dx, w], [y, dy, h]]) {
            if (by === 0 && (start < 0 || start > most)) to = -1;
            if (by === 0) continue;
            from = Math.max(from, Math.min(-start / by, (most - start) / by));
            to = Math.min(to, Math.max(-start / by, (most - start) / by));
        }
        if (from >= to) continue;
        g.moveTo(x + from * dx, y + from * dy);
        g.lineTo(x + to * dx, y + to * dy);
    }
    return [(p[p.length - 2] - pane.x) * s, (p[p.length - 1] - pane.y) * s];
}

function traceEdge(g, pane, edge, plain) {
    const s = pane.scale, p = edge.points;
    if ((edge.box[2] - edge.box[0]) * s > 4 * pane.width ||
        (edge.box[3] - edge.box[1]) * s > 8 * pane.height)
        return traceFar(g, pane, edge);
    let x = (p[0] - pane.x) * s, y = (p[1] - pane.y) * s;
    g.moveTo(x, y);
    for (let i = 2; i < p.length; i += 2) {
        const nx = (p[i] - pane.x) * s, ny = (p[i + 1] - pane.y) * s;
        if (plain || nx === x) {
            g.lineTo(nx, ny);
        } else {
            const bend = Math.max((ny - y) / 2, edge.straight ? 0 : 6 * s);
            g.bezierCurveTo(x, y + bend, nx, ny - bend, nx, ny);
        }
        x = nx;
        y = ny;
    }
    return [x, y];
}

const MOST_EDGES = 5000; /* at once: of more only some are drawn, nobody can tell them apart */

function drawEdges(g, pane, view) {
    const s = pane.scale, plain = s < 0.25, heads = [];
    const selected = pane.selected ? pane.selected.at : -1, bright = [];
    g.strokeStyle = theme.edge;
    g.lineWidth = Math.max(0.5, Math.min(1.2, s));
    g.beginPath();
    const visible = pane.edges.filter(({box}) => box[2] >= view[0] && box[0] <= view[2] &&
        box[3] >= view[1] && box[1] <= view[3]);
    const every = pane.whole ? 1 : Math.ceil(visible.length / MOST_EDGES);
    visible.forEach((edge, i) => {
        if (edge.a === selected || edge.b === selected) {
            if (bright.length < MOST_EDGES) bright.push(edge);
            return;
        }
        if (i % every !== 0) return;
        const end = traceEdge(g, pane, edge, plain);
        if (s >= 0.4) heads.push(end);
        if (i / every % 256 !== 255) return;
        g.stroke(); /* long paths take more than their share */
        g.beginPath();
    });
    g.stroke();
    drawHeads(g, pane, heads, theme.edge);
    for (const edge of bright) {
        const colour = edge.b === selected ? theme.into : theme.from;
        g.strokeStyle = colour;
        g.lineWidth = Math.max(1.2, 2 * Math.min(1, s));
        g.beginPath();
        const end = traceEdge(g, pane, edge, plain);
        g.stroke();
        drawHeads(g, pane, [end], colour);
    }
    return visible;
}

function drawHeads(g, pane, heads, colour) {
    const s = pane.scale;
    g.fillStyle = colour;
    g.beginPath();
    for (const [x, y] of heads) {
        if (x < -9 || y < -9 || x > pane.width + 9 || y > pane.height + 9) continue;
        g.moveTo(x, y);
        g.lineTo(x - 3.5 * s, y - 7 * s);
        g.lineTo(x + 3.5 * s, y - 7 * s);
        g.closePath();
    }
    g.fill();
}

/* The end of a name, or the beginning of another text. */
function fitText(g, text, most, end = true) {
    if (g.measureText(text).width <= most) return text;
    let low = 0, high = text.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        const cut = end ? '...' + text.slice(-middle) : text.slice(0, middle) + '...';
        if (g.measureText(cut).width <= most) low = middle;
        else high = middle - 1;
    }
    return end ? '...' + text.slice(text.length - low) : text.slice(0, low) + '...';
}

/* What lint finds of a node, and inside of it while it is folded. */
const worstOf = ({node, kids}) => kids.length > 0 ? node.worst : worse(node.worst, node.inside);

function drawItem(g, pane, item) {
    const s = pane.scale, x = (item.ax - pane.x) * s, y = (item.ay - pane.y) * s;
    const w = Math.max(item.w * s, 1), h = Math.max(item.h * s, 1), chosen = item === pane.selected;
    const fill = item.kind === 'node' ? colourOf(epOf(item.node)) : theme.value;
    const mark = item.node && item.node.mark, found = item.node && theme[worstOf(item)];
    if (w < 5 && !chosen) {
        g.fillStyle = found || (mark ? theme.marks[mark] : fill === theme.box ? theme.line : fill);
        g.fillRect(x, y, w, h);
        return;
    }
    roundBox(g, x, y, w, h, Math.min(item.kind === 'node' ? 5 * s : h / 2, w / 2, h / 2));
    g.fillStyle = item.kids.length > 0 ? theme.inner : fill;
    g.fill();
    if (item.kids.length > 0) {
        drawInside(g, pane, item, x, y, w, fill);
        roundBox(g, x, y, w, h, Math.min(5 * s, w / 2, h / 2));
    }
    g.lineWidth = chosen ? 3 : mark ? 2.5 : 1;
    g.strokeStyle = chosen ? theme.select : mark ? theme.marks[mark] : theme.line;
    g.setLineDash(item.outer ? [4 * s, 3 * s] : []);
    g.stroke();
    g.setLineDash([]);
    if (found && w > 12) { /* not for hints */
        pane.marked++;
        g.fillStyle = found;
        g.beginPath();
        g.arc(x + 2, y + 2, Math.max(3, 4.5 * s), 0, 7);
        g.fill();
    }
    if (s < 0.3) return;
    drawLabel(g, item, x, y, w, s);
}

/* The head of a node that is unfolded, and what its graphs are called. */
function drawInside(g, pane, item, x, y, w, fill) {
    const s = pane.scale, head = (item.node.name ? HEAD : 30) * s;
    roundBox(g, x, y, w, head, Math.min(5 * s, head / 2));
    g.fillStyle = fill;
    g.fill();
    if (s < 0.3) return;
    g.fillStyle = theme.soft;
    g.textAlign = 'left';
    g.textBaseline = 'middle';
    g.font = SMALL * s + 'px ' + FONT;
    for (const kid of item.kids)
        g.fillText(fitText(g, shown(kid.attr, 40), Math.max(kid.w, 60) * s), x + kid.x * s,
            y + head + 10 * s);
}

function drawLabel(g, item, x, y, w, s) {
    const badge = item.kind === 'node' && canUnfold(item.node) ? 18 : 0;
    const middle = x + w / 2 - badge * s / 2, most = w - (14 + badge) * s;
    const high = item.kind === 'node' && item.small;
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    g.fillStyle = theme.text;
    g.font = (item.kind === 'node' ? '600 ' : '') + SIZE * s + 'px ' + FONT;
    g.fillText(fitText(g, item.label, most, item.kind !== 'node'), middle,
        y + (high ? 14 : item.kind === 'node' ? 15 : 13) * s);
    if (high) {
        g.font = SMALL * s + 'px ' + FONT;
        g.fillText(fitText(g, item.small, most), middle, y + 30 * s);
    }
    if (badge === 0) return;
    g.font = '600 ' + 15 * s + 'px ' + FONT;
    g.fillText(item.kids.length > 0 ? '\u2212' : '+', x + w - 13 * s, y + 14 * s);
}

/* Draws what a pane shows; `g` is a canvas's context or an SvgPicture. Returns how many nodes. */
function paint(g, pane) {
    const s = pane.scale, leaves = [];
    const view = [pane.x, pane.y, pane.x + pane.width / s, pane.y + pane.height / s];
    pane.marked = 0;
    g.direction = 'ltr';
    g.fillStyle = theme.back;
    g.fillRect(0, 0, pane.width, pane.height);
    for (const item of pane.items) {
        if (item.ax > view[2] || item.ay > view[3] || item.ax + item.w < view[0] ||
            item.ay + item.h < view[1])
            continue;
        if (item.kids.length > 0) drawItem(g, pane, item);
        else leaves.push(item);
    }
    const edges = drawEdges(g, pane, view);
    for (const item of leaves) drawItem(g, pane, item);
    drawTypes(g, pane, edges, leaves);
    return leaves.length;
}

/* On paper it is the picture of the screen, with its proportions. */
function draw(pane) {
    const canvas = pane.canvas, ratio = devicePixelRatio || 1, g = pane.context;
    const begun = performance.now();
    if (!paper.matches) measurePane(pane);
    const pixels = [Math.round(pane.width * ratio), Math.round(pane.height * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1])
        [canvas.width, canvas.height] = pixels;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const drawn = paint(g, pane);
    drawBars(g, pane);
    const chosen = pane.selected;
    canvas.dataset.box = JSON.stringify(!chosen ? [] : [chosen.ax - pane.x, chosen.ay - pane.y,
        chosen.w, chosen.h].map((n) => Math.round(n * pane.scale)));
    Object.assign(canvas.dataset, {drawn, scale: pane.scale, x: pane.x, y: pane.y,
        marked: pane.marked, types: pane.typed.length,
        ms: (performance.now() - begun).toFixed(1)});
    if (!document.documentElement.dataset.first)
        document.documentElement.dataset.first = performance.now().toFixed(0);
}

function measurePane(pane) {
    pane.width = pane.canvas.clientWidth;
    pane.height = pane.canvas.clientHeight;
}

/* -- types on edges, and of what is pointed at -- */

const typesOf = (edge) => edge.values.map((value) => typeOf(edge.graph, value));

/* Below the node that makes the value, once for all who read it, where nothing else is. */
function drawTypes(g, pane, edges, leaves) {
    const s = pane.scale, most = 400, told = new Set();
    pane.typed = [];
    if (s < 0.7) return;
    const taken = leaves.map((item) => [(item.ax - pane.x) * s, (item.ay - pane.y) * s,
        (item.ax - pane.x + item.w) * s, (item.ay - pane.y + item.h) * s]);
    g.font = 10 * s + 'px ' + FONT;
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    for (const edge of edges) {
        if (taken.length - leaves.length >= most && !pane.whole) break;
        const text = shown(typesOf(edge).filter((type) => type !== '').join(' '), 60);
        const key = edge.a + ':' + text;
        if (text === '' || told.has(key)) continue;
        const w = g.measureText(text).width / 2 + 3 * s, h = 7 * s;
        const x = (edge.points[0] - pane.x) * s, y = (edge.points[1] - pane.y + 11) * s;
        const box = [x - w, y - h, x + w, y + h];
        told.add(key);
        if (taken.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3]))
            continue;
        taken.push(box);
        pane.typed.push(text);
        g.fillStyle = theme.back;
        g.fillRect(box[0], box[1], 2 * w, 2 * h);
        g.fillStyle = theme.soft;
        g.fillText(text, x, y);
    }
}

function distance(x, y, x1, y1, x2, y2) {
    const dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy;
    const t = length > 0 ? Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / length)) : 0;
    return Math.hypot(x - x1 - t * dx, y - y1 - t * dy);
}

/* Whether a place is on the line that traceEdge draws. */
function isOn(edge, x, y, near) {
    const p = edge.points, STEPS = 12;
    for (let i = 2; i < p.length; i += 2) {
        const [x1, y1, x2, y2] = [p[i - 2], p[i - 1], p[i], p[i + 1]];
        const bend = Math.max((y2 - y1) / 2, edge.straight ? 0 : 6);
        let lastX = x1, lastY = y1;
        for (let k = 1; k <= STEPS; k++) {
            const t = k / STEPS, u = 1 - t, a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t;
            const d = t * t * t, nx = (a + b) * x1 + (c + d) * x2;
            const ny = a * y1 + b * (y1 + bend) + c * (y2 - bend) + d * y2;
            if (distance(x, y, lastX, lastY, nx, ny) <= near) return true;
            lastX = nx;
            lastY = ny;
        }
    }
    return false;
}

function edgeAt(pane, px, py) {
    const x = pane.x + px / pane.scale, y = pane.y + py / pane.scale, near = 5 / pane.scale;
    return pane.edges.find((edge) => edge.box[0] - near <= x && x <= edge.box[2] + near &&
        edge.box[1] - near <= y && y <= edge.box[3] + near && isOn(edge, x, y, near)) || null;
}

/* Values with their types, beside the pointer. */
function tell(pane, px, py) {
    const item = itemAt(pane, px, py), leaf = item && item.kids.length === 0 ? item : null;
    const edge = leaf ? null : edgeAt(pane, px, py);
    const graph = edge ? edge.graph : leaf ? leaf.node ? leaf.node.graph : leaf.graph : null;
    const values = edge ? edge.values : !leaf ? [] : leaf.node
        ? leaf.node.out.filter((value) => value !== '') : [leaf.value];
    pane.tip.hidden = values.length === 0;
    pane.tip.replaceChildren(...some(values, 6, (value) => el('div', {}, name(tail(value, 60)),
        ' ', el('span', {class: 'soft code'}, shown(typeOf(graph, value) || 'no type', 80)))));
    if (pane.tip.hidden) return;
    pane.tip.style.left = Math.max(0, Math.min(px + 14, pane.width - pane.tip.offsetWidth)) + 'px';
    pane.tip.style.top = (py + 18 + pane.tip.offsetHeight > pane.height
        ? py - pane.tip.offsetHeight - 8 : py + 18) + 'px';
}

/* -- the whole picture as a file -- */

const SVG = ['http:', '', 'www.w3.org', '2000', 'svg'].join('/'); /* a name: nobody asks there */

/* What of a canvas's context is used here, as the elements of an SVG. */
class SvgPicture {
    constructor() {
        this.parts = [];
        this.path = [];
        this.dash = [];
    }

    add(...numbers) {
        this.path.push(numbers.map((n) => typeof n === 'number' ? Math.round(n * 100) / 100 : n)
            .join(' '));
        this.at = numbers.slice(-2);
    }

    beginPath() { this.path = []; }

    moveTo(x, y) { this.add('M', x, y); }

    lineTo(x, y) { this.add('L', x, y); }

    bezierCurveTo(...points) { this.add('C', ...points); }

    closePath() { this.path.push('Z'); }

    /* At right angles, as in boxes. */
    arcTo(x1, y1, x2, y2, r) {
        const [x, y] = this.at;
        this.lineTo(x1 + r * Math.sign(x - x1), y1 + r * Math.sign(y - y1));
        this.add('A', r, r, 0, 0, 1, x1 + r * Math.sign(x2 - x1), y1 + r * Math.sign(y2 - y1));
    }

    /* A whole circle. */
    arc(x, y, r) {
        this.add('M', x - r, y, 'A', r, r, 0, 1, 0, x + r, y, 'A', r, r, 0, 1, 0, x - r, y);
    }

    put(attributes) {
        const path = this.path.join('');
        if (path !== '') this.parts.push(`<path d="${path}" ${attributes}/>`);
    }

    fill() { this.put(`fill="${this.fillStyle}"`); }

    stroke() {
        this.put(`fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"` +
            (this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(' ')}"` : ''));
    }

    setLineDash(dash) { this.dash = dash; }

    fillRect(x, y, w, h) {
        const sizes = [x, y, w, h].map((n) => n.toFixed(2));
        this.parts.push(`<rect x="${sizes[0]}" y="${sizes[1]}" width="${sizes[2]}" ` +
            `height="${sizes[3]}" fill="${this.fillStyle}"/>`);
    }

    measureText(text) {
        measuring.font = this.font;
        return measuring.measureText(text);
    }

    fillText(text, x, y) {
        const anchor = this.textAlign === 'center' ? ' text-anchor="middle"' : '';
        const [, weight, size] = /^(600 )?([\d.]+)px/.exec(this.font);
        this.parts.push(`<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-size="${size}"` +
            (weight ? ' font-weight="600"' : '') + anchor +
            ` fill="${this.fillStyle}">${asXml(text)}</text>`);
    }

    document(pane) {
        const size = `width="${Math.ceil(pane.width)}" height="${Math.ceil(pane.height)}"`;
        return `<svg xmlns="${SVG}" ${size} font-family="${FONT}" ` +
            `dominant-baseline="central"><title>${asXml(fileName(pane.model))}</title>\n` +
            this.parts.join('\n') + '\n</svg>\n';
    }
}

/* What XML does not allow at all is shown() before, but for two. */
const asXml = (text) => text.replace(/[\ufffe\uffff]/g, '\ufffd').replace(/[<>&"]/g,
    (c) => '&#' + c.charCodeAt(0) + ';');

const AROUND = 20;

/* A pane as big as its picture, black on white. */
function paintWhole(pane, scale, start) {
    const whole = {...pane, scale, x: -AROUND, y: -AROUND, whole: true,
        width: (pane.w + 2 * AROUND) * scale, height: (pane.h + 2 * AROUND) * scale};
    const before = theme;
    theme = LIGHT;
    paint(start(whole), whole);
    theme = before;
    return whole;
}

function save(pane, blob, ending) {
    const address = URL.createObjectURL(blob);
    const stem = fileName(pane.model).replace(/\.onnx$/, '').replace(/[^\w.-]+/g, '_');
    el('a', {href: address, download: (stem || 'model') + ending}).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function saveSvg(pane) {
    const picture = new SvgPicture();
    const text = picture.document(paintWhole(pane, 1, () => picture));
    save(pane, new Blob([text], {type: 'image/svg+xml'}), '.svg');
}

/* As large as browsers can. */
function savePng(pane) {
    const w = pane.w + 2 * AROUND, h = pane.h + 2 * AROUND, canvas = el('canvas');
    const scale = Math.min(2, 16000 / w, 16000 / h, Math.sqrt(64e6 / w / h));
    paintWhole(pane, scale, (whole) => {
        canvas.width = Math.ceil(whole.width);
        canvas.height = Math.ceil(whole.height);
        return canvas.getContext('2d', {alpha: false});
    });
    canvas.toBlob((blob) => {
        if (blob) save(pane, blob, '.png');
        else say('the picture is too large for a PNG');
    });
}

/* -- pointing, selecting, folding -- */

function itemAt(pane, px, py) {
    const x = pane.x + px / pane.scale, y = pane.y + py / pane.scale;
    for (let i = pane.items.length - 1; i >= 0; i--) {
        const item = pane.items[i];
        if (x >= item.ax && x <= item.ax + item.w && y >= item.ay && y <= item.ay + item.h)
            return item;
    }
    return null;
}

function onBadge(pane, item, px, py) {
    const x = pane.x + px / pane.scale - item.ax, y = pane.y + py / pane.scale - item.ay;
    return item.kind === 'node' && canUnfold(item.node) && x > item.w - 24 && y < 26;
}

function setActive(index) {
    active = index;
    panes.forEach((pane, i) => pane.element.classList.toggle('active', i === index));
    [...byId('which').children].forEach((button, i) =>
        button.setAttribute('aria-pressed', String(i === index)));
}

/* -- the address: #node=NAME, of several with that name &at=2, in the second model &model=2 -- */

let writing = 0;

/* The nodes with each label, in the order of the file. */
function labelsOf(model) {
    if (!model.labels) {
        model.labels = new Map();
        for (const node of model.nodes) {
            const same = model.labels.get(nodeLabel(node));
            if (same) same.push(node);
            else model.labels.set(nodeLabel(node), [node]);
        }
    }
    return model.labels;
}

function addressOf(node) {
    const {model} = node.graph, label = nodeLabel(node), same = labelsOf(model).get(label);
    return '#node=' + encodeURIComponent(label) +
        (same[0] === node ? '' : '&at=' + (same.indexOf(node) + 1)) +
        (model === models[0] ? '' : '&model=' + (models.indexOf(model) + 1));
}

/* Later, as browsers let a page do it some times a second only. */
function writeAddress(node) {
    clearTimeout(writing);
    writing = setTimeout(() => history.replaceState(null, '', node ? addressOf(node) : '#'), 150);
}

/* Shows the node that the address names, if there is one. */
function readAddress() {
    const given = new Map(location.hash.slice(1).split('&').map((pair) => {
        const at = (pair + '=').indexOf('='), text = pair.slice(at + 1);
        return [pair.slice(0, at), /%(?![\da-f]{2})/i.test(text) ? text : decoded(text)];
    }));
    const model = models[Number(given.get('model') || 1) - 1];
    if (!given.has('node') || !model) return;
    const same = labelsOf(model).get(given.get('node')) || [];
    const node = same[Number(given.get('at') || 1) - 1];
    if (node) reveal(node);
    else say('there is no node ' + shown(given.get('node'), 80));
}

/* Bytes that are no UTF-8 stay as they are. */
function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

function select(pane, item, keep) {
    if (pane.index !== active) setActive(pane.index);
    pane.selected = item;
    pane.canvas.dataset.selected = item ? item.node ? nodeLabel(item.node) : item.value : '';
    redraw(pane);
    writeAddress(item && item.node);
    if (!keep) openTab('node');
    if (item)
        say(item.node ? fullOp(item.node) + ' ' + shown(nodeLabel(item.node), 80)
                      : 'value ' + shown(item.value, 80));
}

function centre(pane, item) {
    pane.scale = Math.max(pane.scale, 0.7);
    pane.x = item.ax + item.w / 2 - pane.width / 2 / pane.scale;
    pane.y = item.ay + Math.min(item.h, 60) / 2 - pane.height / 2 / pane.scale;
    redraw(pane);
}

/* Folds or unfolds; what was clicked stays where it is. */
function toggle(pane, item) {
    if (!item.node || !canUnfold(item.node)) return;
    const sx = (item.ax - pane.x) * pane.scale, sy = (item.ay - pane.y) * pane.scale;
    const {path} = item;
    if (!pane.unfolded.delete(path)) pane.unfolded.add(path);
    rebuild(pane);
    const now = pane.paths.get(path);
    pane.x = now.ax - sx / pane.scale;
    pane.y = now.ay - sy / pane.scale;
    select(pane, now);
}

const MOST_UNFOLDED = 60000;

function unfoldAll(pane) {
    let left = MOST_UNFOLDED;
    const visit = (graph, path, depth) => graph.nodes.forEach((node, index) => {
        if (!canUnfold(node) || depth > 12) return;
        const inner = innerGraphs(node);
        const size = inner.reduce((sum, {graph: g}) => sum + g.nodes.length, 0);
        if (size > left) return;
        left -= size;
        pane.unfolded.add(path + '/' + index);
        inner.forEach(({graph: g}, k) => visit(g, path + '/' + index + '.' + k, depth + 1));
    });
    visit(pane.root, '', 0);
    rebuild(pane);
    fit(pane, true);
}

/* The path of a node in the picture, for which bodies around it are unfolded and, if need be,
 * another graph is shown. */
function pathOf(pane, node) {
    const graph = node.graph, parent = graph.parent;
    if (!parent) {
        if (pane.root !== graph) setRoot(pane, graph);
        return '/' + node.index;
    }
    const above = pathOf(pane, parent), body = parent.bodies.findIndex(([, g]) => g === graph);
    pane.unfolded.add(above);
    return above + '.' + body + '/' + node.index;
}

/* Shows a node; `keep`: the tab that is open stays open. */
function reveal(node, keep) {
    const pane = panes[models.indexOf(node.graph.model)], before = pane.unfolded.size;
    const path = pathOf(pane, node);
    if (isConstant(node) && !pane.constants) showConstants(pane, true);
    if (pane.unfolded.size !== before || !pane.paths.has(path)) rebuild(pane);
    const item = pane.paths.get(path);
    centre(pane, item);
    select(pane, item, keep);
}

function showConstants(pane, wanted) {
    pane.constants = wanted;
    if (pane.toggle) pane.toggle.textContent = (wanted ? 'Hide ' : 'Show ') +
        count(pane.model.nodes.filter(isConstant).length, 'constant');
    if (pane.items) rebuild(pane);
}

function setRoot(pane, graph) {
    pane.root = graph;
    pane.unfolded.clear();
    pane.selected = null;
    if (pane.choice) pane.choice.value = String(pane.model.graphs.indexOf(graph));
    rebuild(pane);
    fit(pane, true);
}

/* The next or previous node in the order of the file. */
function step(pane, by) {
    const nodes = pane.items.filter((item) => item.kind === 'node');
    if (nodes.length === 0) return;
    const at = pane.selected ? nodes.indexOf(pane.selected) : -1;
    const next = at < 0 ? by > 0 ? 0 : nodes.length - 1 : (at + by + nodes.length) % nodes.length;
    centre(pane, nodes[next]);
    select(pane, nodes[next]);
}

function onKey(pane, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = 60 / pane.scale, key = event.key;
    if (key === 'ArrowLeft') pane.x -= move;
    else if (key === 'ArrowRight') pane.x += move;
    else if (key === 'ArrowUp') pane.y -= move;
    else if (key === 'ArrowDown') pane.y += move;
    else if (key === 'PageUp') pane.y -= pane.height / pane.scale * 0.9;
    else if (key === 'PageDown') pane.y += pane.height / pane.scale * 0.9;
    else if (key === '+' || key === '=') zoomMiddle(pane, 1.3);
    else if (key === '-') zoomMiddle(pane, 1 / 1.3);
    else if (key === '0') fit(pane, false);
    else if (key === 'n') step(pane, 1);
    else if (key === 'p') step(pane, -1);
    else if ((key === 'Enter' || key === ' ') && pane.selected) toggle(pane, pane.selected);
    else if (key === 'Escape') select(pane, null);
    else return;
    event.preventDefault();
    redraw(pane);
}

function watch(pane) {
    const canvas = pane.canvas, pointers = new Map();
    let moved = 0, apart = 0, bar = null; /* the axis whose bar is held */
    const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        moved = pointers.size > 1 ? 100 : 0;
        setActive(pane.index);
        pane.tip.hidden = true;
        bar = barAt(pane, ...place(event));
        if (bar !== null) moveBar(pane, bar, ...place(event));
    });
    canvas.addEventListener('pointermove', (event) => {
        const before = pointers.get(event.pointerId), [x, y] = place(event);
        if (!before) {
            tell(pane, x, y);
            return;
        }
        pointers.set(event.pointerId, [x, y]);
        if (bar !== null) {
            moveBar(pane, bar, x, y);
            return;
        }
        moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
        if (pointers.size === 2) {
            const [a, b] = [...pointers.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
            if (apart > 0) zoom(pane, now / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
            apart = now;
            return;
        }
        if (moved < 4) return;
        pane.x -= (x - before[0]) / pane.scale;
        pane.y -= (y - before[1]) / pane.scale;
        redraw(pane);
    });
    const end = (event) => {
        if (!pointers.delete(event.pointerId)) return;
        apart = 0;
        if (moved >= 4 || bar !== null || event.type !== 'pointerup') return;
        const [x, y] = place(event), item = itemAt(pane, x, y);
        if (item && onBadge(pane, item, x, y)) toggle(pane, item);
        else select(pane, item);
    };
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('pointerleave', () => { pane.tip.hidden = true; });
    canvas.addEventListener('dblclick', (event) => {
        const [x, y] = place(event), item = itemAt(pane, x, y);
        if (item && !onBadge(pane, item, x, y)) toggle(pane, item);
    });
    canvas.addEventListener('wheel', (event) => {
        const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
        event.preventDefault();
        zoom(pane, Math.exp(-event.deltaY * unit * 0.0016), ...place(event));
    }, {passive: false});
    canvas.addEventListener('keydown', (event) => onKey(pane, event));
    canvas.addEventListener('focus', () => setActive(pane.index));
    new ResizeObserver(() => redraw(pane)).observe(canvas);
}

const fileName = (model) => tail(model.info.file.replace(/.*\//s, ''), 80);

function makePane(model, index) {
    const pane = {model, index, unfolded: new Set(), constants: false, selected: null,
        root: model.graphs[0]};
    pane.canvas = el('canvas', {tabindex: 0, 'aria-label': 'Graph of ' + shown(model.info.file) +
        '; keys: n and p select nodes, arrow keys move', role: 'application'});
    pane.context = pane.canvas.getContext('2d', {alpha: false});
    pane.legend = el('div', {class: 'legend'});
    pane.tip = el('div', {class: 'tip', hidden: ''});
    const parts = model.info.partitions.length;
    const title = el('div', {class: 'title'}, el('b', {class: 'name',
        title: shown(model.info.file)}, fileName(model)),
        el('span', {class: 'soft'}, count(model.nodes.length, 'node') +
            (parts > 0 ? ', ' + count(parts, 'partition') : '')));
    if (model.graphs.length > 1) {
        pane.choice = el('select', {'aria-label': 'Graph that is shown', onchange: () =>
            setRoot(pane, model.graphs[Number(pane.choice.value)])});
        model.graphs.forEach((graph, i) =>
            pane.choice.append(el('option', {value: i}, shown(graphLabel(graph), 60))));
        title.append(pane.choice);
    }
    if (model.nodes.some(isConstant)) {
        pane.toggle = el('button', {type: 'button', onclick: () => {
            showConstants(pane, !pane.constants);
            fit(pane, true);
        }});
        showConstants(pane, false);
        title.append(pane.toggle);
    }
    pane.element = el('section', {class: 'pane', 'aria-label': fileName(model)}, title,
        el('div', {class: 'picture'}, pane.canvas, pane.legend, pane.tip));
    byId('panes').append(pane.element);
    panes.push(pane);
    watch(pane);
    return pane;
}

/* A square in a colour; the page's policy allows no style attributes, but properties. */
function swatch(colour, border) {
    const made = el('span', {class: 'swatch'});
    if (colour) made.style.backgroundColor = colour;
    if (border) made.style.border = '2.5px solid ' + border;
    return made;
}

function fillLegend(pane) {
    const counts = new Map([[CPU, 0]]), marks = new Map();
    for (const node of pane.model.nodes) {
        counts.set(epOf(node), (counts.get(epOf(node)) || 0) + 1);
        if (node.mark) marks.set(node.mark, (marks.get(node.mark) || 0) + 1);
    }
    if (counts.get(CPU) === 0) counts.delete(CPU);
    pane.legend.replaceChildren(
        ...[...counts].map(([ep, number]) =>
            el('div', {}, swatch(colourOf(ep)), el('span', {class: 'name'}, shown(ep, 80) + ' ' +
                grouped(number)))),
        ...[...marks].map(([mark, number]) =>
            el('div', {}, swatch(null, theme.marks[mark]), mark + ' ' + grouped(number))));
}

/* -- the panel -- */

const tabs = [];
let open = 'node';

/* `visible(model)`: is there anything to show? `fill(model, pane)` returns elements. */
function addTab(id, label, visible, fill) {
    tabs.push({id, label, visible, fill});
}

function openTab(id) {
    const model = models[active], pane = panes[active];
    const there = tabs.filter((tab) => models.some(tab.visible));
    const tab = there.find((t) => t.id === id) || there[0];
    open = tab.id;
    const buttons = there.map((t) => el('button', {role: 'tab', id: 'tab-' + t.id,
        'aria-selected': String(t === tab), 'aria-controls': 'body',
        tabindex: t === tab ? 0 : -1, onclick: () => openTab(t.id), 'data-label': t.label(model)},
    t.label(model)));
    const had = byId('tabs').contains(document.activeElement);
    byId('tabs').replaceChildren(...buttons);
    if (had) byId('tab-' + tab.id).focus();
    byId('body').setAttribute('aria-labelledby', 'tab-' + tab.id);
    byId('body').replaceChildren(...[tab.visible(model) ? tab.fill(model, pane)
        : el('p', {class: 'soft'}, 'Nothing of this model.')].flat(Infinity)
        .filter((child) => child !== null));
}

function tabKey(event) {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    const there = tabs.filter((tab) => models.some(tab.visible));
    const at = there.findIndex((tab) => tab.id === open);
    openTab(there[(at + by + there.length) % there.length].id);
    event.preventDefault();
}

const link = (text, action, title) => el('button', {class: 'link name', type: 'button', title,
    onclick: action}, shown(text, 160));
const nodeLink = (node) => link(nodeLabel(node) || fullOp(node), () => reveal(node));
const pair = (key, value) => el('tr', {}, el('td', {class: 'key name'}, shown(key)),
    el('td', {}, value));
const table = (rows) => el('table', {}, el('tbody', {}, rows));
const part = (heading, content) => [el('h3', {}, heading), content];

/* The first of a list that may be endless. */
function some(list, most, make = String) {
    const made = list.slice(0, most).map(make);
    if (list.length > most)
        made.push(el('p', {class: 'soft'}, 'and ' + grouped(list.length - most) + ' more'));
    return made;
}

function someRows(list, make) {
    const most = 300;
    return [table(list.slice(0, most).map(make)), ...some(list.slice(most), 0, make)];
}

/* -- a node -- */

const READERS = {
    float32: (v, i) => v.getFloat32(4 * i, true), float64: (v, i) => v.getFloat64(8 * i, true),
    int8: (v, i) => v.getInt8(i), uint8: (v, i) => v.getUint8(i),
    int16: (v, i) => v.getInt16(2 * i, true), uint16: (v, i) => v.getUint16(2 * i, true),
    int32: (v, i) => v.getInt32(4 * i, true), uint32: (v, i) => v.getUint32(4 * i, true),
    int64: (v, i) => v.getBigInt64(8 * i, true), uint64: (v, i) => v.getBigUint64(8 * i, true),
    bool: (v, i) => v.getUint8(i) !== 0};
const WIDTHS = {float32: 4, float64: 8, int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4,
    int64: 8, uint64: 8, bool: 1};

/* The elements of a small tensor. */
function elements(type, hex) {
    const kind = type.replace(/\[.*/, ''), read = READERS[kind];
    if (hex === '') return '[]';
    if (!read) return '0x' + hex;
    const raw = Uint8Array.from(hex.match(/../g), (digits) => parseInt(digits, 16));
    const view = new DataView(raw.buffer), values = [];
    for (let i = 0; i < Math.floor(raw.length / WIDTHS[kind]) && i < 24; i++) {
        const value = read(view, i);
        values.push(kind === 'float32' ? String(Number(value.toPrecision(7))) : String(value));
    }
    return type.endsWith('[]') ? values[0] : '[' + values.join(', ') + ']';
}

/* An initializer or a tensor: type, size, where it is, and its elements if there are few. */
function tensorText(tensor) {
    const [, type, size, hex, file] = tensor, words = [shown(type)];
    if (size !== null) words.push(bytes(size));
    if (file !== undefined) words.push('in ' + shown(file, 80));
    if (hex !== null && hex !== undefined) words.push(elements(type, hex));
    return words.join(', ');
}

function attrText([, type, value, size]) {
    if (value === null) return size !== undefined ? bytes(size) : '(' + type.toLowerCase() + ')';
    if (value.ref !== undefined) return 'attribute ' + shown(value.ref) + ' of the function';
    if (value.tensor) return tensorText(value.tensor);
    if (Array.isArray(value)) return '[' + value.map((v) => shown(v, 100)).join(', ') + ']';
    return shown(value) + (size !== undefined ? '... (' + bytes(size) + ')' : '');
}

const attrRow = (attr) => el('tr', {}, el('td', {class: 'key name'}, shown(attr[0]),
    el('div', {class: 'kind'}, attr[1].toLowerCase())),
el('td', {class: 'name code'}, attrText(attr)));

/* Where a value comes from: a button for a node, text for the rest. */
function origin(graph, value) {
    const scope = scopeOf(graph, value);
    if (!scope) return el('span', {class: 'error'}, 'nobody makes it');
    if (scope.makers.has(value)) {
        const maker = scope.makers.get(value), attr = maker.attrs.find(([key]) => key === 'value');
        if (isConstant(maker) && attr && attr[2] && attr[2].tensor)
            return [link('Constant', () => reveal(maker)), ' ' + tensorText(attr[2].tensor)];
        return link(maker.op + ' ' + nodeLabel(maker), () => reveal(maker));
    }
    if (scope.constants.has(value))
        return el('span', {}, 'initializer: ' + tensorText(scope.constants.get(value)));
    return el('span', {class: 'soft'}, 'input of the ' + graphLabel(scope));
}

function valueRow(graph, value, index, more) {
    const number = el('td', {class: 'soft index'}, index);
    if (value === '') return el('tr', {}, number, el('td', {class: 'soft'}, '(none)'));
    const type = typeOf(graph, value);
    return el('tr', {}, number, el('td', {}, name(value, 'code'),
        type ? el('div', {class: 'soft code'}, shown(type)) : null, more));
}

function readersOf(graph, value) {
    const readers = graph.readers.get(value) || [];
    const made = some(readers, 12, (node) =>
        el('div', {}, link(node.op + ' ' + nodeLabel(node), () => reveal(node))));
    if (graph.outputs.has(value))
        made.push(el('div', {class: 'soft'}, 'output of the ' + graphLabel(graph)));
    return made;
}

function initializerSum(node) {
    let sum = 0, number = 0;
    for (const value of new Set(node.in)) {
        const scope = value !== '' ? scopeOf(node.graph, value) : null;
        if (!scope || scope.makers.has(value) || !scope.constants.has(value)) continue;
        number++;
        sum += scope.constants.get(value)[2] || 0;
    }
    return number > 0 ? count(number, 'initializer') + ', ' + bytes(sum) : null;
}

function nodeBody(node, item, pane) {
    const sizes = initializerSum(node), found = groupFindings(node.found || []);
    const inside = canUnfold(node) && node.inside ? groupFindings(foundInside(node)) : [];
    const where = node.graph.kind === 'main' ? null : node.graph.parent
        ? el('span', {}, 'body of ', nodeLink(node.graph.parent)) : graphLabel(node.graph);
    return [
        el('h2', {class: 'name', id: 'node-op'}, shown(fullOp(node))),
        el('p', {}, name(node.name || '(no name)', 'code')),
        some(found, 50, (group) => findingCard(group, false)),
        canUnfold(node) ? el('p', {}, el('button', {onclick: () => toggle(pane, item)},
            item.kids.length > 0 ? 'Fold' : 'Unfold')) : null,
        table([pair('runs on', epOf(node)), where ? pair('in', where) : null,
            sizes ? pair('weights', sizes) : null,
            node.doc ? pair('documentation', shown(node.doc)) : null]),
        inside.length > 0 ? part('Found inside', some(inside, 50, (group) =>
            findingCard(group, true))) : null,
        node.changes && node.changes.length > 0
            ? part('Differences', some(node.changes, 50, changeCard)) : null,
        part('Attributes', node.attrs.length === 0 ? el('p', {class: 'soft'}, 'none')
            : someRows(node.attrs, attrRow)),
        part('Inputs', someRows(node.in, (value, i) => valueRow(node.graph, value, i,
            el('div', {}, value === '' ? null : origin(node.graph, value))))),
        part('Outputs', someRows(node.out, (value, i) =>
            valueRow(node.graph, value, i, readersOf(node.graph, value)))),
    ];
}

function valueBody(item) {
    const {graph, value} = item, type = typeOf(graph, value);
    return [
        el('h2', {class: 'name'}, shown(value)),
        el('p', {class: 'soft'}, item.outer ? 'value of a graph around this one'
            : (item.kind === 'in' ? 'input' : 'output') + ' of the ' + graphLabel(graph)),
        table([pair('type', el('span', {class: 'code'}, shown(type || 'no type')))]),
        item.kind === 'in' && !item.outer ? null
            : part('Made by', el('p', {}, origin(graph, value))),
        item.kind === 'out' ? null : part('Read by', readersOf(graph, value)),
    ];
}

addTab('node', () => 'Node', () => true, (model, pane) => {
    const item = pane.selected;
    if (!item)
        return [el('p', {class: 'soft'}, 'Click a node, or press / to search. With the picture ' +
            'in focus n and p go through the nodes.'), ...overview(model)];
    return item.node ? nodeBody(item.node, item, pane) : valueBody(item);
});

function overview(model) {
    const ops = Object.entries(model.info.cpu_ops).slice(0, 12), main = model.graphs[0];
    const values = (names) => someRows(names, (value) =>
        pair(value, el('span', {class: 'code'}, shown(typeOf(main, value)))));
    return [
        part('Inputs', values([...main.inputs].filter((value) => !main.constants.has(value)))),
        part('Outputs', values([...main.outputs])),
        part('On the CPU', ops.length === 0 ? el('p', {}, 'nothing') : table(ops.map((op) =>
            el('tr', {}, el('td', {}, name(op[0])), el('td', {class: 'number'}, grouped(op[1])))))),
    ];
}

/* -- partitions and files -- */

function partCard(p, node, model) {
    const file = model.info.files.find((f) => f.name === p.ep_cache_context);
    const rows = [['source', p.source], ['SDK version', p.ep_sdk_version],
        ['architecture', p.hardware_architecture], ['partition name', p.partition_name],
        ['made from', p.onnx_model_filename], ['notes', p.notes],
        ['max_size', p.max_size > 0 ? bytes(p.max_size) : null]];
    const context = !p.readable ? 'the attributes cannot be read'
        : p.embed_mode === 1 && p.payload_size > 0 ? 'embedded, ' + bytes(p.payload_size)
        : p.ep_cache_context ? 'in the file ' + shown(p.ep_cache_context) +
            (file && file.size !== null ? ', ' + bytes(file.size) : '')
        : p.main_context === 1 ? 'none' : 'inside a main node';
    const extras = Object.entries(p.attributes).map(([key, value]) => pair(key,
        value && value.type ? '(' + value.type.toLowerCase() + ')' : shown(String(value))));
    return el('div', {class: 'card'},
        el('p', {class: 'row'}, swatch(node ? colourOf(epOf(node)) : null),
            node ? nodeLink(node) : name(p.name), p.graph ? ' in ' + shown(p.graph, 80) : ''),
        table([pair('context', context), p.main_context === undefined ? null
            : pair('kind', p.main_context === 1 ? 'main' : 'secondary'),
            rows.filter(([, value]) => value !== null && value !== undefined && value !== '')
                .map(([key, value]) => pair(key, shown(String(value)))), extras,
            pair('values', count(p.inputs, 'input') + ', ' + count(p.outputs, 'output'))]));
}

addTab('parts', (model) => 'Partitions ' + model.info.partitions.length,
    (model) => model.info.partitions.length > 0, (model) => {
        const nodes = model.nodes.filter((node) => node.op === 'EPContext'), used = new Set();
        return some(model.info.partitions, 300, (p) => {
            const node = nodes.find((n) => !used.has(n) && n.name === p.name);
            if (node) used.add(node);
            return partCard(p, node, model);
        });
    });

function fileCard(file) {
    return el('div', {class: 'card'}, el('p', {}, name(file.name, 'code')),
        el('p', {class: 'soft'}, file.purpose + (file.required ? '' : ', not needed to load')),
        file.path !== null ? el('p', {}, bytes(file.size) + ', ', name(file.path))
            : file.required ? el('p', {class: 'error'}, 'missing or unusable')
            : el('p', {class: 'soft'}, 'not found'));
}

addTab('files', (model) => 'Files ' + model.info.files.length, () => true, (model) => [
    model.info.warnings.map((text) => el('p', {class: 'warning'}, shown(text))),
    model.info.files.length === 0 ? el('p', {class: 'soft'}, 'The model needs no other file.')
        : some(model.info.files, 300, fileCard)]);

/* -- findings -- */

const RANK = {error: 0, warning: 1, hint: 2};
const worse = (a, b) => !a || (b && RANK[b] < RANK[a]) ? b : a;
const bySeverity = (list) => list.slice().sort((a, b) => RANK[a.severity] - RANK[b.severity]);

/* The nodes that a finding is about: it names a node or a value, and the graph around it. */
function attachFindings(model) {
    const byName = new Map(), makers = new Map(), readers = new Map();
    const note = (map, key, node) => {
        if (key === '') return;
        if (map.has(key)) map.get(key).push(node);
        else map.set(key, [node]);
    };
    for (const node of model.nodes) {
        note(byName, node.name, node);
        for (const value of node.out) note(makers, value, node);
        for (const value of node.in) note(readers, value, node);
    }
    for (const finding of model.findings) {
        const called = byName.get(finding.node) || makers.get(finding.node) ||
            readers.get(finding.node);
        if (!called) continue;
        const node = called.find(({graph}) => (graph.kind === 'main' ? '' : graph.name) ===
            finding.graph) || called[0];
        finding.at = node;
        (node.found = node.found || []).push(finding);
        node.worst = worse(node.worst, finding.severity);
        markAround(node, finding.severity);
    }
}

/* The nodes with the bodies and functions that a node is in: there is something inside of them. */
function markAround(node, severity) {
    const list = [node];
    while (list.length > 0) {
        const {graph} = list.pop();
        for (const around of graph.parent ? [graph.parent] : graph.callers) {
            if (around.inside && RANK[around.inside] <= RANK[severity]) continue;
            around.inside = severity;
            list.push(around);
        }
    }
}

/* What is found inside of a node. */
function foundInside(node) {
    const graphs = innerGraphs(node).map(({graph}) => graph), seen = new Set(graphs), found = [];
    for (const graph of graphs) /* which grows */
        for (const inner of graph.nodes) {
            found.push(...inner.found || []);
            for (const {graph: next} of innerGraphs(inner))
                if (!seen.has(next)) seen.add(next), graphs.push(next);
        }
    return found;
}

/* Findings that say the same of several nodes are one. */
function groupFindings(findings) {
    const groups = new Map();
    for (const finding of bySeverity(findings)) {
        const about = finding.message.replace(/'[^']*'/g, "''").replace(/\d+/g, '0');
        const key = JSON.stringify([finding.id, finding.attribute, about]);
        if (groups.has(key)) groups.get(key).push(finding);
        else groups.set(key, [finding]);
    }
    return [...groups.values()];
}

const findingText = ({attribute, message}) =>
    el('p', {}, name((attribute ? attribute + ' ' : '') + message));
const commandText = (finding) => finding.command
    ? el('p', {class: 'command'}, name(finding.command, 'code')) : null;

/* One of a group: what the others have, too, is told once. */
function findingRow(finding, linked, own) {
    const where = finding.graph === '' ? null : el('span', {class: 'soft'}, ' in ' +
        shown(finding.graph, 80));
    return el('div', {class: 'one'},
        finding.node === '' ? null : el('p', {}, linked && finding.at
            ? link(finding.node, () => reveal(finding.at)) : name(finding.node, 'code'), where),
        own.message ? findingText(finding) : null, own.command ? commandText(finding) : null);
}

const FIRST = 5, MORE = 200; /* of a group */

function findingCard(group, linked) {
    const [first] = group, rows = el('div', {});
    const own = {message: group.some((f) => f.message !== first.message),
        command: group.some((f) => f.command !== first.command)};
    const add = (until) => {
        const from = rows.querySelectorAll('.one').length;
        rows.append(...group.slice(from, until).map((f) => findingRow(f, linked, own)));
        if (until < group.length)
            rows.append(el('button', {class: 'more', type: 'button', onclick: (event) => {
                event.target.remove();
                add(until + MORE);
            }}, grouped(group.length - until) + ' more'));
    };
    add(FIRST);
    return el('div', {class: 'card finding'},
        el('p', {}, el('b', {class: first.severity}, first.severity + ' ' + first.id), ' ',
            first.rule, group.length > 1 ? el('span', {class: 'soft'}, ', ' +
                grouped(group.length) + ' times') : null),
        rows, own.message ? null : findingText(first),
        el('p', {class: 'soft'}, 'Fix: ' + first.fix), own.command ? null : commandText(first));
}

addTab('findings', (model) => 'Findings ' + grouped(model.findings.length), () => true, (model) => {
    if (model.findings.length === 0) return el('p', {class: 'soft'}, 'Lint finds nothing.');
    return some(groupFindings(model.findings), 300, (group) => findingCard(group, true));
});

/* -- the model -- */

addTab('model', () => 'Model', () => true, (model) => {
    const {info} = model, stamps = [], others = [];
    for (const [key, value] of Object.entries(info.metadata))
        (key.startsWith('epctx.build.') ? stamps : others).push([key, value]);
    return [
        table([pair('file', name(info.file)), pair('state', {plain: 'not compiled',
            partly: 'partly compiled', fully: 'fully compiled'}[info.state]),
        pair('graph', name(info.graph)),
        pair('producer', shown(info.producer_name + ' ' + info.producer_version)),
        pair('IR version', String(info.ir_version)),
        pair('opsets', info.opsets.map((o) => shown(o.domain || 'ai.onnx', 80) + ' ' + o.version)
            .join(', ')),
        pair('nodes', grouped(model.nodes.length)),
        pair('initializers', grouped(info.initializers) + ', ' + bytes(model.graphs_all.reduce(
            (sum, g) => sum + g.inits.reduce((s, init) => s + (init[2] || 0), 0), 0)))]),
        info.warnings.map((text) => el('p', {class: 'warning'}, shown(text))),
        stamps.map(([key, value]) => part('Build stamp of ' + shown(key.slice(12), 80),
            table(value.split('\n').filter((line) => line !== '').slice(0, 100).map((line) => {
                const [, word, rest] = /^(\S*) ?(.*)$/s.exec(line);
                return pair(word, name(rest, 'code'));
            })))),
        Object.keys(info.compatibility).length > 0 ? part('Compatibility', table(
            Object.entries(info.compatibility).map(([ep, value]) => pair(ep, name(value, 'code')))))
            : null,
        others.length > 0 ? part('Metadata', someRows(others, ([key, value]) =>
            pair(key, name(value, 'code')))) : null,
    ];
});

/* -- two models: what differs, at the nodes where it does -- */

/* The names of `epctx diff` for the nodes of a graph: "node 'a'", and in front the way there. */
function noteOwners(graph, prefix, owners) {
    for (const node of graph.nodes) {
        const owner = prefix + "node '" + nodeLabel(node) + "'";
        if (!owners.has(owner)) owners.set(owner, node);
        (node.bodies || []).forEach(([attr, body]) =>
            noteOwners(body, owner + ': ' + attr + ' > ', owners));
    }
}

function ownersOf(model) {
    const owners = new Map();
    for (const graph of model.graphs)
        noteOwners(graph, graph.kind !== 'function' ? '' : 'function ' + (graph.domain ||
            'ai.onnx') + ':' + graph.name + (graph.overload ? ':' + graph.overload : '') + ' > ',
        owners);
    return owners;
}

/* The innermost node that a difference is about: the longest name that is known. */
function ownerIn(owners, what) {
    const begins = what.indexOf('more: ') > 0 ? what.slice(what.indexOf('more: ') + 6) : what;
    for (let at = begins.length; at > 0; at = begins.lastIndexOf("'", at - 2) + 1) {
        const node = owners.get(begins.slice(0, at));
        if (node) return node;
    }
    return null;
}

function mark(node, change, kind) {
    if (!node) return;
    node.mark = node.mark === 'added' || node.mark === 'removed' ? node.mark : kind;
    (node.changes = node.changes || []).push(change);
}

/* An EPContext node, and the ordinary nodes of the old model that it stands for. */
function attachReplaced(change, old, now) {
    const body = change.what.slice(0, change.what.lastIndexOf("node '"));
    const nodes = change.nodes.map((one) => old.get(body + "node '" + one + "'") || null);
    change.at = [ownerIn(now, change.what), ...nodes];
    change.at.forEach((node) => mark(node, change, 'changed'));
}

function attachChanges() {
    if (models.length < 2) return;
    const [old, now] = models.map(ownersOf), renamed = new Map();
    for (const change of data.changes) {
        if (change.change !== 'renamed') continue;
        change.at = [ownerIn(old, change.old), ownerIn(now, change.new)];
        renamed.set(change.at[1], change.at[0]);
        change.at.forEach((node) => mark(node, change, 'renamed'));
    }
    for (const change of data.changes) {
        if (change.change === 'renamed') continue;
        if (change.change === 'replaced') {
            attachReplaced(change, old, now);
            continue;
        }
        const b = ownerIn(now, change.what), a = b && renamed.get(b) || ownerIn(old, change.what);
        const whole = (node) => node !== null && change.what.endsWith(nodeLabel(node) + "'");
        change.at = [a, b];
        mark(a, change, change.change === 'removed' && whole(a) && !b ? 'removed' : 'changed');
        mark(b, change, change.change === 'added' && whole(b) && !a ? 'added' : 'changed');
    }
}

/* What a partition stands for, and what went with it. */
function replacedNodes(change) {
    const shownNodes = change.nodes.slice(0, 50), rest = change.nodes.length - shownNodes.length;
    return el('div', {},
        el('p', {}, el('span', {class: 'soft'}, 'stands for ' + count(change.nodes.length, 'node') +
            ' '), name(shownNodes.join(', '), 'code'), rest > 0 ? ' and ' + rest + ' more' : null),
        el('p', {class: 'soft'}, 'with them went ' + count(change.initializers, 'initializer') +
            ' and the types of ' + count(change.values, 'value')));
}

function changeCard(change) {
    const nodes = change.at.filter((node) => node), SIGNS = {added: '+', removed: '\u2212',
        changed: '~', renamed: '\u2192', replaced: '\u2192'};
    return el('div', {class: 'card change'},
        el('p', {}, el('b', {class: change.change}, SIGNS[change.change] + ' ' + change.change),
            ' ',
            nodes.length === 0 ? name(change.what)
                : link(change.what, () => nodes.forEach((node) => reveal(node, true)))),
        change.nodes === undefined ? null : replacedNodes(change),
        change.old === undefined || change.change === 'renamed' ? null
            : el('p', {}, el('span', {class: 'soft'}, 'old '), name(change.old, 'code')),
        change.new === undefined ? null
            : el('p', {}, el('span', {class: 'soft'}, 'new '), name(change.new, 'code')));
}

addTab('changes', () => 'Differences ' + data.changes.length, () => models.length > 1, () => {
    if (data.changes.length === 0) return el('p', {class: 'soft'}, 'The models are equal.');
    return some(data.changes, 300, changeCard);
});

/* -- the reference NPU: where results are in memory, and its commands -- */

/* Results of a graph in scratch: from the command that writes one to the last that reads it. */
function livesOf(commands) {
    const lives = [];
    let now = []; /* what is in scratch */
    commands.forEach((command, time) => {
        for (const [from, to] of command.reads)
            for (const life of now) if (from < life.to && life.from < to) life.last = time;
        if (!command.writes) return;
        const [from, to] = command.writes;
        const life = {from, to, first: time, last: time, command};
        now = now.filter((old) => to <= old.from || old.to <= from);
        now.push(life);
        lives.push(life);
    });
    return lives;
}

function drawPlan(canvas, graph, lives, chosen) {
    const commands = graph.binary.commands.length, size = Math.max(graph.binary.scratch, 1);
    const width = canvas.clientWidth, height = 300, ratio = devicePixelRatio || 1;
    const left = 78, top = 8, bottom = 22, g = canvas.getContext('2d');
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + 'px';
    g.scale(ratio, ratio);
    g.fillStyle = theme.back;
    g.fillRect(0, 0, width, height);
    const x = (time) => left + time / Math.max(commands, 1) * (width - left - 8);
    const y = (at) => height - bottom - at / size * (height - top - bottom);
    const boxes = lives.map((life, i) => ({life, x: x(life.first), y: y(life.to),
        w: Math.max(x(life.last + 1) - x(life.first), 1), h: Math.max(y(life.from) - y(life.to), 1),
        fill: theme.fills[i % theme.fills.length]}));
    for (const box of boxes) {
        g.fillStyle = box.fill;
        g.fillRect(box.x, box.y, box.w, box.h);
        if (box.w > 3 && box.h > 3) {
            g.strokeStyle = theme.line;
            g.lineWidth = 1;
            g.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
        }
    }
    if (chosen !== undefined) {
        g.strokeStyle = theme.select;
        g.lineWidth = 2;
        g.strokeRect(x(chosen), top, Math.max(x(chosen + 1) - x(chosen), 2), height - top - bottom);
    }
    g.strokeStyle = theme.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(left, top);
    g.lineTo(left, height - bottom);
    g.lineTo(width - 8, height - bottom);
    g.stroke();
    g.fillStyle = theme.soft;
    g.font = '11px ' + FONT;
    g.textAlign = 'right';
    g.textBaseline = 'middle';
    for (let k = 0; k <= 4; k++) g.fillText(bytes(Math.round(size * k / 4)), left - 4,
        Math.max(y(size * k / 4), top + 5));
    g.textBaseline = 'top';
    g.fillText('command ' + commands, width - 8, height - bottom + 5);
    g.textAlign = 'left';
    g.fillText('0', left, height - bottom + 5);
    return boxes;
}

/* The node of the model that a command comes from; in a compiled model there is the EPContext. */
function commandNode(model, graph, command) {
    if (!model.byName) {
        model.byName = new Map();
        for (const node of model.nodes)
            if (!model.byName.has(node.name)) model.byName.set(node.name, node);
    }
    return model.byName.get(command.node) || model.byName.get(graph.epnode);
}

function planPicture(graph) {
    const lives = livesOf(graph.binary.commands);
    const what = el('p', {class: 'soft', id: 'plan-said'},
        'Time goes to the right, addresses go up. Point or click for a result.');
    const canvas = el('canvas', {id: 'plan', role: 'img', 'aria-label': 'Memory plan: ' +
        count(lives.length, 'result') + ' in ' + bytes(graph.binary.scratch)});
    let boxes = [];
    graph.show = () => { boxes = drawPlan(canvas, graph, lives, graph.chosen); };
    const tell = (event) => {
        const area = canvas.getBoundingClientRect(), px = event.clientX - area.left;
        const py = event.clientY - area.top;
        const box = boxes.find((b) => px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h);
        if (!box) return;
        const {life} = box;
        what.replaceChildren(name(life.command.op + ' ' + life.command.node), ', command ' +
            (life.first + 1) + ', writes bytes ' + grouped(life.from) + ' to ' + grouped(life.to) +
            ', read until command ' + (life.last + 1));
    };
    canvas.addEventListener('pointermove', tell);
    canvas.addEventListener('click', tell);
    requestAnimationFrame(graph.show);
    canvas.dataset.lives = lives.length;
    return [canvas, what];
}

function commandTable(model, graph) {
    const most = 2000, commands = graph.binary.commands;
    const number = (value) => el('td', {class: 'number'}, grouped(value));
    const rows = commands.slice(0, most).map((c, i) => {
        const node = commandNode(model, graph, c);
        return el('tr', {}, number(i + 1), el('td', {}, name(c.op)),
            el('td', {}, !node ? name(c.node, 'code') : link(c.node || '(no name)', () => {
                graph.chosen = i;
                graph.show();
                reveal(node, true);
            })),
            number(c.elements), number(c.products), number(c.bytes), number(c.workspace));
    });
    const heads = ['elements', 'products', 'bytes', 'workspace'];
    return [el('table', {id: 'commands'}, el('thead', {}, el('tr', {},
        el('th', {class: 'number'}, '#'), el('th', {}, 'command'), el('th', {}, 'node'),
        heads.map((head) => el('th', {class: 'number'}, head)))), el('tbody', {}, rows)),
    ...some(commands.slice(most), 0)];
}

addTab('memory', () => 'Memory', (model) => model.npu !== null, (model) => [
    model.npu.problem === '' ? null : el('p', {class: 'warning'}, shown(model.npu.problem)),
    model.npu.graphs.map((graph) => [
        el('h2', {class: 'name'}, shown(graph.binary.name, 120)),
        el('p', {}, count(graph.binary.commands.length, 'command') + ', ' +
            grouped(graph.binary.work) + ' operations, ' + bytes(graph.binary.scratch) +
            ' of scratch memory'),
        planPicture(graph),
        commandTable(model, graph)])]);

/* -- search -- */

const HITS = 100;

function searchText(model) {
    if (!model.text)
        model.text = model.nodes.map((node) =>
            [node.name, fullOp(node), ...node.out, ...node.in].join('\n').toLowerCase());
    return model.text;
}

/* Names that begin so come first, then names, then operators and values. */
function search(words) {
    const wanted = words.toLowerCase(), hits = [[], [], []];
    models.forEach((model) => searchText(model).forEach((text, i) => {
        if (!text.includes(wanted)) return;
        const node = model.nodes[i], title = node.name.toLowerCase();
        hits[title.startsWith(wanted) ? 0 : title.includes(wanted) ? 1 : 2].push(node);
    }));
    return hits.flat();
}

function matchedValue(node, wanted) {
    if (node.name.toLowerCase().includes(wanted)) return null;
    return [...node.out, ...node.in].find((value) => value.toLowerCase().includes(wanted)) || null;
}

function showHits() {
    const words = byId('search').value, box = byId('results');
    if (words === '') {
        box.hidden = true;
        return [];
    }
    const begun = performance.now(), hits = search(words);
    const rows = hits.slice(0, HITS).map((node) => {
        const value = matchedValue(node, words.toLowerCase());
        return el('button', {type: 'button', onclick: () => {
            box.hidden = true;
            reveal(node);
            panes[active].canvas.focus();
        }}, el('b', {}, shown(node.op, 60)), ' ', name(tail(nodeLabel(node), 120)),
        value ? el('span', {class: 'soft'}, ' value ', name(tail(value, 80))) : null,
        models.length > 1 ? el('span', {class: 'soft'}, ' in ' + fileName(node.graph.model))
            : null);
    });
    const more = hits.length > HITS ? ', the first ' + HITS + ' are' : '';
    box.replaceChildren(el('p', {}, hits.length === 0 ? 'nothing'
        : count(hits.length, 'node') + more), ...rows);
    box.hidden = false;
    box.dataset.count = hits.length;
    box.dataset.ms = (performance.now() - begun).toFixed(1);
    say(hits.length === 0 ? 'nothing found' : count(hits.length, 'node') + ' found');
    return hits;
}

function searchKey(event) {
    const rows = [...byId('results').querySelectorAll('button')];
    const at = rows.indexOf(document.activeElement);
    if (event.key === 'Escape') {
        byId('results').hidden = true;
        byId('search').focus();
    } else if (event.key === 'Enter' && at < 0) {
        if (byId('results').hidden) showHits();
        const first = byId('results').querySelector('button');
        if (first) first.click();
    } else if (event.key === 'ArrowDown' && rows.length > 0) {
        rows[Math.min(at + 1, rows.length - 1)].focus();
    } else if (event.key === 'ArrowUp' && at >= 0) {
        (at === 0 ? byId('search') : rows[at - 1]).focus();
    } else {
        return;
    }
    event.preventDefault();
}

/* -- start -- */

function toolbar() {
    const now = () => panes[active];
    byId('in').onclick = () => zoomMiddle(now(), 1.4);
    byId('out').onclick = () => zoomMiddle(now(), 1 / 1.4);
    byId('fit').onclick = () => fit(now(), false);
    byId('svg').onclick = () => saveSvg(now());
    byId('png').onclick = () => savePng(now());
    byId('unfold').onclick = () => unfoldAll(now());
    byId('fold').onclick = () => {
        now().unfolded.clear();
        rebuild(now());
        fit(now(), true);
    };
    const folds = models.some((model) => model.nodes.some(canUnfold));
    byId('unfold').hidden = byId('fold').hidden = !folds;
    byId('help').onclick = () => {
        byId('keys').hidden = !byId('keys').hidden;
        byId('help').setAttribute('aria-expanded', String(!byId('keys').hidden));
    };
    byId('search').addEventListener('input', showHits);
    byId('search').addEventListener('focus', showHits);
    byId('find').addEventListener('keydown', searchKey);
    byId('tabs').addEventListener('keydown', tabKey);
    document.addEventListener('pointerdown', (event) => {
        if (!byId('find').contains(event.target)) byId('results').hidden = true;
    });
    document.addEventListener('keydown', (event) => {
        if (event.key !== '/' || event.target.tagName === 'INPUT') return;
        event.preventDefault();
        byId('search').focus();
        byId('search').select();
    });
    dark.addEventListener('change', () => {
        theme = dark.matches ? DARK : LIGHT;
        panes.forEach(fillLegend);
        panes.forEach(draw); /* a page is printed before the next frame */
        openTab(open);
    });
    addEventListener('resize', () => {
        if (open === 'memory') openTab(open);
    });
}

document.title = models.map(fileName).join(' | ');
models.forEach(attachFindings);
attachChanges();
models.forEach(makePane);
if (models.length > 1) {
    byId('which').hidden = false;
    models.forEach((model, i) => byId('which').append(el('button', {type: 'button', onclick: () => {
        setActive(i);
        openTab(open);
    }}, fileName(model))));
}
document.querySelector('aside').classList.toggle('wide', models.some((model) => model.npu));
setActive(0);
toolbar();
openTab('node');
panes.forEach((pane) => {
    fillLegend(pane);
    measurePane(pane);
    rebuild(pane);
    fit(pane, true);
});
readAddress();
addEventListener('hashchange', readAddress);
(window.requestIdleCallback || setTimeout)(() => models.forEach(searchText));

})();

"use strict";
// Shows window.graphDocument, which loader.js reads: source, graph, selected node, replay. Texts are inserted as text nodes only.
// An item of the graph is a number: the index of a node, or ~index of a group.
(() => {
const byId = id => document.getElementById(id);
const data = window.graphDocument;
const { nodes, events = [], rules = [], sources = [], notes = [] } = data;
const groups = data.groups && data.groups.length ? data.groups : [{ name: "", members: nodes.map((_, id) => ["n", id]) }];
const state = { selected: null, step: 0, timer: null, open: new Set([0]), view: { x: 0, y: 0, scale: 1 } };

// --- Elements and texts

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

const link = (text, click, label) => make("button", { type: "button", class: "link", click, "aria-label": label }, text);
const number = x => typeof x !== "number" ? String(x) : String(Number(x.toPrecision(4))).replace(/^-/, "−");
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function bytes(count) {
  if (count < 1024) return plural(count, "byte");
  const unit = count < 1024 ** 2 ? 1 : count < 1024 ** 3 ? 2 : 3;
  return `${(count / 1024 ** unit).toFixed(1)} ${["", "KiB", "MiB", "GiB"][unit]}`;
}

const valueOf = value => typeof value === "number" ? data.values[value] : value;
const elements = value => (value.shape || []).reduce((product, size) => product * size, 1);
const shapeText = each => (each.shape ? `[${each.shape.join(", ")}] ` : "") + (each.dtype || "");
const nameOf = id => nodes[id].label || nodes[id].name || nodes[id].kind;
const titleOf = id => nodes[id].kind === "operation" && nodes[id].label ? `${nodes[id].label} = ${nodes[id].name}` : nameOf(id);
const lineOf = id => !nodes[id].line ? "" : sources.length > 1 ? `${sources[nodes[id].line[0]].name.replace(/^.*[\\/]/, "")}:${nodes[id].line[1]}` : `line ${nodes[id].line[1]}`;
const placeOf = id => titleOf(id) + (nodes[id].line ? `, ${lineOf(id)}` : "");

// --- What follows from the document: users, lines, groups, problems of gradients, steps of the replay

const users = nodes.map(() => []);
const lines = new Map(); // "source:number" -> {nodes, bytes}
nodes.forEach((node, id) => {
  for (const { from } of node.inputs || []) if (from !== undefined && !users[from].includes(id)) users[from].push(id);
  if (!node.line) return;
  const key = node.line.join(":");
  if (!lines.has(key)) lines.set(key, { key, line: node.line, nodes: [], bytes: 0 });
  lines.get(key).nodes.push(id);
  lines.get(key).bytes += node.bytes || 0;
});
const byMemory = [...lines.values()].filter(each => each.bytes).sort((a, b) => b.bytes - a.bytes);

const itemOf = ([kind, index]) => kind === "n" ? index : ~index;
const groupOf = nodes.map(() => 0); // the innermost group of each node
const parents = groups.map(() => null);
groups.forEach((group, index) => {
  group.items = group.members.map(itemOf);
  group.slotOf = new Map(group.items.map((item, slot) => [item, slot]));
  for (const item of group.items) if (item < 0) parents[~item] = index; else groupOf[item] = index;
});
const parentOf = item => item < 0 ? parents[~item] : groupOf[item];
const depths = [];
const depthOf = item => { // number of groups around
  const around = parentOf(item);
  return around === null ? 0 : depths[around] ??= depthOf(~around) + 1;
};

function countGroup(group) {
  if (group.total) return group.total;
  group.total = { nodes: 0, bytes: 0, problem: "" };
  for (const item of group.items) {
    const part = item < 0 ? countGroup(groups[~item]) : { nodes: 1, bytes: nodes[item].bytes || 0, problem: problemOf(item) };
    group.total.nodes += part.nodes;
    group.total.bytes += part.bytes;
    group.total.problem ||= part.problem;
  }
  return group.total;
}

// "None", "zero", "NaN", "inf", or "" for a gradient in which nothing is suspicious.
function problemOf(id) {
  const node = nodes[id], gradient = valueOf(node.grad);
  if (!gradient && node.grads) return "";
  if (!gradient) return node.kind === "leaf" && node.requires_grad && events.length ? "None" : "";
  if (gradient.nan) return "NaN";
  if (gradient.inf) return "inf";
  return gradient.zeros && gradient.zeros >= elements(gradient) ? "zero" : "";
}
const problems = nodes.map((_, id) => id).filter(problemOf)
  .sort((a, b) => (nodes[a].kind !== "leaf") - (nodes[b].kind !== "leaf") || a - b);
countGroup(groups[0]);

// The node whose rule made the gradient of a node zero or NaN: the first on the way to the result that received another one.
function causeOf(id) {
  const problem = problemOf(id);
  if (nodes[id].cause !== undefined || problem === "None" || !problem) return nodes[id].cause;
  for (let at = id; ;) {
    const next = users[at].find(user => problemOf(user) === problem);
    if (next === undefined) return users[at].find(user => nodes[user].grad !== undefined) ?? (at === id ? undefined : at);
    at = next;
  }
}

const steps = nodes.map((node, id) => ({ phase: "forward", kind: "record", node: id }))
  .filter(step => nodes[step.node].kind === "operation");
const recordings = steps.length;
steps.push(...events.map(event => ({ phase: "backward", ...event })));
if (!steps.length) steps.push({ phase: "forward", kind: "record", node: nodes.length ? 0 : undefined });
const recordedAt = new Map(), backwardAt = new Map(), gradientAt = new Map();
steps.forEach((step, index) => {
  const first = (map, id) => { if (id !== undefined && !map.has(id)) map.set(id, index); };
  if (step.phase === "forward") first(recordedAt, step.node);
  if (step.kind === "node") { first(backwardAt, step.node); first(gradientAt, step.node); }
  if (step.kind === "leaf") gradientAt.set(step.node, index); // the last accumulation
});
nodes.forEach((node, id) => { // a result is there once its operation is recorded
  if (node.kind === "result" && node.inputs) recordedAt.set(id, recordedAt.get(node.inputs[0].from) ?? -1);
});

// --- Colours

const colours = {};
const shades = []; // of the levels 0 to 254: negative, zero, positive
function readColours() {
  const probe = document.body.appendChild(make("i"));
  for (const name of ["page", "pane", "text", "muted", "line", "accent", "chosen", "forward", "backward", "problem", "problem-fill", "leaf", "constant",
    "operation", "result", "group", "border", "arrow", "negative", "zero", "positive", "nan", "nan-mark", "bar"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  const channels = ["negative", "zero", "positive"].map(name => colours[name].match(/[\d.]+/g).slice(0, 3).map(Number));
  for (let level = 0; level < 255; level++) {
    const share = Math.min(1, Math.abs(level - 127) / 127), end = channels[level < 127 ? 0 : 2];
    shades[level] = channels[1].map((zero, index) => Math.round(zero + (end[index] - zero) * share));
  }
  for (const value of data.values || []) delete value.picture;
}

const setTheme = theme => {
  document.documentElement.style.colorScheme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  readColours();
};

// --- Values: heat map, histogram, numbers

function levelsOf(cells) {
  cells.levels ||= Uint8Array.from(atob(cells.data), letter => letter.charCodeAt(0));
  return cells.levels;
}

// A canvas with one pixel for each cell.
function picture(value) {
  if (value.picture) return value.picture;
  const { rows, columns } = value.cells, levels = levelsOf(value.cells);
  const canvas = make("canvas", { width: columns, height: rows }), context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows), nan = colours.nan.match(/[\d.]+/g).map(Number);
  levels.forEach((level, index) => image.data.set([...(level === 255 ? nan : shades[level]).slice(0, 3), 255], 4 * index));
  context.putImageData(image, 0, 0);
  return value.picture = canvas;
}

const textOf = value => value.text && make("pre", { class: value.text.includes("\n") ? "rows" : "" }, value.text);

function heatMap(value) {
  const { rows, columns, scale = 0, inf = [], sampled } = value.cells, levels = levelsOf(value.cells);
  const side = Math.max(1, Math.min(22, Math.floor(Math.min(256 / columns, 200 / rows))));
  const across = Math.max(side, Math.ceil(16 / columns)), down = Math.max(side, Math.ceil(16 / rows)); // a vector is not a hair
  const canvas = make("canvas", { width: columns * across, height: rows * down, role: "img",
    "aria-label": `Heat map of ${plural(rows, "row")} and ${plural(columns, "column")}, colours from −${number(scale)} to ${number(scale)}` });
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(picture(value), 0, 0, canvas.width, canvas.height);
  const mark = (index, colour, text) => {
    const x = index % columns * across, y = Math.floor(index / columns) * down;
    if (side < 6) return;
    context.fillStyle = colour;
    context.font = `bold ${side * .8}px sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x + across / 2, y + down / 2 + .5, across);
  };
  levels.forEach((level, index) => level === 255 && mark(index, colours["nan-mark"], "×"));
  for (const [index, sign] of inf) mark(index, colours.pane, sign < 0 ? "−∞" : "∞");
  const infinite = new Map(inf);
  canvas.addEventListener("mousemove", event => {
    const column = Math.min(columns - 1, Math.floor(event.offsetX / canvas.clientWidth * columns));
    const row = Math.min(rows - 1, Math.floor(event.offsetY / canvas.clientHeight * rows)), index = row * columns + column;
    const level = levels[index];
    canvas.title = `[${row}, ${column}] ` + (level === 255 ? "NaN" : infinite.has(index) ? (infinite.get(index) < 0 ? "−∞" : "∞")
      : `≈ ${number((level - 127) / 127 * scale)}`);
  });
  return [make("div", { class: "pair" }, canvas, textOf(value)), make("p", { class: "scale" }, scale > 0 && [`−${number(scale)}`, make("i"), number(scale)],
    (value.nan || inf.length) ? " × NaN, ∞ infinite" : null, sampled ? " (reduced)" : null)];
}

function histogram({ low, high, counts }) {
  const canvas = make("canvas", { width: 256, height: 64, role: "img", "aria-label": `Histogram from ${number(low)} to ${number(high)}` });
  const context = canvas.getContext("2d"), highest = Math.max(...counts, 1), width = 256 / counts.length;
  context.fillStyle = colours.accent;
  counts.forEach((count, index) => context.fillRect(index * width, 64, Math.max(1, width - .5), -Math.ceil(62 * count / highest)));
  return [canvas, make("p", { class: "scale" }, `histogram from ${number(low)} to ${number(high)}`)];
}

function valueView(reference) {
  const value = valueOf(reference);
  if (!value) return null;
  const single = elements(value) === 1, facts = [], wrong = [];
  if (!single) for (const name of ["min", "mean", "max"]) if (value[name] !== undefined) facts.push(`${name} ${number(value[name])}`);
  if (value.zeros && !single) facts.push(`${plural(value.zeros, "zero")} of ${elements(value).toLocaleString("en")}`);
  if (value.nan) wrong.push(`${value.nan} NaN`);
  if (value.inf) wrong.push(`${value.inf} infinite`);
  return make("div", { class: "value" }, value.cells && !single ? heatMap(value) : textOf(value),
    facts.length || wrong.length ? make("p", { class: "stats" }, facts.join(" · "), facts.length && wrong.length ? " · " : "", make("b", {}, wrong.join(" · "))) : null,
    value.histogram ? histogram(value.histogram) : null);
}

// --- Layout of open groups

const WIDTH = 168, HEIGHT = 60, GAP = 24, RISE = 44, HEAD = 26, INSET = 14;
let scene = { boxes: [], frames: [], arrows: [], at: new Map(), width: 0, height: 0 };

// Positions close to the wished ones (in the least-squares sense), in the given order, without overlap.
function separate(wished, widths) {
  if (wished.length < 2) return wished;
  const runs = [], reach = [];
  wished.forEach((wish, index) => {
    reach.push(index ? reach[index - 1] + (widths[index - 1] + widths[index]) / 2 + GAP : 0);
    runs.push([wish - reach[index], 1]);
    while (runs.length > 1 && runs.at(-2)[0] > runs.at(-1)[0]) {
      const [mean, count] = runs.pop(), before = runs.at(-1);
      before[0] = (before[0] * before[1] + mean * count) / (before[1] + count);
      before[1] += count;
    }
  });
  const offsets = runs.flatMap(([mean, count]) => Array(count).fill(mean));
  return reach.map((each, index) => each + offsets[index]);
}

const TURNS = 6;
const mean = numbers => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

// Reads the layers of a group. Arrows from one member share the slots in which they cross layers.
function readLayers(group) {
  const count = group.items.length, layers = group.layers || group.items.map((_, slot) => [slot]), edges = group.edges || [];
  const layerOf = [], first = new Map(), above = [], below = [];
  layers.forEach((layer, index) => layer.forEach(slot => layerOf[slot] = index));
  const routes = new Map(), kept = new Set(group.items.keys());
  for (const [a, b, ...slots] of edges) {
    const route = slots.map(slot => {
      const key = a * layers.length + layerOf[slot];
      if (!first.has(key)) first.set(key, slot);
      return first.get(key);
    });
    routes.set(a * count + b, route);
    [a, ...route].forEach((slot, index) => {
      const next = [...route, b][index];
      kept.add(slot);
      (below[slot] ||= new Set()).add(next);
      (above[next] ||= new Set()).add(slot);
    });
  }
  const lists = sets => Array.from(sets, set => [...set || []]);
  return group.plan = { merged: kept.size < Math.max(count, (group.x || []).length), layers: layers.map(layer => layer.filter(slot => kept.has(slot))), routes, near: [lists(above), lists(below)] };
}

// Size of an open group and centres of its slots; kept in the group until a group inside opens or folds. As in graph_layout.py,
// slots move towards the mean position of their neighbours, alternately from the top down and from the bottom up.
function layoutGroup(index) {
  const group = groups[index];
  if (group.layout) return group.layout;
  const inner = index ? { left: INSET, top: HEAD + 10, bottom: INSET } : { left: 0, top: 0, bottom: 0 };
  const { layers, near, merged } = group.plan || readLayers(group);
  const xs = group.x ? [...group.x] : [], ys = [], count = group.items.length;
  const sizes = group.items.map(item => item < 0 && state.open.has(~item) ? layoutGroup(~item) : { width: WIDTH, height: HEIGHT });
  const width = slot => slot < count ? sizes[slot].width : 8;
  const turns = group.x && !merged && group.items.every(item => item >= 0 || !state.open.has(~item)) ? 0 : TURNS; // 0: x is as it should be
  for (let turn = 0; turn < turns; turn++) for (const layer of turn % 2 ? layers.toReversed() : layers) {
    const wished = layer.map(slot => (near[turn % 2][slot] || []).length ? mean(near[turn % 2][slot].map(each => xs[each] || 0)) : xs[slot] || 0);
    separate(wished, layer.map(width)).forEach((x, place) => xs[layer[place]] = x);
  }
  let y = inner.top, low = Infinity, high = -Infinity;
  for (const layer of layers) {
    const height = Math.max(0, ...layer.map(slot => slot < count ? sizes[slot].height : 0));
    for (const slot of layer) {
      ys[slot] = y + height / 2;
      low = Math.min(low, xs[slot] - width(slot) / 2);
      high = Math.max(high, xs[slot] + width(slot) / 2);
    }
    y += height + RISE;
  }
  if (!layers.length) low = high = 0;
  for (const slot in xs) xs[slot] += inner.left - low;
  return group.layout = { xs, ys, sizes, width: Math.max(high - low + 2 * inner.left, index ? WIDTH : 0), height: Math.max(y - RISE, 0) + inner.bottom };
}

function layout() {
  scene = { boxes: [], frames: [], arrows: [], at: new Map(), shown: [] };
  const place = (index, left, top, depth) => {
    const group = groups[index], { xs, ys, sizes } = layoutGroup(index);
    group.left = left;
    group.top = top;
    group.items.forEach((item, slot) => {
      const { width, height } = sizes[slot];
      const box = { item, x: left + xs[slot] - width / 2, y: top + ys[slot] - height / 2, width, height, depth };
      scene.at.set(item, box);
      if (item < 0 && state.open.has(~item)) {
        scene.frames.push(box);
        place(~item, box.x, box.y, depth + 1);
      } else scene.boxes.push(box);
    });
  };
  place(0, 0, 0, 0);
  Object.assign(scene, { width: groups[0].layout.width, height: groups[0].layout.height });
  groups.forEach((_, index) => shownGroup(index));
  const seen = new Set(), size = nodes.length + groups.length + 1;
  nodes.forEach((node, id) => {
    const target = shownAs(id);
    for (const { from } of node.inputs || []) {
      const source = from === undefined ? target : shownAs(from);
      const key = (source + groups.length) * size + target + groups.length;
      if (source === target || seen.has(key)) continue;
      seen.add(key);
      scene.arrows.push(arrow(source, target));
    }
  });
}

// The outermost folded group around a group (or itself), as an item, or null if it and all around it are open.
function shownGroup(index) {
  if (scene.shown[index] !== undefined) return scene.shown[index];
  const around = parents[index] === null ? null : shownGroup(parents[index]);
  return scene.shown[index] = around ?? (state.open.has(index) ? null : ~index);
}
const shownAs = id => shownGroup(groupOf[id]) ?? id;

function arrow(source, target) {
  let a = source, b = target; // become the members of the innermost group around both
  while (parentOf(a) !== parentOf(b)) {
    const over = depthOf(a) - depthOf(b);
    if (over >= 0) a = ~parentOf(a);
    if (over <= 0) b = ~parentOf(b);
  }
  const group = groups[parentOf(b)], count = group.items.length;
  const from = scene.at.get(source), to = scene.at.get(target);
  const points = [[from.x + from.width / 2, from.y + from.height]];
  for (const slot of group.plan.routes.get(group.slotOf.get(a) * count + group.slotOf.get(b)) || [])
    points.push([group.left + group.layout.xs[slot], group.top + group.layout.ys[slot]]);
  points.push([to.x + to.width / 2, to.y]);
  const xs = points.map(point => point[0]);
  return { source, target, points, left: Math.min(...xs), right: Math.max(...xs), top: points[0][1], bottom: points.at(-1)[1] };
}

// --- Drawing of the graph

const canvas = byId("canvas");
const cut = new Map();
function fitted(context, text, width) {
  const key = context.font + width + text;
  if (cut.has(key)) return cut.get(key);
  let shown = text;
  if (context.measureText(text).width > width) {
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
    }
    shown = text.slice(0, low) + "…";
  }
  cut.set(key, shown);
  return shown;
}

const SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
function write(context, text, x, y, font, colour, width, align = "left") {
  context.font = `${font} ${SANS}`;
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(fitted(context, text, width), x, y);
}

function rounded(context, x, y, width, height, fill, stroke, thick = 1) {
  context.beginPath();
  context.roundRect(x, y, width, height, 8);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = stroke;
  context.lineWidth = thick;
  context.stroke();
}

function trace(context, points, curved) {
  context.moveTo(...points[0]);
  for (let index = 1; index < points.length; index++) {
    const [x0, y0] = points[index - 1], [x1, y1] = points[index], bend = (y1 - y0) / 2;
    if (curved) context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1); else context.lineTo(x1, y1);
  }
}

function tip(context, [x, y], direction, size) {
  context.moveTo(x, y);
  context.lineTo(x - size, y - direction * size * 1.6);
  context.lineTo(x + size, y - direction * size * 1.6);
  context.closePath();
}

function paint(context, view, width, height, ratio) {
  const { scale } = view, step = steps[state.step], atEnd = state.step === steps.length - 1, details = scale >= .35;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * view.x, ratio * view.y);
  const left = -view.x / scale, top = -view.y / scale, right = left + width / scale, bottom = top + height / scale;
  const visible = box => box.x < right && box.x + box.width > left && box.y - 10 < bottom && box.y + box.height > top;
  for (const box of scene.frames) if (visible(box)) {
    rounded(context, box.x, box.y, box.width, box.height, colours[box.depth % 2 ? "page" : "group"], colours.border);
    if (details) write(context, `▾ ${groupTitle(~box.item)}`, box.x + 12, box.y + 18, "600 12px", colours.text, box.width - 24);
  }
  const chosen = state.selected === null ? null : shownAs(state.selected), current = step.node === undefined ? null : shownAs(step.node);
  const marked = [], plain = new Path2D(), tips = new Path2D();
  let passing = 0; // arrows without an end in view: hundreds only hide each other
  for (const each of scene.arrows) {
    if (each.left > right || each.right < left || each.top > bottom || each.bottom < top) continue;
    if ((each.bottom - each.top) * scale < 2 && (each.right - each.left) * scale < 2) continue;
    const flowing = step.phase === "backward" && step.kind === "node" && each.target === current && !atEnd
      && (!step.outgoing || step.outgoing.some(({ to }) => to !== undefined && shownAs(to) === each.source));
    if (flowing) marked.push([each, colours.backward, -1]);
    else if (each.target === chosen || each.source === chosen) marked.push([each, colours.accent, 1]);
    else if ((each.top >= top && each.top <= bottom) || (each.bottom >= top && each.bottom <= bottom) || passing++ < 200) {
      trace(plain, each.points, details);
      if (details) tip(tips, each.points.at(-1), 1, 4);
    }
  }
  context.strokeStyle = context.fillStyle = colours.arrow;
  context.lineWidth = Math.max(1.2, .7 / scale);
  context.stroke(plain);
  context.fill(tips);
  for (const [each, colour, direction] of marked) {
    context.beginPath();
    trace(context, each.points, true);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = Math.max(direction < 0 ? 3.5 : 2.2, 1.2 / scale);
    context.stroke();
    context.beginPath();
    tip(context, direction < 0 ? each.points[0] : each.points.at(-1), direction, 6);
    context.fill();
  }
  const sameLine = new Set(state.selected !== null && nodes[state.selected].line ? lines.get(nodes[state.selected].line.join(":")).nodes.map(shownAs) : []);
  for (const box of scene.boxes) if (visible(box)) {
    const ring = box.item === current && !atEnd ? [colours[step.phase], 3.5] : box.item === chosen ? [colours.accent, 3]
      : sameLine.has(box.item) ? [colours.accent, 1.6] : [colours.border, 1];
    paintBox(context, box, ring, details, Math.max(1, 1 / scale));
  }
}

function groupTitle(index) {
  const { name = "group", times } = groups[index], around = parents[index] ? groups[parents[index]].name : "";
  return (times > 1 && !name.includes("×") ? `${times} × ` : "") + (around && /^\d+$/.test(name) ? `${around}.${name}` : name);
}

function paintBox(context, { item, x, y, width, height }, [stroke, thick], details, least) {
  const isGroup = item < 0, node = isGroup ? null : nodes[item], total = isGroup ? groups[~item].total : null;
  const late = !isGroup && (recordedAt.get(item) ?? -1) > state.step;
  context.globalAlpha = late ? .3 : 1;
  if (isGroup && details) for (const shift of [6, 3]) rounded(context, x + shift, y + shift, width, height, colours.group, colours.border);
  const fill = isGroup ? colours.group : colours[node.kind] || colours.operation;
  if (!details) {
    context.fillStyle = thick > 2 ? stroke : fill;
    context.fillRect(x, y, width, height);
    context.strokeStyle = (isGroup ? total.problem : problemOf(item)) ? colours.problem : stroke;
    context.lineWidth = thick * least;
    context.strokeRect(x, y, width, height);
    if (least < 6) write(context, isGroup ? groupTitle(~item) : nameInside(item), x + width / 2, y + height / 2 + 3 * least, `600 ${8.5 * least}px`, colours.text, width - 8, "center");
    context.globalAlpha = 1;
    return;
  }
  rounded(context, x, y, width, height, fill, stroke, thick);
  if (isGroup) {
    write(context, `▸ ${groupTitle(~item)}`, x + 10, y + 20, "600 13px", colours.text, width - 20);
    write(context, plural(total.nodes, "node"), x + 10, y + 36, "11px", colours.muted, width - 20);
    if (total.bytes) write(context, `keeps ${bytes(total.bytes)}`, x + 10, y + 51, "11px", colours.muted, width - 20);
  } else {
    const value = valueOf(node.value), gradient = (gradientAt.get(item) ?? -1) <= state.step ? valueOf(node.grad) : null;
    const room = Math.max(miniature(context, late ? null : value, "", x + width - 8, y + 8), miniature(context, gradient, "∂ ", x + width - 8, y + 33));
    const space = width - 22 - room;
    write(context, nameInside(item), x + 10, y + 20, "600 13px", colours.text, space);
    write(context, node.kind === "operation" && node.label ? node.name : shapeText(node), x + 10, y + 36, "11px", colours.muted, space);
    write(context, [node.line && `line ${node.line[1]}`, node.bytes && bytes(node.bytes).replace(/bytes?/, "B")].filter(Boolean).join(" · "), x + 10, y + 51, "11px", colours.muted, space);
  }
  const problem = isGroup ? total.problem : problemOf(item);
  if (problem && (isGroup || !(gradientAt.get(item) > state.step))) {
    const text = `grad ${problem}`;
    context.font = `600 10.5px ${SANS}`;
    const wide = context.measureText(text).width + 12;
    rounded(context, x + 10, y - 9, wide, 16, colours["problem-fill"], colours.problem);
    write(context, text, x + 16, y + 3, "600 10.5px", colours.problem, wide);
  }
  context.globalAlpha = 1;
}

// The name of a node without the names of the modules around its box: "weight" instead of "model.0.weight".
function nameInside(id) {
  let name = nameOf(id);
  const path = [];
  for (let index = groupOf[id]; index; index = parents[index]) path.unshift(groups[index].name);
  for (const each of path) if (name.startsWith(`${each}.`)) name = name.slice(each.length + 1);
  return name;
}

// A number after a prefix with as many significant digits, of four, as have room in the width: at least two, and an exponent is never cut.
function shortNumber(context, value, prefix, width) {
  const wide = text => context.measureText(text).width;
  let text = prefix + number(value);
  for (let digits = 3; digits > 1 && wide(text) > width; digits--) {
    const [plain, scaled] = [String(Number(value.toPrecision(digits))), String(value.toExponential(digits - 1)).replace("e+", "e")]
      .map(each => prefix + each.replace(/^-/, "−"));
    text = wide(plain) <= width ? plain : scaled;
  }
  return text;
}

// A value in a box, right-aligned at x: a number, or a small heat map. Returns the width taken.
function miniature(context, value, prefix, x, y) {
  if (!value) return 0;
  if (elements(value) === 1) {
    if (value.mean === undefined && !value.nan && !value.inf) return 0;
    context.font = `600 11.5px ${SANS}`;
    const text = value.nan ? `${prefix}NaN` : value.inf ? `${prefix}±∞` : shortNumber(context, value.mean, prefix, 70);
    write(context, text, x, y + 13, "600 11.5px", prefix ? colours.backward : colours.forward, 100, "right");
    return Math.min(100, context.measureText(text).width) + 6;
  }
  if (!value.cells || !value.cells.rows || !value.cells.columns) return 0;
  const { rows, columns } = value.cells, side = Math.min(36 / columns, 20 / rows);
  const wide = Math.max(8, columns * side), high = Math.max(9, rows * side);
  context.imageSmoothingEnabled = false;
  context.drawImage(picture(value), x - wide, y + (20 - high) / 2, wide, high);
  context.strokeStyle = colours.border;
  context.lineWidth = .6;
  context.strokeRect(x - wide, y + (20 - high) / 2, wide, high);
  if (prefix) write(context, prefix, x - wide - 1, y + 14, "600 11.5px", colours.backward, 20, "right");
  return wide + (prefix ? 16 : 6);
}

let waiting = false;
function repaint() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    paintNow();
  });
}

function paintNow() {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  paint(canvas.getContext("2d"), state.view, width, height, ratio);
}

// --- View: zoom, pan, fit

const calm = matchMedia("(prefers-reduced-motion: reduce)");
let moving = 0;
function moveTo(target) {
  cancelAnimationFrame(moving);
  const from = { ...state.view }, start = performance.now();
  const frame = now => {
    const share = calm.matches ? 1 : Math.min(1, Math.max(0, now - start) / 180), eased = share * (2 - share);
    for (const key of ["x", "y", "scale"]) state.view[key] = from[key] + (target[key] - from[key]) * eased;
    if (share < 1) moving = requestAnimationFrame(frame);
    repaint();
  };
  if (calm.matches) frame(start); else moving = requestAnimationFrame(frame);
}

function wholeView(width, height, most = 1.15, below = byId("legend").offsetHeight) {
  const scale = Math.min(most, (width - 40) / Math.max(scene.width, 1), (height - below - 40) / Math.max(scene.height, 1));
  return { scale, x: (width - scene.width * scale) / 2, y: (height - below - scene.height * scale) / 2 + 5 };
}
const fit = () => moveTo(wholeView(canvas.clientWidth, canvas.clientHeight));

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  cancelAnimationFrame(moving);
  const { view } = state, least = Math.min(.3, wholeView(canvas.clientWidth, canvas.clientHeight).scale);
  const scale = Math.min(4, Math.max(least, view.scale * factor)), share = scale / view.scale;
  Object.assign(view, { scale, x: x - (x - view.x) * share, y: y - (y - view.y) * share });
  repaint();
}

function pan(x, y) {
  cancelAnimationFrame(moving);
  state.view.x += x;
  state.view.y += y;
  repaint();
}

// Brings the box of a node into view, if it is not.
function reveal(id) {
  const box = scene.at.get(shownAs(id)), { view } = state, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!box || !width) return;
  const x = view.x + box.x * view.scale, y = view.y + box.y * view.scale;
  const inside = x > 0 && y > 20 && x + box.width * view.scale < width && y + box.height * view.scale < height - 30;
  if (inside && view.scale >= .35) return;
  const scale = Math.max(view.scale, .8);
  moveTo({ scale, x: width / 2 - (box.x + box.width / 2) * scale, y: height / 2 - (box.y + box.height / 2) * scale });
}

// The first view: everything, or the result at a readable size.
function firstView() {
  const width = canvas.clientWidth, height = canvas.clientHeight, whole = wholeView(width, height);
  if (whole.scale < .5 && nodes.length) {
    const box = scene.at.get(shownAs(nodes.length - 1)), scale = .8;
    Object.assign(state.view, { scale, x: width / 2 - (box.x + box.width / 2) * scale, y: height - 50 - (box.y + box.height) * scale });
  } else Object.assign(state.view, whole);
}

// --- Groups

function toggle(index, open = !state.open.has(index)) {
  const before = scene.at.get(~index);
  if (open) state.open.add(index); else state.open.delete(index);
  for (let each = index; each !== null; each = parents[each]) delete groups[each].layout;
  layout();
  const after = scene.at.get(~index), { view } = state;
  if (before && after) pan((before.x - after.x) * view.scale, (before.y - after.y) * view.scale);
  byId("open-all").textContent = state.open.size > 1 ? "Fold all" : "Open all";
  expandRow(~index, open);
  repaint();
}

function toggleAll() {
  const open = state.open.size <= 1;
  state.open = new Set(open ? groups.keys() : [0]);
  for (const group of groups) delete group.layout;
  layout();
  byId("open-all").textContent = open ? "Fold all" : "Open all";
  if (treeShown) fillTree();
  if (state.selected !== null) reveal(state.selected); else fit();
  repaint();
}

function openAround(id) {
  for (let item = shownAs(id); item < 0; item = shownAs(id)) toggle(~item, true);
  reveal(id);
}

// --- Selection

function select(id, { show = true } = {}) {
  state.selected = id;
  showNode();
  markSource();
  markTree();
  if (show && id !== null) reveal(id);
  repaint();
}

// --- Source

const rows = new Map(); // "source:number" -> element
function fillSource() {
  const pane = byId("source"), most = byMemory.length ? byMemory[0].bytes : 1;
  pane.classList.add("code");
  pane.classList.toggle("measured", byMemory.length > 0);
  sources.forEach((source, index) => {
    pane.append(make("h3", {}, source.name));
    source.parts.forEach((part, place) => {
      if (place || part.first > 1) pane.append(make("div", { class: "gap", "aria-hidden": "true" }, "⋯"));
      const texts = highlighted(part.lines);
      texts.forEach((text, offset) => {
        const key = `${index}:${part.first + offset}`, line = lines.get(key);
        const bar = line && line.bytes ? make("i") : null;
        if (bar) bar.style.width = `${Math.max(3, 100 * line.bytes / most)}%`;
        const row = make(line ? "button" : "div", line ? { type: "button", class: "row", tabindex: rows.size ? -1 : 0, "data-key": key,
          title: line.nodes.slice(0, 12).map(titleOf).join(", "), click: () => chooseLine(line) } : { class: "row" },
        byMemory.length ? make("span", { class: "bytes", title: bar && "kept for the backward pass" }, bar ? [bytes(line.bytes).replace(/bytes?/, "B"), bar] : "") : null,
        make("span", { class: "number" }, String(part.first + offset)),
        make("span", {}, ...text));
        if (line) rows.set(key, row);
        pane.append(row);
      });
    });
  });
  const used = pane.querySelector("button.row");
  if (used) pane.scrollTop = used.offsetTop - pane.offsetTop - 120;
  if (!sources.length) pane.append(make("p", { class: "gap" }, "The source of the program is not known."));
}

// A click on a line selects its last operation, another click the one before.
function chooseLine({ nodes: found }) {
  const at = found.indexOf(state.selected);
  select(found[at > 0 ? at - 1 : found.length - 1]);
}

const TOKENS = /(#.*)|([rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b/g;
function highlighted(texts) {
  const result = [[]];
  const add = (text, name) => text.split("\n").forEach((piece, index) => {
    if (index) result.push([]);
    if (piece) result.at(-1).push(name ? make("span", { class: name }, piece) : piece);
  });
  const whole = texts.map(text => text.replace(/\n/g, " ")).join("\n");
  let at = 0;
  for (const found of whole.matchAll(TOKENS)) {
    add(whole.slice(at, found.index));
    add(found[0], found[1] ? "comment" : found[2] ? "string" : "word");
    at = found.index + found[0].length;
  }
  add(whole.slice(at));
  return result;
}

function markSource() {
  for (const row of byId("source").querySelectorAll(".chosen")) {
    row.classList.remove("chosen");
    row.removeAttribute("aria-current");
  }
  const node = state.selected === null ? null : nodes[state.selected], row = node && node.line && rows.get(node.line.join(":"));
  if (!row) return;
  row.classList.add("chosen");
  row.setAttribute("aria-current", "true");
  for (const each of rows.values()) each.tabIndex = each === row ? 0 : -1;
  row.scrollIntoView({ block: "nearest" });
}

// --- Pane of the selected node

const goTo = id => link(titleOf(id), () => select(id));
const listed = (ids, most = 12, to = goTo) => [...ids.slice(0, most).flatMap((id, index) => [index ? ", " : "", to(id)]), ids.length > most ? ` and ${ids.length - most} more` : ""];
const stepLink = (index, text) => index === undefined || index < 0 ? null : link(text || `step ${index + 1}`, () => go(index), `Go to step ${index + 1} of the replay`);
const facts = pairs => make("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
  .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

function outgoingView({ to, name, value, formula, numbers, element, note }) {
  return make("div", { class: "rule-line" }, make("p", {}, "to ", to === undefined ? name || "?" : goTo(to), name && to !== undefined ? make("span", { class: "muted" }, ` (${name})`) : null),
    formula ? make("pre", {}, formula) : null, numbers ? make("pre", { class: "muted" }, (element ? `at ${element}: ` : "") + numbers) : null,
    note ? make("p", { class: "muted" }, note) : null, value === undefined ? make("p", { class: "muted" }, "passes on None") : valueView(value));
}

const labelled = pairs => pairs.filter(([, value]) => value !== undefined && value !== null)
  .flatMap(([name, value]) => [make("p", { class: "muted" }, name), valueView(value)]);

function showNode() {
  const pane = byId("node"), id = state.selected, step = steps[state.step];
  pane.scrollTop = 0;
  byId("node-title").textContent = id === null ? "Overview" : titleOf(id);
  document.querySelector('#tabs [data-pane="node"]').textContent = id === null ? "Overview" : `Node: ${nameOf(id)}`;
  byId("overview").hidden = id === null;
  if (id === null) return pane.replaceChildren(...overview());
  const now = step.node === id && state.step < steps.length - 1, gradients = [gradientOf(id), backwardOf(id)];
  const parts = [now && currentStep(step), explanationOf(id), now && step.kind === "node" && gradients, factsOf(id), valueSection(id),
    !(now && step.kind === "node") && gradients, savedOf(id), ruleOf(id)];
  pane.replaceChildren(...parts.flat(Infinity).filter(Boolean));
}

const currentStep = step => make("div", { class: `now ${step.phase}` }, make("p", {}, make("strong", {}, `Step ${state.step + 1}: `), stepText(step)),
  (step.parts || []).map(({ from, value }) => [make("p", { class: "muted" }, "+ from ", from === undefined ? "the call of backward" : goTo(from)), valueView(value)]),
  step.kind !== "node" && labelled([[step.kind === "sum" ? "sum" : "gradient", step.incoming], [step.after === undefined && step.kind === "hook" ? "gradient" : "before", step.before], ["after", step.after]]));

function explanationOf(id) {
  const node = nodes[id], problem = problemOf(id), cause = causeOf(id);
  if (!problem && !node.explain) return null;
  return make("div", { class: problem ? "note" : "note plain" },
    problem && !(node.explain || []).some(text => text.startsWith("Its gradient is")) && make("strong", {}, problem === "None" ? "The gradient is None. " : `The gradient ${problem === "zero" ? "is zero" : `contains ${problem}`}. `),
    (node.explain || []).map(text => make("p", {}, text)),
    cause !== undefined && cause !== id && make("button", { type: "button", class: "cause", click: () => select(cause) }, `Go to where it becomes ${problem || "so"}: ${placeOf(cause)}`));
}

function factsOf(id) {
  const node = nodes[id], path = [], inputs = (node.inputs || []).map(each => each.from).filter(each => each !== undefined);
  for (let index = groupOf[id]; index; index = parents[index]) path.unshift(groups[index].name || "group");
  return facts([
    ["kind", node.kind + (node.node ? ` (${node.node})` : "")], ["shape, dtype", shapeText(node)],
    ["line", node.line && link(lineOf(id), () => { showPane("source"); markSource(); })],
    ["function", node.function], ["module", node.module],
    ["inside", path.length > 0 && [path.join(" › "), ...(shownAs(id) < 0 ? [" ", link("open in the graph", () => openAround(id))] : [])]],
    ["inputs", inputs.length > 0 && listed(inputs)],
    ["used by", users[id].length > 0 && listed(users[id])],
    ["keeps", node.bytes ? `${bytes(node.bytes)} for the backward pass` : node.kind === "operation" && "nothing for the backward pass"],
    ["hooks", (node.hooks || []).join("; ")],
    ["parameters", Object.entries(node.parameters || {}).map(pair => pair.join(" = ")).join(", ")],
  ]);
}

function valueSection(id) {
  const { value, values = [value], missing } = nodes[id];
  return (values[0] !== undefined || missing) && [make("h3", {}, values.length > 1 ? "Values" : "Value", stepLink(recordedAt.get(id))),
    missing && make("p", { class: "muted" }, missing), values.map(valueView)];
}

function gradientOf(id) {
  const { grad, grads = [grad] } = nodes[id], event = steps[gradientAt.get(id)] || {};
  return grads.some(each => each !== undefined && each !== null) && [make("h3", {}, grads.length > 1 ? "Gradients" : "Gradient", stepLink(gradientAt.get(id))),
    grads.map(each => valueView(each) || make("p", { class: "muted" }, "None")), labelled(event.after !== grad ? [[".grad afterwards", event.after]] : [])];
}

function backwardOf(id) {
  const event = steps[backwardAt.get(id)];
  return event && event.outgoing && event.outgoing.length > 0 && [make("h3", {}, "Backward: gradient × local derivative", stepLink(backwardAt.get(id))),
    nodes[id].grad === undefined && !nodes[id].grads && [event.incoming].flat().map(valueView), event.outgoing.map(outgoingView)];
}

function savedOf(id) {
  const { saved = [] } = nodes[id];
  return saved.length > 0 && [make("h3", {}, "Saved for the backward pass"), make("table", {},
    make("tr", {}, ["name", "shape, dtype", "from", "bytes"].map((text, index) => make("th", { class: index > 2 && "right" }, text))),
    saved.map(each => make("tr", {}, make("td", {}, each.name, each.state && make("span", { class: "muted" }, ` ${each.state}`)), make("td", {}, shapeText(each)),
      make("td", {}, each.from === undefined ? "" : goTo(each.from)), make("td", { class: "right" }, bytes(each.bytes || 0)))))];
}

function ruleOf(id) {
  const rule = rules[nodes[id].rule];
  return rule && make("details", { open: true }, make("summary", {}, `The operation ${rule.operation} and its derivative rule`), make("p", { class: "muted mono" }, `${rule.file}:${rule.line}`),
    make("pre", { class: "rule" }, highlighted(rule.source.split("\n")).map((text, index) => index ? ["\n", text] : text)));
}

function overview() {
  const origins = [...new Set(problems.map(causeOf).filter(cause => cause !== undefined))];
  const kept = groups[0].total.bytes, most = byMemory.length ? byMemory[0].bytes : 1;
  const lineText = ([source, at]) => {
    const part = sources[source] && sources[source].parts.find(each => at >= each.first && at < each.first + each.lines.length);
    return part ? part.lines[at - part.first].trim() : "";
  };
  const bar = share => {
    const meter = make("i", { class: "meter" });
    meter.style.width = `${100 * share}%`;
    return meter;
  };
  return [
    ...notes.map(text => make("p", { class: "note plain" }, text)),
    facts([["nodes", nodes.length.toLocaleString("en")], ["operations", recordings.toLocaleString("en")], ["replay", plural(steps.length, "step")], ["kept", kept ? `${bytes(kept)} for the backward pass` : ""]]),
    make("p", { class: "muted hint" }, "Select a line or a box. Space plays the recording and the backward pass, arrow keys step."),
    ...(byMemory.length ? [make("h3", {}, "Lines that keep most memory for the backward pass"), make("table", { id: "memory" }, byMemory.slice(0, 8).map(line => make("tr", {},
      make("td", {}, link(lineOf(line.nodes[0]), () => select(heaviest(line))), " ", make("code", {}, lineText(line.line)), bar(line.bytes / most)),
      make("td", { class: "right" }, bytes(line.bytes)))))] : []),
    ...(problems.length ? [make("h3", {}, "Gradients that are zero, NaN, infinite or None"),
    origins.length > 0 && make("p", { class: "origins" }, "Where they arise: ", listed(origins, 4, id => link(placeOf(id), () => select(id)))), make("table", { id: "problems" }, problems.slice(0, 12).map(id => make("tr", {},
      make("td", {}, link(placeOf(id), () => select(id))), make("td", { class: "right" }, make("span", { class: "badge" }, problemOf(id)))))),
    problems.length > 12 ? make("p", { class: "muted" }, `and ${problems.length - 12} more`) : ""]
      : events.length ? [make("h3", {}, "Gradients"), make("p", { class: "muted" }, "No gradient is zero, NaN, infinite or None.")] : []),
  ].filter(Boolean);
}
const heaviest = line => line.nodes.reduce((best, id) => (nodes[id].bytes || 0) > (nodes[best].bytes || 0) ? id : best);

// --- The graph as a nested list

let treeShown = false;
const treeRows = new Map(); // item -> element
const CHUNK = 100; // rows of a group that are made at once
let room = 0; // rows that may still be made for groups which are open in the drawing

function treeRow(item, level) {
  const isGroup = item < 0, node = nodes[item], total = isGroup ? groups[~item].total : null, problem = isGroup ? total.problem : problemOf(item);
  const kept = isGroup ? total.bytes : node.bytes;
  const name = isGroup ? `${groupTitle(~item)} (${plural(total.nodes, "node")})` : titleOf(item);
  const entry = make("div", { class: "entry" }, make("span", { title: name }, isGroup ? "▸ " : "", make("span", { class: "name" }, name), problem ? make("span", { class: "badge" }, `grad ${problem}`) : null),
    make("span", { class: "muted" }, isGroup ? "" : [lineOf(item), make("span", { class: "shape" }, ` ${shapeText(node)}`)]), make("span", { class: "muted right" }, kept ? bytes(kept) : ""));
  entry.style.setProperty("--depth", level);
  const row = make("li", { role: "treeitem", "aria-level": level + 1, "aria-selected": String(item === state.selected), tabindex: -1 }, entry);
  row.item = item;
  row.level = level;
  treeRows.set(item, row);
  if (isGroup) {
    row.setAttribute("aria-expanded", "false");
    if (state.open.has(~item) && room > 0) fillBranch(row);
  }
  return row;
}

function addRows(list, items, level, from = 0) {
  list.append(...items.slice(from, from + CHUNK).map(item => treeRow(item, level)));
  if (items.length <= from + CHUNK) return;
  const entry = make("div", { class: "entry" }, make("span", {}, `Show ${Math.min(CHUNK, items.length - from - CHUNK)} of ${(items.length - from - CHUNK).toLocaleString("en")} more`));
  entry.style.setProperty("--depth", level);
  const more = make("li", { role: "treeitem", "aria-level": level + 1, tabindex: -1 }, entry);
  more.more = () => {
    const next = list.childElementCount - 1;
    more.remove();
    addRows(list, items, level, from + CHUNK);
    focusRow(list.children[next]);
  };
  list.append(more);
}

function fillBranch(row) {
  room -= Math.min(CHUNK, groups[~row.item].items.length);
  const list = make("ul", { role: "group" });
  addRows(list, groups[~row.item].items, row.level + 1);
  row.append(list);
  row.setAttribute("aria-expanded", "true");
  row.querySelector(".entry span").firstChild.textContent = "▾ ";
}

function fillTree() {
  const order = byId("sort").value, all = nodes.map((_, id) => id), tree = byId("tree");
  treeRows.clear();
  room = CHUNK;
  tree.replaceChildren();
  addRows(tree, order === "bytes" ? all.filter(id => nodes[id].bytes).sort((a, b) => nodes[b].bytes - nodes[a].bytes)
    : order === "gradient" ? [...problems, ...all.filter(id => !problemOf(id))] : groups[0].items, 0);
  if (tree.firstElementChild) tree.firstElementChild.tabIndex = 0;
  markTree();
}

function expandRow(item, open) {
  const row = treeRows.get(item);
  if (!row || (row.getAttribute("aria-expanded") === "true") === open) return;
  if (open) fillBranch(row);
  else {
    row.querySelector(".entry span").firstChild.textContent = "▸ ";
    row.lastElementChild.remove();
    row.setAttribute("aria-expanded", "false");
  }
}

function markTree() {
  if (!treeShown) return;
  for (const row of byId("tree").querySelectorAll('[aria-selected="true"]')) row.setAttribute("aria-selected", "false");
  const row = state.selected === null ? null : treeRows.get(state.selected) || treeRows.get(shownAs(state.selected));
  if (!row) return;
  row.setAttribute("aria-selected", "true");
  row.firstElementChild.scrollIntoView({ block: "nearest" });
}

function focusRow(row) {
  if (!row) return;
  for (const each of byId("tree").querySelectorAll('[tabindex="0"]')) each.tabIndex = -1;
  row.tabIndex = 0;
  row.focus();
}

function treeKey(event) {
  const row = event.target.closest('[role="treeitem"]');
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...byId("tree").querySelectorAll('[role="treeitem"]')], at = all.indexOf(row), isGroup = row.item < 0, open = row.getAttribute("aria-expanded") === "true";
  const actions = {
    ArrowDown: () => focusRow(all[at + 1]), ArrowUp: () => focusRow(all[at - 1]), Home: () => focusRow(all[0]), End: () => focusRow(all.at(-1)),
    ArrowRight: () => !isGroup ? 0 : open ? focusRow(all[at + 1]) : toggle(~row.item, true),
    ArrowLeft: () => isGroup && open ? toggle(~row.item, false) : focusRow(row.parentElement.closest('[role="treeitem"]')),
    Enter: () => row.more ? row.more() : isGroup ? toggle(~row.item, !open) : select(row.item),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  event.stopPropagation();
  actions[event.key]();
}

function showList(show = byId("list").hidden) {
  byId("list").hidden = !show;
  byId("drawing").hidden = show;
  byId("as-list").setAttribute("aria-pressed", String(show));
  for (const id of ["in", "out", "fit"]) byId(id).disabled = show;
  if (show && !treeShown) {
    treeShown = true;
    fillTree();
  }
  if (!show) repaint();
}

// --- Replay

function brief(reference) {
  const value = valueOf(reference);
  if (!value) return "";
  if (elements(value) === 1 && value.mean !== undefined) return number(value.mean);
  return value.text && value.text.length < 60 && !value.text.includes("\n") ? value.text : shapeText(value).trim();
}

const isShort = reference => Boolean(brief(reference)) && brief(reference) !== shapeText(valueOf(reference)).trim();

// A value on paper: a number, or the least and the largest element.
function range(reference) {
  const value = valueOf(reference);
  if (!value || elements(value) === 1 || value.min === undefined) return brief(reference);
  return `${number(value.min)} … ${number(value.max)}`;
}

function stepText(step) {
  if (step.text && step.kind !== "leaf") return step.text;
  if (step.node === undefined) return "";
  const node = nodes[step.node], place = placeOf(step.node);
  if (step.phase === "forward") {
    const inputs = (node.inputs || []).map(each => each.from === undefined ? each.name : nameOf(each.from)).filter(Boolean).join(", ");
    return `${node.name || "record"}${inputs ? ` of ${inputs}` : ""} (${[lineOf(step.node), shapeText(node)].filter(Boolean).join(", ")})`
      + (brief(node.value) ? ` gives ${brief(node.value)}` : "");
  }
  if (step.kind === "start") return `The backward pass starts at ${place} with the gradient ${brief(step.incoming) || "1"}.`;
  if (step.kind === "leaf") return `The gradient (${brief(step.incoming ?? node.grad)}) ${step.after === undefined ? "arrives at " + nameOf(step.node)
    : step.before === undefined ? `becomes ${nameOf(step.node)}.grad` : `is added to ${nameOf(step.node)}.grad`}. ${step.text || ""}`.trim();
  if (step.kind === "sum") return `${step.parts ? step.parts.length : "Several"} gradients meet at ${place} and are added${(step.parts || []).every(part => isShort(part.value)) && isShort(step.incoming) ? `: ${step.parts.map(part => brief(part.value)).join(" + ")} = ${brief(step.incoming)}` : ""}.`;
  if (step.kind === "hook") return `A hook of ${place} runs.`;
  if (step.kind === "freed") return `The saved values of ${place} are freed.`;
  const outgoing = step.outgoing || [], long = outgoing.length > 2 || outgoing.some(each => !each.numbers && (each.formula || "").length > 30);
  const sent = outgoing.map(({ to, name, value, formula, numbers, element }) => (to === undefined ? name : nameOf(to))
    + (long ? "" : `: ${!element && numbers || formula || brief(value)}`));
  const received = [step.incoming].flat().map(brief).filter(Boolean).join(", ");
  return `${place} receives ${received || "its gradient"}${sent.length ? ` and sends to ${sent.join(long ? ", " : ", to ")}` : ""}${step.freed ? `; ${bytes(step.freed)} are freed` : ""}`;
}

function showStep() {
  const step = steps[state.step], slider = byId("slider"), text = stepText(step);
  slider.value = state.step;
  slider.setAttribute("aria-valuetext", `Step ${state.step + 1} of ${steps.length}, ${step.phase}`);
  byId("step").replaceChildren(make("span", {}, make("b", { class: step.phase }, `${state.step + 1} / ${steps.length} ${step.phase}`), text));
}

function go(index, byPlay = false) {
  if (!byPlay) pause();
  state.step = Math.max(0, Math.min(steps.length - 1, index));
  showStep();
  const { node } = steps[state.step];
  select(node === undefined ? state.selected : node);
}

function play() {
  if (state.timer) return pause();
  if (state.step >= steps.length - 1) go(0);
  byId("play").textContent = "❚❚";
  byId("play").setAttribute("aria-label", "Pause");
  const tick = () => {
    if (state.step >= steps.length - 1) return pause();
    state.timer = setTimeout(tick, 1200 / byId("speed").value);
    go(state.step + 1, true);
  };
  state.timer = setTimeout(tick, 1200 / byId("speed").value);
}

function pause() {
  clearTimeout(state.timer);
  state.timer = null;
  byId("play").textContent = "▶";
  byId("play").setAttribute("aria-label", "Play");
}

// --- Search

const search = byId("search"), found = byId("found");
let hits = [], hit = 0, words = null;
function find() {
  const query = search.value.trim().toLowerCase(), line = query.match(/^(?:line )?(\d+)$/);
  words ||= nodes.map((node, id) => [titleOf(id), node.name, node.node, lineOf(id), node.function, node.module, node.kind].join(" ").toLowerCase());
  const parts = query.split(/\s+/), all = query ? [...nodes.keys()] : [];
  hits = line ? all.filter(id => nodes[id].line && nodes[id].line[1] === Number(line[1])) : all.filter(id => parts.every(part => words[id].includes(part)));
  hits.sort((a, b) => (nameOf(b).toLowerCase() === query) - (nameOf(a).toLowerCase() === query));
  const count = hits.length;
  hits = hits.slice(0, 40);
  showHits(0);
  if (query && !count) found.replaceChildren(make("li", { class: "muted" }, "No node found."));
  if (count > 40) found.append(make("li", { class: "muted" }, `and ${count - 40} more`));
  closeSearch(!query);
}

function showHits(at) {
  hit = at;
  found.replaceChildren(...hits.map((id, index) => make("li", { role: "option", id: `hit-${index}`, "aria-selected": String(index === hit), mousedown: event => { event.preventDefault(); take(index); } },
    make("span", {}, titleOf(id)), make("span", { class: "muted" }, lineOf(id)))));
  if (hits.length) search.setAttribute("aria-activedescendant", `hit-${hit}`); else search.removeAttribute("aria-activedescendant");
  const row = byId(`hit-${hit}`);
  if (row) row.scrollIntoView({ block: "nearest" });
}

function closeSearch(close = true) {
  found.hidden = close;
  search.setAttribute("aria-expanded", String(!close));
}

function take(index) {
  if (hits[index] !== undefined) select(hits[index]);
  closeSearch();
}

search.addEventListener("input", find);
search.addEventListener("focus", () => search.value && find());
search.addEventListener("blur", () => closeSearch());
search.addEventListener("keydown", event => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (hits.length) showHits((hit + (event.key === "ArrowDown" ? 1 : hits.length - 1)) % hits.length);
  } else if (event.key === "Enter") take(hit);
  else if (event.key === "Escape") {
    if (found.hidden) search.blur();
    closeSearch();
  }
});

// --- Pointer

const pointers = new Map();
let travelled = 0;
function hitAt(event) {
  const area = canvas.getBoundingClientRect(), { view } = state;
  const x = (event.clientX - area.left - view.x) / view.scale, y = (event.clientY - area.top - view.y) / view.scale;
  const inside = (box, height) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + height;
  return scene.boxes.findLast(box => inside(box, box.height)) || scene.frames.findLast(box => inside(box, HEAD));
}

canvas.addEventListener("pointerdown", event => {
  pointers.set(event.pointerId, event);
  canvas.setPointerCapture(event.pointerId);
  if (pointers.size === 1) travelled = 0;
});
canvas.addEventListener("pointermove", event => {
  const last = pointers.get(event.pointerId);
  if (!last) {
    const box = hitAt(event);
    canvas.classList.toggle("box", Boolean(box));
    canvas.title = !box ? "" : box.item < 0 ? `${groupTitle(~box.item)}: click to ${state.open.has(~box.item) ? "fold" : "open"}` : placeOf(box.item);
    return;
  }
  const other = [...pointers.values()].find(each => each.pointerId !== event.pointerId);
  travelled += Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY);
  if (!other) pan(event.clientX - last.clientX, event.clientY - last.clientY);
  else {
    const area = canvas.getBoundingClientRect(), spread = each => Math.hypot(each.clientX - other.clientX, each.clientY - other.clientY);
    zoom(spread(event) / Math.max(1, spread(last)), (event.clientX + other.clientX) / 2 - area.left, (event.clientY + other.clientY) / 2 - area.top);
  }
  pointers.set(event.pointerId, event);
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => {
  const single = pointers.size === 1;
  pointers.delete(event.pointerId);
  if (name !== "pointerup" || !single || travelled > 5) return;
  const box = hitAt(event);
  if (!box) select(null);
  else if (box.item < 0) toggle(~box.item);
  else select(box.item, { show: false });
});
const framed = window !== window.parent;
canvas.addEventListener("wheel", event => {
  if (framed && !event.ctrlKey && document.activeElement !== canvas) return; // scrolls the notebook
  event.preventDefault();
  const area = canvas.getBoundingClientRect(), unit = event.deltaMode ? 20 : 1;
  zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * unit)) / 400), event.clientX - area.left, event.clientY - area.top);
}, { passive: false });

// --- Keys

function onCanvasKey(key) {
  const id = state.selected;
  if (key === "Enter" && id !== null) {
    const item = shownAs(id);
    if (item < 0) toggle(~item, true); else if (groupOf[id]) toggle(groupOf[id], false);
    return reveal(id);
  }
  if (key !== "ArrowUp" && key !== "ArrowDown") return false;
  if (id === null) return select(nodes.length - 1);
  const inputs = (nodes[id].inputs || []).map(each => each.from).filter(each => each !== undefined);
  const next = key === "ArrowUp" ? inputs[0] : users[id][0];
  if (next !== undefined) select(next);
}

const KEYS = {
  " ": play, ArrowLeft: () => go(state.step - 1), ArrowRight: () => go(state.step + 1), Home: () => go(0), End: () => go(steps.length - 1),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(.8), 0: fit, "/": () => search.focus(), "?": () => help(), l: () => showList(),
  o: () => toggleAll(), m: () => nextLine(), g: () => nextProblem(), Escape: () => select(null),
};

addEventListener("keydown", event => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open || target.matches("input:not([type=range]), select")) return;
  if (event.shiftKey && key.startsWith("Arrow")) {
    pan(...{ ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[key]);
    return event.preventDefault();
  }
  if (target === canvas && onCanvasKey(key) !== false) return event.preventDefault();
  if (target === byId("slider") && /^(Arrow|Home|End|Page)/.test(key)) return;
  if (key === " " && target.matches("button, summary")) return;
  if (!KEYS[key]) return;
  event.preventDefault();
  KEYS[key]();
});
addEventListener("click", event => { // the space bar is for the replay, not for the button that was clicked last
  if (event.detail && event.target.closest("button")) event.target.closest("button").blur();
});

byId("source").addEventListener("keydown", event => {
  if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
  const all = [...rows.values()], next = all[all.indexOf(document.activeElement) + (event.key === "ArrowUp" ? -1 : 1)];
  if (!next) return;
  event.preventDefault();
  for (const each of all) each.tabIndex = each === next ? 0 : -1;
  next.focus();
});

// --- Buttons

function help() {
  const keys = [["space", "play or pause"], ["← →", "one step back or forward"], ["Home End", "first or last step"], ["↑ ↓", "in the graph: to an input or a user of the node"],
    ["Enter", "open or fold the group of the node"], ["o", "open or fold all groups"], ["+ − 0", "zoom in, zoom out, whole graph"], ["shift + arrows", "move the graph"], ["/", "search"],
    ["m", "next line by memory kept"], ["g", "next zero, NaN or None gradient"], ["l", "graph or list"], ["Esc", "overview"]];
  byId("help").replaceChildren(make("h2", {}, "Help", make("span", { class: "buttons" }, make("button", { type: "button", click: () => byId("help").close() }, "Close"))),
    make("p", {}, "A box is a tensor or the operation that made it; arrows lead from inputs to results, from top to bottom. The backward pass goes from the bottom up. Select a line, a box or an entry: the other panes follow."),
    make("p", {}, "In a box: the name, the operation or the shape, the line and the bytes kept for the backward pass; on the right the value (above) and its gradient (∂, below), as a number or a small heat map."),
    make("p", {}, "Heat maps: blue is negative, orange is positive, the colour between is 0; × is NaN, ∞ is infinite."),
    make("ul", {}, legend()), make("table", {}, keys.map(([key, text]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, text)))));
  byId("help").showModal();
}

const legend = () => [["leaf", "leaf"], ["constant", "constant"], ["operation", "operation"], ["result", "result"]]
  .filter(([kind]) => nodes.some(node => node.kind === kind)).map(([kind, text]) => make("li", {}, make("i", { class: kind }), text));

function showPane(name) {
  document.querySelector("main").dataset.pane = name;
  for (const button of byId("tabs").children) button.setAttribute("aria-pressed", String(button.dataset.pane === name));
  resized();
}

function nextLine() {
  if (!byMemory.length) return;
  const at = state.selected === null ? -1 : byMemory.findIndex(line => nodes[state.selected].line && line.key === nodes[state.selected].line.join(":"));
  select(heaviest(byMemory[(at + 1) % byMemory.length]));
}
function nextProblem() {
  if (problems.length) select(problems[(problems.indexOf(state.selected) + 1) % problems.length]);
}

let started = false;
function resized() {
  if (!canvas.clientWidth) return;
  if (!started) {
    started = true;
    firstView();
  }
  paintNow();
}

const saying = { None: "None", zero: "zero", NaN: "NaN", inf: "infinite" };
function start() {
  byId("summary").textContent = data.summary || "";
  readColours();
  byId("theme").textContent = matchMedia("(prefers-color-scheme: dark)").matches ? "Light" : "Dark";
  groups.forEach((group, index) => group.open && state.open.add(index));
  layout();
  fillSource();
  byId("legend").append(...legend(), make("li", {}, "right: value, gradient ∂", byMemory.length ? " · bytes kept for backward" : ""));
  byId("open-all").hidden = groups.length < 2;
  if (state.open.size > 1) byId("open-all").textContent = "Fold all";
  if (byMemory.length) {
    byId("most").hidden = false;
    byId("most").textContent = `Most memory: ${lineOf(byMemory[0].nodes[0])}`;
    byId("most").title = `${lineOf(byMemory[0].nodes[0])} keeps ${bytes(byMemory[0].bytes)} for the backward pass; click again for the next line (key: m)`;
  }
  if (problems.length) {
    const kinds = Object.keys(saying).map(kind => [problems.filter(id => problemOf(id) === kind).length, saying[kind]]).filter(([count]) => count);
    byId("wrong").hidden = false;
    byId("wrong").textContent = `Gradients: ${kinds.map(each => each.join(" ")).join(", ")}`;
    byId("wrong").title = "Select the first gradient that is zero, NaN, infinite or None; click again for the next (key: g)";
  }
  byId("slider").max = steps.length - 1;
  byId("phases").style.background = `linear-gradient(90deg, var(--forward) ${100 * recordings / steps.length}%, var(--backward) 0)`;
  state.step = steps.length - 1;
  showStep();
  byId("step").textContent = `Press ▶ to replay: ${plural(recordings, "recorded operation")}, then ${plural(events.length, "step")} of the backward pass.`;
  showNode();
  resized();
}

const clicks = {
  most: nextLine, wrong: nextProblem, overview: () => select(null), "as-list": () => showList(), "open-all": toggleAll, in: () => zoom(1.25), out: () => zoom(.8), fit,
  first: () => go(0), back: () => go(state.step - 1), play, forward: () => go(state.step + 1), last: () => go(steps.length - 1), "help-button": help,
  theme: () => {
    setTheme(byId("theme").textContent.toLowerCase());
    showNode();
    repaint();
  },
};
for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener("click", action);
byId("slider").addEventListener("input", event => go(Number(event.target.value)));
byId("sort").addEventListener("change", fillTree);
byId("tree").addEventListener("keydown", treeKey);
byId("tree").addEventListener("click", event => {
  const row = event.target.closest('[role="treeitem"]');
  if (!row) return;
  focusRow(row);
  if (row.more) row.more(); else if (row.item < 0) toggle(~row.item, row.getAttribute("aria-expanded") !== "true"); else select(row.item);
});
for (const button of byId("tabs").children) button.addEventListener("click", () => showPane(button.dataset.pane));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => {
  setTheme(event.matches ? "dark" : "light");
  showNode();
  repaint();
});
new ResizeObserver(resized).observe(canvas);

// Paper: the whole graph, the selected node, a table of all nodes, in light colours.
addEventListener("beforeprint", () => {
  const before = document.documentElement.style.colorScheme;
  document.documentElement.style.colorScheme = "light";
  readColours();
  showNode();
  const ratio = 2, large = Math.min(1, 3000 / Math.max(scene.width, scene.height, 1)), picture = make("canvas", { id: "print-graph" });
  const width = scene.width * large + 40, height = scene.height * large + 60;
  Object.assign(picture, { width: width * ratio, height: height * ratio });
  paint(picture.getContext("2d"), wholeView(width, height, large, 0), width, height, ratio);
  byId("print").replaceChildren(make("figure", {}, make("h3", {}, "Graph"), picture), make("h3", {}, "Nodes"), make("table", { id: "print-table" },
    make("thead", {}, make("tr", {}, ["node", "kind", "line", "shape, dtype", "value", "gradient", "kept"].map(text => make("th", {}, text)))),
    nodes.slice(0, 2000).map((node, id) => make("tr", {}, [titleOf(id), node.kind, lineOf(id), shapeText(node), range(node.value), problemOf(id) || range(node.grad), node.bytes ? bytes(node.bytes) : ""].map(text => make("td", {}, text))))),
  nodes.length > 2000 ? make("p", {}, `and ${nodes.length - 2000} more nodes`) : "");
  addEventListener("afterprint", () => {
    document.documentElement.style.colorScheme = before;
    readColours();
    showNode();
    repaint();
  }, { once: true });
});

// For the console and for tests.
window.graphPage = { state, select, go, toggle, paintNow, boxOf: item => scene.at.get(item), arrows: () => scene.arrows.length, steps };
start();
})();


// How a stage is drawn on the canvas.
const canvas = el('canvas'), ctx = canvas.getContext('2d');
const dark = matchMedia('(prefers-color-scheme: dark)');
let looks = dark.matches ? doc.dark : doc.light;

// What is to be seen: a stage in a view, moved and magnified.
const seen = {stage: null, view: 'lanes', x: 0, y: 0, scale: 1, hover: -1, picked: -1, turn: -1};
const MOST_EDGES = 8000;

function resize() {
  const ratio = devicePixelRatio || 1, {width, height} = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
}

// gutter is the room for the names of lanes, at the left edge whatever is to be seen.
const gutter = () => seen.stage.geometry(seen.view).tops.length ? GUTTER : 0;

function fit() {
  const g = seen.stage.geometry(seen.view), {width, height} = canvas.getBoundingClientRect(), left = gutter();
  seen.scale = Math.min(1.6, (width - left) / (g.width + 24), height / (g.height + 20));
  seen.x = left + (left ? 0 : (width - g.width * seen.scale) / 2);
  seen.y = Math.max(0, (height - g.height * seen.scale) / 2);
}

// start shows all of a picture, or, where that is too small to read and there are not
// many nodes, its upper left corner.
function start() {
  fit();
  if (seen.scale >= 0.45 || seen.stage.n > 2000) return;
  seen.scale = 0.75;
  seen.x = gutter();
  seen.y = 0;
}

// outlining tells whether ranks and phases are drawn instead of nodes.
const outlining = s => s.outline || s.n > doc.outlined && seen.scale * ROW < 9 && !s.topology;

function draw() {
  const s = seen.stage, ratio = devicePixelRatio || 1, g = s.geometry(seen.view);
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = looks.paper;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  if (s.outline) return drawCells(s, ratio);
  ctx.setTransform(seen.scale * ratio, 0, 0, seen.scale * ratio, seen.x * ratio, seen.y * ratio);
  const view = {left: (gutter() - seen.x) / seen.scale, top: -seen.y / seen.scale};
  view.right = (canvas.width / ratio - seen.x) / seen.scale;
  view.bottom = view.top + canvas.height / ratio / seen.scale;
  if (g.tops.length) drawLanes(s, g, view);
  if (outlining(s)) drawOutline(s, g, view);
  else {
    drawEdges(s, g, view);
    drawNodes(s, g, view);
    if (s.topology) drawArrows(s, g);
  }
  if (g.tops.length) drawNames(s, g, ratio);
}

function drawLanes(s, g, view) {
  let odd = false;
  s.lanes.forEach((l, i) => {
    if (i === 0 || s.lanes[i - 1][0] !== l[0]) odd = !odd;
    if (!odd || g.tops[i] > view.bottom || g.tops[i] + l[2] * ROW < view.top) return;
    ctx.fillStyle = looks.shade;
    ctx.fillRect(view.left, g.tops[i], view.right - view.left, l[2] * ROW);
  });
}

// drawNames paints the gutter over what reaches into it.
function drawNames(s, g, ratio) {
  const height = ROW * seen.scale;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = looks.paper;
  ctx.fillRect(0, 0, GUTTER - 4, canvas.height / ratio);
  ctx.font = '11px ' + font;
  ctx.textAlign = 'left';
  let odd = false, last = -Infinity;
  const names = [];
  s.lanes.forEach((l, i) => {
    const first = i === 0 || s.lanes[i - 1][0] !== l[0];
    if (first) odd = !odd;
    const top = g.tops[i] * seen.scale + seen.y, y = top + height / 2 + 4;
    if (top + l[2] * height < 0 || top > canvas.height / ratio) return;
    if (odd) {
      ctx.fillStyle = looks.shade;
      ctx.fillRect(0, top, GUTTER - 4, l[2] * height);
    }
    if (height >= 11 || first) names.push([l, y]);
  });
  ctx.fillStyle = looks.dim;
  names.forEach(([l, y]) => {
    if (y - last < 12) return;
    ctx.fillText(height < 11 || l[1] < 0 ? 'rank ' + l[0] : l[0] + ':' + l[1] + (l[3] ? '  ' + l[3] : ''), 8, y, GUTTER - 14);
    last = y;
  });
}

const font = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

// How much of a node is to be seen while chunks are followed or the program plays.
function strength(s, v) {
  if (s.lit && !s.lit[v]) return 0.15;
  if (seen.turn >= 0 && !s.topology && (s.turn[v] < 0 || s.turn[v] >= seen.turn)) return 0.18;
  return 1;
}

function drawNodes(s, g, view) {
  const letters = seen.scale * 11 >= 6;
  const now = seen.turn > 0 && !s.topology ? s.order[seen.turn - 1] : -1;
  ctx.font = '11px ' + font;
  ctx.textAlign = s.topology ? 'center' : 'left';
  const hairline = Math.max(1, 0.7 / seen.scale);
  for (let v = 0; v < s.n; v++) {
    const x = g.x[v], y = g.y[v], w = g.w[v];
    if (x > view.right || x + w < view.left || y > view.bottom || y + g.h < view.top) continue;
    ctx.globalAlpha = strength(s, v);
    ctx.fillStyle = looks.fill[s.kind[v]];
    ctx.strokeStyle = looks.stroke[s.kind[v]];
    ctx.lineWidth = s.isStuck[v] ? 2.5 : Math.min(hairline, 3);
    ctx.beginPath();
    if (s.topology) ctx.arc(x + RADIUS, y + RADIUS, RADIUS, 0, 2 * Math.PI);
    else if (letters) ctx.roundRect(x, y, w, g.h, Math.min(3, w / 2));
    else ctx.rect(x, y, w, g.h);
    ctx.fill();
    ctx.stroke();
    if (letters) drawLabel(s, g, v, x, y, w);
    if (v === now || v === seen.picked || v === seen.hover) frame(s, g, v, v === now ? looks.light : looks.ink);
  }
  ctx.globalAlpha = 1;
}

function drawLabel(s, g, v, x, y, w) {
  ctx.fillStyle = looks.ink;
  if (s.topology) return ctx.fillText(s.labelOf(v), x + RADIUS, y + RADIUS + 4);
  let text = s.labelOf(v, g.view);
  const room = Math.floor((w - 6) / CHAR);
  if (text.length > room) {
    if (room < 2) return;
    text = text.slice(0, room - 1) + '…';
  }
  ctx.fillText(text, x + 5, y + 13);
}

function frame(s, g, v, color) {
  ctx.globalAlpha = 1;
  ctx.strokeStyle = color;
  ctx.lineWidth = Math.max(2, 2 / seen.scale);
  ctx.beginPath();
  if (s.topology) ctx.arc(g.x[v] + RADIUS, g.y[v] + RADIUS, RADIUS + 2, 0, 2 * Math.PI);
  else ctx.rect(g.x[v] - 2, g.y[v] - 2, g.w[v] + 4, g.h + 4);
  ctx.stroke();
}

// path of an edge, and where its head is: x, y, direction.
function path(s, g, e) {
  const a = s.efrom[e], b = s.eto[e];
  if (s.topology) return bow(g.x[a] + RADIUS, g.y[a] + RADIUS, g.x[b] + RADIUS, g.y[b] + RADIUS);
  let x1 = g.x[a] + g.w[a], y1 = g.y[a] + g.h / 2, x2 = g.x[b], y2 = g.y[b] + g.h / 2;
  if (s.timed) {
    // A message leads from where its sender begins to where its receiver ends, a wait
    // from what ends to what waited for it.
    const down = g.y[b] >= g.y[a], wait = s.ekind[e] !== MESSAGE;
    x1 = wait ? x1 : g.x[a];
    x2 = wait ? Math.max(x1, x2) : x2 + g.w[b];
    y1 = down ? g.y[a] + g.h : g.y[a];
    y2 = down ? g.y[b] : g.y[b] + g.h;
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    return [x2, y2, Math.atan2(y2 - y1, x2 - x1)];
  }
  const bend = Math.max(14, Math.min((x2 - x1) / 2, 60));
  ctx.moveTo(x1, y1);
  ctx.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  return [x2, y2, 0];
}

function bow(x1, y1, x2, y2) {
  const cx = (x1 + x2) / 2 - (y2 - y1) * 0.12, cy = (y1 + y2) / 2 + (x2 - x1) * 0.12;
  const trim = (x, y, r) => { const d = Math.max(Math.hypot(cx - x, cy - y), 1); return [x + (cx - x) * r / d, y + (cy - y) * r / d]; };
  [x1, y1] = trim(x1, y1, RADIUS);
  [x2, y2] = trim(x2, y2, RADIUS + 1);
  ctx.moveTo(x1, y1);
  ctx.quadraticCurveTo(cx, cy, x2, y2);
  return [x2, y2, Math.atan2(y2 - cy, x2 - cx)];
}

const near = (s, e) => {
  const a = s.efrom[e], b = s.eto[e];
  return a === seen.hover || b === seen.hover || a === seen.picked || b === seen.picked;
};

function drawEdges(s, g, view) {
  const strokes = [];
  for (let e = 0; e < s.ekind.length; e++) {
    const a = s.efrom[e], b = s.eto[e], kind = s.ekind[e];
    if (kind === ORDER && g.view === 'lanes') continue;
    if (Math.min(g.x[a], g.x[b]) > view.right || Math.max(g.x[a] + g.w[a], g.x[b] + g.w[b]) < view.left) continue;
    if (Math.min(g.y[a], g.y[b]) > view.bottom || Math.max(g.y[a], g.y[b]) + g.h < view.top) continue;
    strokes.push(e);
  }
  seen.hidden = strokes.length > MOST_EDGES ? strokes.length : 0;
  for (const e of strokes) {
    const close = near(s, e);
    if (seen.hidden && !close) continue;
    const kind = s.ekind[e];
    ctx.globalAlpha = s.topology ? (s.litEdges && !s.litEdges[e] ? 0.08 : 1) : Math.min(strength(s, s.efrom[e]), strength(s, s.eto[e]));
    if (seen.hover >= 0 && !close) ctx.globalAlpha *= 0.45;
    ctx.strokeStyle = ctx.fillStyle = looks.edge[kind];
    ctx.lineWidth = (close ? 2.2 : 1) * Math.max(1, 0.6 / seen.scale);
    if (kind === CONNECTION) ctx.lineWidth += Math.min(3, Math.log2(s.ecount[e]) / 4); // as in svg.go
    ctx.setLineDash(doc.dashes[kind] ?? []);
    ctx.beginPath();
    const head = path(s, g, e);
    ctx.stroke();
    ctx.setLineDash([]);
    if (kind !== ORDER && kind !== LINK) arrowhead(head);
  }
  ctx.globalAlpha = 1;
}

// drawArrows draws a rank's own connections above all others.
function drawArrows(s, g) {
  if (seen.hover < 0) return;
  for (let e = 0; e < s.ekind.length; e++) {
    if (!near(s, e)) continue;
    ctx.strokeStyle = ctx.fillStyle = looks.edge[s.ekind[e]];
    ctx.lineWidth = 2.4;
    ctx.beginPath();
    const head = path(s, g, e);
    ctx.stroke();
    arrowhead(head);
  }
}

function arrowhead([x, y, angle]) {
  if (seen.scale < 0.25) return;
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(angle);
  ctx.beginPath();
  ctx.moveTo(0, 0);
  ctx.lineTo(-7, -3.5);
  ctx.lineTo(-7, 3.5);
  ctx.fill();
  ctx.restore();
}

// outlineOf counts a stage's nodes by rank and phase: bands of the picture so wide
// that they can be seen.
function outlineOf(s, g) {
  const width = 2 ** Math.ceil(Math.log2(22 / seen.scale));
  if (g.outline?.width === width && g.outline.lit === s.lit) return g.outline;
  const phases = Math.ceil((g.width + 1) / width), kinds = doc.kinds.length;
  const count = new Int32Array(s.ranks * phases * kinds);
  let most = 1;
  for (let v = 0; v < s.n; v++) {
    if (s.lit && !s.lit[v]) continue;
    const at = (s.rank(v) * phases + Math.floor(g.x[v] / width)) * kinds;
    most = Math.max(most, ++count[at + s.kind[v]]);
  }
  return g.outline = {width, phases, count, most, lit: s.lit};
}

function drawOutline(s, g, view) {
  const o = outlineOf(s, g), kinds = doc.kinds.length, gap = Math.min(2 / seen.scale, o.width / 8);
  for (let i = 0, j; i < s.lanes.length; i = j) {
    const rank = s.lanes[i][0];
    for (j = i + 1; j < s.lanes.length && s.lanes[j][0] === rank; j++);
    const top = g.tops[i], height = (g.tops[j - 1] + s.lanes[j - 1][2] * ROW) - top;
    if (top > view.bottom || top + height < view.top) continue;
    for (let p = Math.max(0, Math.floor(view.left / o.width)); p < o.phases && p * o.width < view.right; p++)
      drawCell(o.count, (rank * o.phases + p) * kinds, o.most, p * o.width, top, o.width - gap, height - Math.min(gap, height / 4));
  }
}

// drawCell draws the counts of one rank and phase, a bar a kind.
function drawCell(count, at, most, x, y, w, h) {
  let all = 0;
  for (let k = 0; k < doc.kinds.length; k++) all += count[at + k];
  if (!all) return;
  ctx.globalAlpha = 0.35 + 0.65 * Math.min(1, all / most);
  for (let k = 0; k < doc.kinds.length; k++) {
    const part = w * count[at + k] / all;
    if (!part) continue;
    ctx.fillStyle = looks.stroke[k];
    ctx.fillRect(x, y, part, h);
    x += part;
  }
  ctx.globalAlpha = 1;
}

// drawCells draws a stage of which the page has the outline alone.
function drawCells(s, ratio) {
  const o = s.outline, {width, height} = canvas.getBoundingClientRect();
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const w = (width - 100) / o.phases, h = Math.min(40, (height - 60) / o.ranks);
  const most = o.count.reduce((a, b) => Math.max(a, b), 1);
  ctx.fillStyle = looks.dim;
  ctx.font = '12px ' + font;
  ctx.textAlign = 'left';
  ctx.fillText(o.nodes.toLocaleString('en') + ' nodes: an outline by rank and phase. Draw one rank (--rank N) to see each of them.', 12, 22);
  ctx.font = '10px ' + font;
  for (let r = 0; r < o.ranks; r++) {
    ctx.fillStyle = looks.dim;
    if (h >= 9 || r % 8 === 0) ctx.fillText(o.perRow > 1 ? 'ranks ' + r * o.perRow + '…' : 'rank ' + r, 12, 44 + r * h + Math.min(h, 12) - 2);
    for (let p = 0; p < o.phases; p++) drawCell(o.count, (r * o.phases + p) * o.kinds, most, 88 + p * w, 44 + r * h, Math.max(w - 1, 0.5), Math.max(h - 1, 0.5));
  }
}

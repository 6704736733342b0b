
// What a person does with the page.
const stages = [], followed = new Set();
const stage = i => stages[i] ??= new Stage(i);
const tip = el('tip'), panel = el('panel'), time = el('time');
let playing = 0, frameAsked = false, table = null;

function redraw() {
  if (frameAsked) return;
  frameAsked = true;
  requestAnimationFrame(() => { frameAsked = false; draw(); status(); });
}

function add(parent, tag, text, name) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  parent.append(e);
  return e;
}

function button(parent, text, name, act) {
  const b = add(parent, 'button', text, name);
  b.addEventListener('click', act);
  return b;
}

// Tabs, one a stage; each says how many of its steps are lit up.
function tabs() {
  const nav = el('tabs'), focused = [...nav.children].indexOf(document.activeElement);
  nav.textContent = '';
  doc.stages.forEach((t, i) => {
    const b = button(nav, t.stage, '', () => show(i));
    b.setAttribute('role', 'tab');
    b.setAttribute('aria-selected', seen.stage?.number === i);
    b.title = t.about + ' (' + (i + 1) + ')';
    add(b, 'span', followed.size ? stage(i).litCount + ' lit' : t.nodes.toLocaleString('en'), 'count');
  });
  nav.children[focused]?.focus();
}

function show(i) {
  stop();
  seen.stage = stage(i);
  seen.hover = seen.picked = -1;
  seen.turn = -1;
  const still = seen.stage.topology || !seen.stage.order.length;
  time.max = still ? 0 : seen.stage.order.length;
  time.value = 0;
  for (const id of ['first', 'back', 'play', 'forth', 'off']) el(id).disabled = still;
  time.disabled = still;
  el('view').disabled = !seen.stage.layered;
  if (!seen.stage.layered) seen.view = 'lanes';
  buttons();
  hideTip();
  tabs();
  legend();
  start();
  describe();
  redraw();
}

function buttons() {
  el('view').textContent = seen.view === 'lanes' ? 'layers' : 'lanes';
  el('play').textContent = playing ? '⏸ stop' : '▶ play';
}

function toggleView() {
  if (!seen.stage.layered) return;
  seen.view = seen.view === 'lanes' ? 'layers' : 'lanes';
  buttons();
  legend();
  start();
  redraw();
}

function legend() {
  const box = el('legend'), s = seen.stage;
  box.textContent = '';
  const swatch = (style, text) => {
    const item = add(box, 'span');
    const mark = add(item, 'i');
    Object.assign(mark.style, style);
    item.append(text);
  };
  const kinds = new Set(s.kind), edges = new Set(s.ekind);
  doc.kinds.forEach((name, k) => {
    if (kinds.has(k) && !s.topology) swatch({width: '13px', height: '10px', background: looks.fill[k], border: '1px solid ' + looks.stroke[k]}, name);
  });
  doc.edges.forEach((name, k) => {
    if (edges.has(k) && !(k === ORDER && seen.view === 'lanes')) swatch({width: '20px', borderTop: '2px ' + (!doc.dashes[k] ? 'solid ' : k === ORDER ? 'dotted ' : 'dashed ') + looks.edge[k]}, name);
  });
  if (s.stuck?.length) swatch({width: '13px', height: '10px', border: '2px solid ' + looks.ink}, s.stuck.length + ' can never run');
}

// The text of an edge's other end, as it is said of node v.
function links(v) {
  const s = seen.stage, list = {peers: [], before: [], after: []};
  for (const e of s.into(v)) list[s.ekind[e] === MESSAGE || s.topology ? 'peers' : 'before'].push([e, s.efrom[e], 'from']);
  for (const e of s.outOf(v)) list[s.ekind[e] === MESSAGE || s.topology ? 'peers' : 'after'].push([e, s.eto[e], 'to']);
  for (const part of Object.values(list)) part.sort((a, b) => (s.ekind[a[0]] === ORDER) - (s.ekind[b[0]] === ORDER));
  return list;
}

function linkText([e, u, way]) {
  const s = seen.stage;
  if (s.topology) return way + ' ' + u + ': ' + (s.ekind[e] === LINK ? 'unused, ' : '') + s.enote[e];
  return (s.ekind[e] === MESSAGE ? 'message ' + way + ' ' : '') + s.title(u) + ({[FALSE]: '  (place reused)', [ORDER]: '  (same thread block)'}[s.ekind[e]] ?? '');
}

const MOST_LINKS = 40;

function section(parent, title, list) {
  if (!list.length) return;
  add(parent, 'h2', title);
  for (const link of list.slice(0, MOST_LINKS)) button(parent, linkText(link), 'link', () => { pick(link[1]); center(link[1]); });
  if (list.length > MOST_LINKS) add(parent, 'p', 'and ' + (list.length - MOST_LINKS) + ' more', 'dim');
}

// The panel tells of the step that was clicked, and of the chunks.
function describe() {
  const s = seen.stage, v = seen.picked, focused = panel.contains(document.activeElement) && document.activeElement.dataset.chunk;
  panel.textContent = '';
  if (v < 0) {
    add(panel, 'h2', s.stage);
    add(panel, 'p', s.about, 'dim');
    add(panel, 'p', 'Drag to move, wheel to zoom. Point at a step to see its line of the script, its peer and what waits for it. Click it to follow its chunks through all stages.', 'dim');
  } else {
    add(panel, 'h2', s.topology ? 'rank ' + v : s.name(v) + ', ' + (s.stage === 'chunks' || s.stage === 'instructions' || s.stage === 'fused' ? '' : 'step ') + s.id[v]);
    add(panel, 'code', s.textOf(v));
    if (s.isStuck[v]) add(panel, 'p', 'can never run');
    if (s.place(v)) {
      add(panel, 'h2', 'script');
      add(panel, 'p', s.place(v), 'code dim');
      if (s.line(v)) add(panel, 'p', s.line(v), 'code');
    }
    const list = links(v);
    section(panel, s.topology ? 'connections' : 'peer', list.peers);
    section(panel, 'waits for', list.before);
    section(panel, 'waited for by', list.after);
    if (!s.topology && s.moved[v] < s.moved[v + 1]) chips(v);
  }
  chunkTable();
  if (focused) panel.querySelector(`[data-chunk="${focused}"]`)?.focus();
}

function chips(v) {
  const keys = [...seen.stage.chunks(v)];
  add(panel, 'h2', keys.length === 1 ? 'moves the chunk' : 'moves the sum or list of chunks');
  const box = add(panel, 'div', undefined, 'chips');
  for (const key of keys.slice(0, 256)) {
    const b = button(box, key, 'chip', () => follow(followed.size === 1 && followed.has(key) ? [] : [key]));
    b.title = 'input ' + key.split('.')[1] + ' of rank ' + key.split('.')[0];
    b.classList.toggle('on', followed.has(key));
  }
  if (keys.length > 256) add(panel, 'p', 'and ' + (keys.length - 256) + ' more', 'dim');
}

// chunkTable shows the inputs of all ranks; click one to follow it.
function chunkTable() {
  const s = stage(seen.stage.topology ? 0 : seen.stage.number);
  const found = new Map();
  let columns = 0, rows = 0;
  for (let i = 1; i <= s.parts.length / 2; i++) {
    if (s.isSum[i]) continue;
    const [rank, index] = [s.parts[2 * i - 2], s.parts[2 * i - 1]];
    found.set(rank + '.' + index, true);
    rows = Math.max(rows, rank + 1);
    columns = Math.max(columns, index + 1);
  }
  if (!found.size) return;
  add(panel, 'h2', 'chunks');
  add(panel, 'p', 'inputs by rank; click one to follow it', 'dim');
  if (followed.size) button(panel, 'follow none', '', () => follow([]));
  if (rows * columns > 4096) {
    const input = add(panel, 'input');
    input.placeholder = 'rank.index, such as 2.3';
    input.value = followed.size === 1 ? [...followed][0] : '';
    input.addEventListener('change', () => follow(found.has(input.value.trim()) ? [input.value.trim()] : []));
    return;
  }
  table = add(add(panel, 'div', undefined, 'scroll'), 'table', undefined, 'chunks');
  for (let r = 0; r < rows; r++) {
    const row = add(table, 'tr');
    add(row, 'th', r);
    for (let i = 0; i < columns; i++) {
      const key = r + '.' + i, cell = add(row, 'td');
      if (!found.has(key)) continue;
      const b = button(cell, columns <= 64 ? i : '', followed.has(key) ? 'on' : '', () => follow(followed.has(key) && followed.size === 1 ? [] : [key]));
      b.title = 'input ' + i + ' of rank ' + r;
      b.dataset.chunk = key;
    }
  }
}

// follow lights up chunks in every stage.
function follow(keys) {
  followed.clear();
  for (const k of keys) followed.add(k);
  doc.stages.forEach((_, i) => stage(i).follow(followed));
  tabs();
  describe();
  redraw();
}

function pick(v) {
  seen.picked = v;
  if (v >= 0 && !seen.stage.topology) follow(seen.stage.chunks(v));
  else { describe(); redraw(); }
}

function center(v) {
  const g = seen.stage.geometry(seen.view), {width, height} = canvas.getBoundingClientRect();
  const x = (g.x[v] + g.w[v] / 2) * seen.scale + seen.x, y = (g.y[v] + g.h / 2) * seen.scale + seen.y;
  if (x < gutter() + 5 || x > width - 5) seen.x += width / 2 - x;
  if (y < 5 || y > height - 5) seen.y += height / 2 - y;
  redraw();
}

// at is the node at a place of the canvas, -1 for none.
function at(px, py) {
  const s = seen.stage;
  if (s.outline || outlining(s) || px < gutter()) return -1;
  const g = s.geometry(seen.view), x = (px - seen.x) / seen.scale, y = (py - seen.y) / seen.scale, slack = 1 / seen.scale;
  for (let v = s.n - 1; v >= 0; v--) {
    if (x >= g.x[v] - slack && x <= g.x[v] + g.w[v] + slack && y >= g.y[v] && y <= g.y[v] + g.h) return v;
  }
  return -1;
}

function hover(v, px, py) {
  if (v !== seen.hover) { seen.hover = v; redraw(); }
  if (v < 0) return hideTip();
  const s = seen.stage, list = links(v);
  tip.textContent = '';
  add(tip, 'div', s.title(v));
  if (s.place(v)) add(tip, 'div', s.place(v) + (s.line(v) ? '  ' + s.line(v) : ''), 'dim');
  if (s.isStuck[v]) add(tip, 'div', 'can never run');
  for (const link of list.peers.slice(0, 8)) add(tip, 'div', linkText(link));
  for (const link of list.before.slice(0, 4)) if (s.ekind[link[0]] !== ORDER) add(tip, 'div', 'waits for ' + linkText(link));
  for (const link of list.after.slice(0, 4)) add(tip, 'div', 'waited for by ' + linkText(link));
  const more = Math.max(0, list.peers.length - 8) + Math.max(0, list.before.length - 4) + Math.max(0, list.after.length - 4);
  if (more) add(tip, 'div', 'and ' + more + ' more: click for all', 'dim');
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(px + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (py + 18 + box.height > innerHeight ? Math.max(4, py - box.height - 10) : py + 18) + 'px';
}

function hideTip() { tip.hidden = true; }

// Playing: seen.turn steps of the order have run; -1 shows all.
function turnTo(n) {
  const most = seen.stage.order.length;
  seen.turn = Math.max(0, Math.min(n, most));
  time.value = seen.turn;
  if (seen.turn > 0) center(seen.stage.order[seen.turn - 1]);
  redraw();
}

function status() {
  const s = seen.stage, parts = [];
  if (seen.turn >= 0 && !s.topology) {
    parts.push(seen.turn + '/' + s.order.length);
    if (seen.turn > 0) { const v = s.order[seen.turn - 1]; parts.push(s.title(v), s.place(v)); }
  } else if (seen.hidden && !outlining(s)) parts.push(seen.hidden.toLocaleString('en') + ' arrows: zoom in or point at a step to see them');
  else if (outlining(s) && !s.outline) parts.push('an outline, ranks by phases: zoom in to see steps');
  el('status').textContent = el('status').title = parts.filter(Boolean).join('  ');
}

function stop() {
  if (playing) clearInterval(playing);
  playing = 0;
  buttons();
}

function play() {
  if (el('play').disabled) return;
  if (playing) return stop();
  const most = seen.stage.order.length, stride = Math.max(1, Math.round(most / 400));
  if (seen.turn < 0 || seen.turn >= most) turnTo(0);
  playing = setInterval(() => {
    turnTo(seen.turn + stride);
    if (seen.turn >= most) stop();
  }, Math.max(40, Math.min(600, 20000 / Math.max(most, 1))));
  buttons();
}

function step(by) {
  if (el('play').disabled) return;
  stop();
  turnTo(seen.turn < 0 ? (by > 0 ? by : seen.stage.order.length + by) : seen.turn + by);
}

function showAll() {
  stop();
  seen.turn = seen.picked = -1;
  time.value = 0;
  follow([]);
}

function zoom(px, py, by) {
  const scale = Math.max(0.004, Math.min(6, seen.scale * by));
  seen.x = px - (px - seen.x) * scale / seen.scale;
  seen.y = py - (py - seen.y) * scale / seen.scale;
  seen.scale = scale;
  redraw();
}

let drag = null;
const inside = e => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
canvas.addEventListener('pointerdown', e => {
  const [x, y] = inside(e);
  drag = {x, y, moved: false};
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener('pointermove', e => {
  const [x, y] = inside(e);
  if (!drag) return hover(at(x, y), e.clientX, e.clientY);
  if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3 || drag.moved) {
    hideTip();
    canvas.style.cursor = 'grabbing';
    seen.x += x - drag.x;
    seen.y += y - drag.y;
    drag = {x, y, moved: true};
    redraw();
  }
});
canvas.addEventListener('pointerup', e => {
  const [x, y] = inside(e);
  if (drag && !drag.moved) pick(at(x, y));
  if (drag && !drag.moved && seen.picked < 0) follow([]);
  drag = null;
  canvas.style.cursor = '';
});
canvas.addEventListener('pointerleave', () => { seen.hover = -1; hideTip(); redraw(); });
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  const [x, y] = inside(e);
  hideTip();
  zoom(x, y, Math.exp(-Math.max(-120, Math.min(120, e.deltaY)) * 0.002));
}, {passive: false});
canvas.addEventListener('dblclick', e => zoom(...inside(e), 2));

time.addEventListener('input', () => { stop(); turnTo(+time.value); });
for (const [id, act] of [['view', toggleView], ['fit', () => { fit(); redraw(); }], ['first', () => { stop(); turnTo(0); }], ['back', () => step(-1)],
  ['play', play], ['forth', () => step(1)], ['off', showAll]]) el(id).addEventListener('click', act);

addEventListener('keydown', e => {
  if (e.target instanceof HTMLInputElement && e.target.type !== 'range' || e.ctrlKey || e.metaKey || e.altKey) return;
  const keys = {ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => { stop(); turnTo(0); }, ' ': play, Escape: showAll,
    f: () => { fit(); redraw(); }, l: toggleView, '+': () => zoom(innerWidth / 3, innerHeight / 2, 1.25), '-': () => zoom(innerWidth / 3, innerHeight / 2, 0.8)};
  if (e.key >= '1' && e.key <= String(doc.stages.length)) show(e.key - 1);
  else if (keys[e.key]) keys[e.key]();
  else return;
  e.preventDefault();
});

dark.addEventListener('change', () => { looks = dark.matches ? doc.dark : doc.light; legend(); redraw(); });
new ResizeObserver(() => { resize(); redraw(); }).observe(canvas);

// For other scripts and for tests: where a node is in the window, and what is seen.
window.picture = {
  seen,
  place: v => {
    const g = seen.stage.geometry(seen.view), r = canvas.getBoundingClientRect();
    return [r.left + (g.x[v] + g.w[v] / 2) * seen.scale + seen.x, r.top + (g.y[v] + g.h / 2) * seen.scale + seen.y];
  },
};

el('name').textContent = doc.title;
resize();
show(0);

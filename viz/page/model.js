// What a stage is, and where its nodes are. Sizes are those of geometry.go.
const CHAR = 6.7, NODE = 18, ROW = 26, LANE_GAP = 6, COL_GAP = 26, GUTTER = 132, LEFT = 10, TOP = 10, TIME_WIDTH = 1400, MAX_LABEL = 24, RADIUS = 17;
const [TRUE, FALSE, MESSAGE, WAIT, ORDER, CONNECTION, LINK] = [0, 1, 2, 3, 4, 5, 6];

const el = id => document.getElementById(id);
const doc = JSON.parse(el('doc').textContent);

// Lists of edges at each node: at[v] to at[v+1] are indexes into edge.
function adjacency(ends, n) {
  const at = new Int32Array(n + 1), edge = new Int32Array(ends.length);
  for (const v of ends) at[v + 1]++;
  for (let v = 0; v < n; v++) at[v + 1] += at[v];
  const fill = at.slice();
  for (let e = 0; e < ends.length; e++) edge[fill[ends[e]]++] = e;
  return v => edge.subarray(at[v], at[v + 1]);
}

// A stage with its nodes by number: kind, lane and so on are columns.
class Stage {
  constructor(number) {
    Object.assign(this, JSON.parse(el('stage' + number).textContent));
    this.number = number;
    for (const name of ['lanes', 'kind', 'lane', 'row', 'col', 'depth', 'layer', 'id', 'label', 'text', 'pos', 'moved', 'begin', 'end', 'tile', 'order', 'ekind', 'efrom', 'eto', 'values', 'parts']) this[name] ??= [];
    this.n = this.kind.length;
    this.topology = this.stage === 'topology';
    this.timed = this.stage === 'timeline';
    this.into = adjacency(this.eto, this.n);
    this.outOf = adjacency(this.efrom, this.n);
    this.isStuck = new Uint8Array(this.n);
    for (const v of this.stuck ?? []) this.isStuck[v] = 1;
    this.isSum = new Uint8Array(this.parts.length / 2 + 1);
    for (const v of this.sums ?? []) this.isSum[v] = 1;
    this.lineAt = new Map();
    for (let i = 0; i < (this.lines ?? []).length; i += 2) this.lineAt.set(this.lines[i], this.lines[i + 1]);
    this.turn = new Int32Array(this.n).fill(-1); // when a node runs
    this.order.forEach((v, i) => { this.turn[v] = i; });
    this.geometries = {};
    this.lit = null; // nodes with chunks that are followed
  }

  // Views are lanes and layers; the topology and runs have one of their own.
  get layered() { return this.layer.length > 0; }
  name(v) { const [rank, block] = this.lanes[this.lane[v]]; return block < 0 ? 'rank ' + rank : rank + ':' + block; }
  rank(v) { return this.lanes[this.lane[v]][0]; }
  textOf(v) { return this.strings[this.text[v]]; }
  labelOf(v, view) {
    const text = this.strings[this.label[v]];
    const full = view === 'layers' ? this.rank(v) + ': ' + text : text;
    return full.length > MAX_LABEL ? full.slice(0, MAX_LABEL - 1) + '…' : full;
  }
  title(v) { return this.topology ? this.textOf(v) : this.name(v) + ', ' + this.id[v] + ': ' + this.textOf(v); }
  place(v) { return this.pos[v] < 0 ? '' : this.strings[this.pos[v]]; }
  line(v) { const n = this.lineAt.get(this.pos[v]); return n === undefined ? '' : this.strings[n]; }

  geometry(view) {
    if (!this.layered) view = 'lanes';
    return this.geometries[view] ??= this.measure(view);
  }

  measure(view) {
    const n = this.n, g = {view, x: new Float32Array(n), y: new Float32Array(n), w: new Float32Array(n).fill(2 * RADIUS), h: this.topology ? 2 * RADIUS : NODE, tops: []};
    if (this.topology) return this.circle(g);
    if (view === 'lanes') this.laneTops(g);
    let width = 0;
    if (!this.timed) {
      for (let v = 0; v < n; v++) width = Math.max(width, this.labelOf(v, view).length);
      width = Math.ceil(Math.max(width, 4) * CHAR + 10);
      g.w.fill(width);
    }
    const scale = TIME_WIDTH * this.stretch() / Math.max(this.span, 1);
    g.scale = scale;
    g.pitch = width + COL_GAP;
    g.width = LEFT;
    for (let v = 0; v < n; v++) {
      if (view === 'layers') {
        g.x[v] = 20 + this.depth[v] * (width + 2 * COL_GAP);
        g.y[v] = TOP + this.layer[v] / doc.spread * ROW;
        g.height = Math.max(g.height ?? 0, g.y[v] + ROW);
      } else {
        g.x[v] = LEFT + (this.timed ? this.begin[v] * scale : this.col[v] * g.pitch);
        g.y[v] = g.tops[this.lane[v]] + this.row[v] * ROW + (ROW - NODE) / 2;
        if (this.timed) g.w[v] = Math.max((this.end[v] - this.begin[v]) * scale, 1);
      }
      g.width = Math.max(g.width, g.x[v] + g.w[v]);
    }
    g.height ??= 60;
    return g;
  }

  // Runs of many events are drawn longer.
  stretch() { return Math.min(60, Math.max(1, this.n / Math.max(this.lanes.length, 1) / 12)); }

  laneTops(g) {
    let y = TOP;
    this.lanes.forEach((l, i) => {
      if (i > 0 && this.lanes[i - 1][0] !== l[0]) y += LANE_GAP;
      g.tops.push(y);
      y += l[2] * ROW;
    });
    g.height = y;
  }

  circle(g) {
    const radius = Math.max(150, this.n * RADIUS * 2.6 / (2 * Math.PI));
    for (let v = 0; v < this.n; v++) {
      const a = 2 * Math.PI * v / this.n - Math.PI / 2;
      g.x[v] = radius * (1 + Math.cos(a)) + 40 - RADIUS;
      g.y[v] = radius * (1 + Math.sin(a)) + TOP + 30 - RADIUS;
    }
    g.width = 2 * radius + 80;
    g.height = 2 * radius + 60 + TOP;
    return g;
  }

  // follow lights up the nodes that move a chunk out of keys, rank and index.
  follow(keys) {
    this.lit = this.litEdges = null;
    this.litCount = 0;
    if (!keys.size) return;
    const values = this.parts.length / 2, hit = new Uint8Array(values + 1);
    for (let i = 1; i <= values; i++) {
      const a = this.parts[2 * i - 2], b = this.parts[2 * i - 1];
      hit[i] = this.isSum[i] ? hit[a] | hit[b] : +keys.has(a + '.' + b);
    }
    const some = (from, to) => { for (let k = from; k < to; k++) if (hit[this.values[k]]) return 1; return 0; };
    this.lit = new Uint8Array(this.n);
    if (this.topology) {
      this.litEdges = new Uint8Array(this.ekind.length);
      for (let e = 0; e < this.ekind.length; e++) {
        if (!some(this.emoved[e], this.emoved[e + 1])) continue;
        this.litEdges[e] = this.lit[this.efrom[e]] = this.lit[this.eto[e]] = 1;
        this.litCount++;
      }
      return;
    }
    for (let v = 0; v < this.n; v++) this.litCount += this.lit[v] = some(this.moved[v], this.moved[v + 1]);
  }

  // chunks are those that a node moves, as keys, each once.
  chunks(v) {
    const seen = new Set(), keys = new Set(), stack = [];
    for (let k = this.moved[v]; k < this.moved[v + 1]; k++) stack.push(this.values[k]);
    while (stack.length) {
      const i = stack.pop();
      if (seen.has(i)) continue;
      seen.add(i);
      const a = this.parts[2 * i - 2], b = this.parts[2 * i - 1];
      if (this.isSum[i]) stack.push(a, b);
      else keys.add(a + '.' + b);
    }
    return keys;
  }
}

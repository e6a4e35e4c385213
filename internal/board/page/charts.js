// One chart for each metric, with the runs overlaid; where a point stands for several records, a band shows their range.
import uPlot from './vendor/uPlot.esm.js';
import { element, get } from './dom.js';

export const colours = ['#1f6feb', '#d1582b', '#2da44e', '#8250df', '#b08800', '#768390'];

const mostPoints = 2000; // of a run that is watched for long

const group = (name) => (name.includes('/') ? name.slice(0, name.indexOf('/')) : 'run');
const plain = (name) => (name === 'reward' ? 0 : name.includes('/') ? 2 : 1);
const order = (a, b) => plain(a) - plain(b) || (a < b ? -1 : 1); // the reward and what has no group first
const nothing = (n) => new Array(n).fill(null);

export class Charts {
  constructor(root) {
    this.root = root;
    this.runs = []; // of each: {epoch, count, steps, series}
    this.grids = new Map(); // by group
    this.plots = new Map(); // by metric: {figure, value, plot}
    this.dirty = false;
  }

  // update fetches what is new of run i and returns how many records it has.
  async update(i) {
    const have = this.runs[i] ?? { epoch: -1, count: 0, steps: [], series: {} };
    const after = have.steps.length > mostPoints ? 0 : have.count; // 0: everything, thinned again
    const news = await get(`api/metrics?run=${i}&epoch=${have.epoch}&after=${after}`);
    if (!news.whole && news.steps.length === 0) return news.count;
    this.runs[i] = news.whole ? news : append(have, news);
    this.dirty = true;
    return news.count;
  }

  draw() {
    if (!this.dirty) return;
    this.dirty = false;
    const names = [...new Set(this.runs.flatMap((r) => Object.keys(r.series)))].sort(order);
    for (const name of names) this.drawMetric(name);
  }

  drawMetric(name) {
    const entry = this.plots.get(name) ?? this.add(name);
    const tables = this.runs.filter((r) => r.series[name]).map((r) => {
      const s = r.series[name];
      return [r.steps, s.mean, s.low, s.high];
    });
    const indices = this.runs.flatMap((r, i) => (r.series[name] ? [i] : []));
    const lasts = tables.map((t) => t[1].findLast((v) => v !== null));
    entry.value.textContent = lasts.map((v) => String(v)).join('  ');
    const data = uPlot.join(tables);
    const key = indices.join();
    if (entry.plot && entry.key === key) return entry.plot.setData(data);
    entry.plot?.destroy();
    entry.key = key;
    entry.plot = new uPlot(options(entry.figure.clientWidth - 20, indices), data, entry.figure);
  }

  add(name) {
    const g = group(name);
    if (!this.grids.has(g)) {
      const grid = element('div', 'grid');
      this.root.append(element('h2', '', g), grid);
      this.grids.set(g, grid);
    }
    const figure = element('figure');
    figure.dataset.metric = name;
    const caption = element('figcaption', '', name);
    const value = element('span', 'quiet value');
    caption.append(value);
    figure.append(caption);
    this.grids.get(g).append(figure);
    const entry = { figure, value };
    this.plots.set(name, entry);
    new ResizeObserver(() => entry.plot?.setSize({ width: Math.max(figure.clientWidth - 20, 100), height: 180 })).observe(figure);
    return entry;
  }
}

function append(have, news) {
  const before = have.steps.length;
  const series = {};
  for (const name of new Set([...Object.keys(have.series), ...Object.keys(news.series)])) {
    series[name] = {};
    for (const part of ['low', 'mean', 'high']) {
      const old = have.series[name]?.[part] ?? nothing(before);
      series[name][part] = old.concat(news.series[name]?.[part] ?? nothing(news.steps.length));
    }
  }
  return { epoch: news.epoch, count: news.count, steps: have.steps.concat(news.steps), series };
}

function options(width, indices) {
  const ink = () => getComputedStyle(document.body).color;
  const axis = { stroke: ink, grid: { stroke: 'rgba(128,128,128,.2)' }, font: '11px system-ui' };
  const series = [{}];
  const bands = [];
  for (const i of indices) {
    const stroke = colours[i % colours.length];
    const n = series.length;
    series.push({ stroke, width: 1.5, spanGaps: true }, { spanGaps: true, points: { show: false } }, { spanGaps: true, points: { show: false } });
    bands.push({ series: [n + 2, n + 1], fill: `${stroke}33` });
  }
  return { width: Math.max(width, 100), height: 180, legend: { show: false }, scales: { x: { time: false } }, axes: [axis, { ...axis, size: 60 }], series, bands };
}

// The rubric over the steps: a lane for each criterion from birth to death, as thick as its weight, with the
// operations on it; below, every event with its reasons and evidence.
import { element, get } from './dom.js';

const opColours = { create: '#2da44e', delete: '#d1582b', reweight: '#1f6feb', update: '#8250df', replace: '#8250df', merge: '#b08800', split: '#b08800' };
const width = 1000;
const laneHeight = 26;

export class Rubric {
  constructor(select, root) {
    Object.assign(this, { select, root, seen: '' });
    select.addEventListener('change', () => this.update());
  }

  async update() {
    if (this.select.value === '') return;
    const events = await get(`api/rubric?run=${this.select.value}`);
    const now = `${this.select.value}:${events.length}`;
    if (now === this.seen) return; // open details stay open
    this.seen = now;
    const scopes = Map.groupBy(events, (e) => e.scope);
    this.root.replaceChildren(...[...scopes].flatMap(([scope, list]) => drawScope(scope, list)));
    if (events.length === 0) this.root.append(element('p', 'quiet', 'this run has no rubric log'));
  }
}

function drawScope(scope, events) {
  const details = events.map(drawEvent);
  return [element('h2', '', scope || 'rubric'), drawLanes(events, details), ...details];
}

// lanesOf returns, by criterion, the spans in which it stands unchanged: {from, to, weight, text}.
export function lanesOf(events, last) {
  const lanes = new Map();
  const sets = events.filter((e) => e.set);
  sets.forEach((event, i) => {
    for (const c of event.set.criteria ?? []) {
      if (!lanes.has(c.id)) lanes.set(c.id, []);
      lanes.get(c.id).push({ from: event.step, to: sets[i + 1]?.step ?? last, weight: c.weight, text: c.text });
    }
  });
  return lanes;
}

function drawLanes(events, details) {
  const last = Math.max(...events.map((e) => e.step)) + 1;
  const lanes = lanesOf(events, last);
  const heaviest = Math.max(...[...lanes.values()].flat().map((s) => Math.abs(s.weight)), 1e-9);
  const svg = shape('svg', { viewBox: `0 0 ${width} ${lanes.size * laneHeight}`, class: 'lanes', role: 'img' });
  const x = (step) => 240 + (step / last) * (width - 260);
  [...lanes].forEach(([id, spans], row) => {
    const y = row * laneHeight + laneHeight / 2;
    const label = shape('text', { x: 0, y: y + 4, fill: 'currentColor' });
    label.textContent = id;
    svg.append(label);
    for (const s of spans) {
      const line = shape('path', { d: `M${x(s.from)} ${y}H${x(s.to)}`, class: 'lane', 'stroke-width': 1 + (13 * Math.abs(s.weight)) / heaviest });
      line.append(titled(`weight ${s.weight}: ${s.text}`));
      svg.append(line);
    }
    events.forEach((event, i) => {
      for (const op of event.ops ?? []) {
        if ([...(op.before ?? []), ...(op.after ?? [])].includes(id)) svg.append(drawOp(op, x(event.step), y, details[i]));
      }
    });
  });
  return svg;
}

function drawOp(op, cx, cy, detail) {
  const dot = shape('circle', { cx, cy, r: 6, fill: opColours[op.kind] ?? '#768390', class: 'op' });
  dot.append(titled(`${op.kind}: ${op.reason ?? ''}`));
  dot.addEventListener('click', () => {
    detail.open = true;
    detail.querySelector('summary').focus();
  });
  return dot;
}

function drawEvent(event) {
  const detail = element('details');
  const ops = (event.ops ?? []).map((op) => op.kind).join(', ');
  detail.append(element('summary', '', `step ${event.step}, version ${event.version}: ${event.kind}${ops && ` (${ops})`}`));
  for (const op of event.ops ?? []) {
    const line = element('p', '', `${op.kind} ${(op.before ?? []).join(', ')} → ${(op.after ?? []).join(', ')}: ${op.reason ?? ''}`);
    detail.append(line);
  }
  for (const c of event.set?.criteria ?? []) detail.append(element('p', '', `${c.id} (${c.weight}): ${c.text}`));
  if (event.note) detail.append(element('pre', 'quiet', JSON.stringify(event.note, null, 2)));
  return detail;
}

function shape(tag, attributes) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, v] of Object.entries(attributes)) e.setAttribute(name, v);
  return e;
}

function titled(text) {
  const t = shape('title', {});
  t.textContent = text;
  return t;
}

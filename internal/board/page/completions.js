// The completions of a step, one group (a prompt) below the other, the members of a group side by side.
import { element, get } from './dom.js';

export class Completions {
  constructor(run, step, search, root) {
    Object.assign(this, { run, step, search, root, runs: [], groups: [] });
    run.addEventListener('change', () => this.fillSteps());
    step.addEventListener('change', () => this.load());
    search.addEventListener('input', () => this.draw());
  }

  update(runs) {
    const follows = this.step.selectedIndex <= 0; // the newest is first and is followed
    const known = this.runs[this.run.value]?.steps.length;
    this.runs = runs;
    if (this.run.options.length !== runs.length) this.run.replaceChildren(...runs.map((r, i) => new Option(r.name, i)));
    if (runs[this.run.value]?.steps.length !== known) this.fillSteps(follows ? undefined : this.step.value);
  }

  fillSteps(chosen) {
    const steps = this.runs[this.run.value].steps.toReversed();
    this.step.replaceChildren(...steps.map((s) => new Option(s, s)));
    if (chosen !== undefined) this.step.value = chosen;
    this.load();
  }

  async load() {
    if (this.step.value === '') return;
    const asked = `api/completions?run=${this.run.value}&step=${this.step.value}`;
    this.asked = asked;
    try {
      const lines = await get(asked);
      if (this.asked !== asked) return; // another step was chosen meanwhile
      this.groups = [...Map.groupBy(lines, (l) => `${l.id}\n${l.prompt}`).values()];
      this.draw();
    } catch (err) {
      this.root.replaceChildren(element('p', 'quiet', err.message));
    }
  }

  draw() {
    const wanted = this.search.value.toLowerCase();
    const shown = this.groups.filter((g) => JSON.stringify(g).toLowerCase().includes(wanted));
    this.root.replaceChildren(...shown.flatMap(drawGroup));
    if (shown.length === 0) this.root.append(element('p', 'quiet', 'nothing found'));
  }
}

function drawGroup(lines) {
  const sorted = lines.toSorted((a, b) => b.advantage - a.advantage);
  const differ = sorted[0].advantage > sorted.at(-1).advantage;
  const grid = element('div', 'grid');
  grid.append(...sorted.map((l, i) => drawCompletion(l, differ && i === 0 ? 'best' : differ && i === sorted.length - 1 ? 'worst' : '')));
  return [element('h2', '', lines[0].id), element('pre', 'quiet', lines[0].prompt), grid];
}

function drawCompletion(line, rank) {
  const card = element('article', rank);
  const rewards = Object.entries(line.rewards).map(([name, v]) => `${v === null ? 'unscorable' : v} ${name}`);
  const notes = [rank, ...rewards, `advantage ${line.advantage}`, line.truncated ? 'truncated' : ''].filter(Boolean);
  card.append(notesOf(notes), element('pre', 'text', line.completion));
  if (line.reason) card.append(element('p', '', line.reason));
  if (line.parts) {
    const list = element('dl');
    for (const p of line.parts) list.append(title(p), element('dd', '', p.reason ?? ''));
    card.append(list);
  }
  return card;
}

function title(part) {
  const term = element('dt');
  term.append(element('bdi', '', part.name), `: credit ${part.credit}, weight ${part.weight}`);
  return term;
}

// Each note stands by itself, so that a name with marks of direction cannot turn the figures beside it.
function notesOf(notes) {
  const line = element('div', 'quiet');
  notes.forEach((n, i) => line.append(i ? ' · ' : '', element('bdi', '', n)));
  return line;
}

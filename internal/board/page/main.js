// The page: it asks for the runs every two seconds and hands what is new to the charts and the completions.
import { Charts, colours } from './charts.js';
import { Completions } from './completions.js';
import { Rubric } from './rubric.js';
import { element, get } from './dom.js';

const at = (id) => document.getElementById(id);
const charts = new Charts(at('charts'));
const completions = new Completions(at('run'), at('step'), at('search'), at('groups'));
const rubric = new Rubric(at('rubric-run'), at('lanes'));
const views = ['charts', 'completions', 'rubric'];

function show(name) {
  for (const view of views) {
    at(view).hidden = view !== name;
    at(`show-${view}`).setAttribute('aria-pressed', String(view === name));
  }
}
for (const view of views) at(`show-${view}`).addEventListener('click', () => show(view));
at('pick').addEventListener('submit', (e) => e.preventDefault());

async function update() {
  try {
    const runs = await get('api/runs');
    at('legend').replaceChildren(...runs.map((run, i) => {
      const item = element('li', '', `■ ${run.name}`);
      item.style.color = colours[i % colours.length];
      return item;
    }));
    const wrong = await get('api/health');
    at('health').hidden = wrong.length === 0;
    at('health').replaceChildren(...wrong.map((w) => element('li', '', `${w.run}: ${w.text}`)));
    completions.update(runs);
    if (at('rubric-run').options.length === 0) at('rubric-run').append(...runs.map((r, i) => new Option(r.name, i)));
    await rubric.update();
    let count = 0;
    for (let i = 0; i < runs.length; i++) count += await charts.update(i);
    charts.draw();
    at('status').textContent = `${count} records`;
  } catch (err) {
    at('status').textContent = `no answer: ${err.message}`;
  }
  setTimeout(update, 2000);
}
update();

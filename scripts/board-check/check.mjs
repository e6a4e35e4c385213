// Looks at `rubicon board` in a real Chromium through chromedriver: the numbers on the page are those of
// metrics.jsonl, new records arrive, hostile completions stay text, a narrow and a dark page fit, 50,000 steps stay
// responsive, and the console stays empty.   node scripts/board-check/check.mjs RUBICON [SCREENSHOTS]
// Needs chromium and chromedriver in PATH.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [binary, pictures] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'board-check-'));
const children = [];

const record = (step) => JSON.stringify({ step, reward: Math.sin(step / 9) + step / 100, reward_std: 0.1, 'completions/mean_length': 40 + (step % 7) }) + '\n';
const hostile = ['<script>window.hacked=1</script>', '<img src=x onerror="window.hacked=1">', '</pre><svg onload="window.hacked=1">', '\u202e"\'><b>bold</b>'];

function makeRun(name, steps) {
  const dir = join(work, name);
  mkdirSync(join(dir, 'completions'), { recursive: true });
  writeFileSync(join(dir, 'metrics.jsonl'), Array.from({ length: steps }, (_, i) => record(i + 1)).join(''));
  const lines = hostile.map((h, i) => ({ id: h, prompt: h, completion: h, rewards: { [h]: i / 4 }, advantage: i - 1.5, truncated: false, reason: h, parts: [{ name: h, weight: 1, credit: i / 4, reason: h }] }));
  writeFileSync(join(dir, 'completions', 'step_1.jsonl'), lines.map((l) => JSON.stringify({ ...l, id: hostile[0], prompt: hostile[1] }) + '\n').join(''));
  mkdirSync(join(dir, 'rubrics'));
  const set = (weights) => ({ criteria: Object.entries(weights).map(([id, weight]) => ({ id, weight, text: hostile[1] })) });
  const events = [{ step: 0, scope: 'global', version: 1, kind: 'init', set: set({ a: 2, b: 1 }) },
    { step: 20, scope: 'global', version: 2, kind: 'update', set: set({ a: 4, c: 1 }), ops: [{ kind: 'delete', before: ['b'], reason: hostile[0] }, { kind: 'create', after: ['c'], reason: hostile[2] }] }];
  writeFileSync(join(dir, 'rubrics', 'log.jsonl'), events.map((e) => JSON.stringify(e) + '\n').join(''));
  return dir;
}

// start runs a program until it has said something that the pattern finds, and returns the match.
function start(program, args, pattern) {
  return new Promise((found, fail) => {
    const child = spawn(program, args);
    children.push(child);
    let said = '';
    const listen = (b) => { said += b; const m = said.match(pattern); if (m) found(m[1]); };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('error', fail);
    child.on('exit', () => fail(new Error(`${program} ended: ${said}`)));
  });
}

async function wire(method, url, body) {
  const answer = await fetch(url, { method, body: body && JSON.stringify(body) });
  const { value } = await answer.json();
  if (!answer.ok) throw new Error(`${url}: ${value.message}`);
  return value;
}

async function browser(port) {
  const driver = `http://127.0.0.1:${port}/session`;
  const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--window-size=1200,900'];
  const { sessionId } = await wire('POST', driver, { capabilities: { alwaysMatch: { 'goog:chromeOptions': { args }, 'goog:loggingPrefs': { browser: 'ALL' } } } });
  const at = `${driver}/${sessionId}`;
  const run = (script, ...a) => wire('POST', `${at}/execute/sync`, { script, args: a });
  return {
    run,
    open: (url) => wire('POST', `${at}/url`, { url }),
    log: () => wire('POST', `${at}/se/log`, { type: 'browser' }),
    cdp: (cmd, params) => wire('POST', `${at}/goog/cdp/execute`, { cmd, params }),
    key: (value) => wire('POST', `${at}/actions`, { actions: [{ type: 'key', id: 'k', actions: [{ type: 'keyDown', value }, { type: 'keyUp', value }] }] }),
    close: () => wire('DELETE', at),
    picture: async (name) => pictures && writeFileSync(join(pictures, name), Buffer.from(await wire('GET', `${at}/screenshot`), 'base64')),
    async until(what, script, ...a) {
      for (let i = 0; i < 150; i++) {
        if (await run(script, ...a)) return;
        await new Promise((r) => setTimeout(r, 100));
      }
      throw new Error(`waited in vain until ${what}; the page says: ${await run('return document.body.innerText')}`);
    },
  };
}

const value = 'return document.querySelector(\'[data-metric="reward"] .value\')?.textContent';
const shows = `${value} === arguments[0]`;

async function numbersAndNews(page, url, dir) {
  await page.open(url);
  await page.until('the charts show the last value', shows, String(JSON.parse(record(60)).reward));
  await page.picture('board-charts.png');
  appendFileSync(join(dir, 'metrics.jsonl'), record(61));
  await page.until('a new record arrives', shows, String(JSON.parse(record(61)).reward));
}

async function hostileStaysText(page) {
  await page.run("document.getElementById('show-charts').focus()");
  await page.key('\uE004'); // Tab
  await page.key('\uE007'); // Enter
  await page.until('the keyboard opens the completions', "return document.querySelectorAll('article').length === arguments[0]", hostile.length);
  const texts = await page.run("return [...document.querySelectorAll('article .text')].map((e) => e.textContent)");
  assert.deepEqual(texts, hostile.toReversed()); // the best first
  assert.equal(await page.run('return window.hacked'), null);
  assert.equal(await page.run("return document.querySelectorAll('#completions script, #completions img, #completions svg, #completions b').length"), 0);
  await page.picture('board-completions.png');
  await page.run("const s = document.getElementById('search'); s.value = 'nowhere'; s.dispatchEvent(new Event('input'))");
  assert.equal(await page.run("return document.querySelectorAll('article').length"), 0);
}

async function rubricLanes(page) {
  await page.run("document.getElementById('show-rubric').click()");
  // a changes its weight (two spans), b dies at the update and c is born there
  assert.equal(await page.run("return document.querySelectorAll('.lane').length"), 4);
  assert.equal(await page.run("return document.querySelectorAll('.op').length"), 2);
  await page.run("document.querySelector('.op').dispatchEvent(new MouseEvent('click'))");
  assert.ok((await page.run("return document.querySelector('details[open]').innerText")).includes(hostile[0]));
  assert.equal(await page.run('return window.hacked'), null);
}

async function darkAndNarrow(page, url) {
  const paper = 'return getComputedStyle(document.body).backgroundColor';
  const colours = [];
  for (const theme of ['light', 'dark']) {
    await page.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    colours.push(await page.run(paper));
  }
  assert.deepEqual(colours, ['rgb(255, 255, 255)', 'rgb(13, 17, 23)']);
  await page.cdp('Emulation.setDeviceMetricsOverride', { width: 360, height: 740, deviceScaleFactor: 1, mobile: false });
  await page.open(url);
  await page.until('the narrow page has charts', "return document.querySelectorAll('canvas').length === 3");
  assert.ok(await page.run('return document.documentElement.scrollWidth <= 360'), 'the page is wider than a narrow screen');
  await page.picture('board-narrow.png');
}

async function longRun(page, url) {
  await page.open(url);
  await page.until('50,000 records are there', "return document.getElementById('status').textContent === '50000 records'");
  const longest = await page.run(`const t = performance.now(); document.getElementById('show-completions').click(); document.getElementById('show-charts').click(); document.body.offsetHeight; return performance.now() - t`);
  const bytes = await page.run("return Math.max(...performance.getEntriesByType('resource').filter((e) => e.name.includes('api/metrics')).map((e) => e.decodedBodySize))");
  console.log(`50,000 steps: ${bytes} bytes, switching views takes ${Math.round(longest)} ms`);
  assert.ok(bytes < 500_000, 'the server did not thin the records');
}

try {
  const [short, long] = [makeRun('short', 60), makeRun('long', 50000)];
  const port = await start('chromedriver', ['--port=0'], /on port (\d+)\./);
  const serve = (...runs) => start(binary, ['board', '--http', '127.0.0.1:0', ...runs], /(http:\S+)/);
  const [one, many] = [await serve(short), await serve(long)];
  const page = await browser(port);
  try {
    await numbersAndNews(page, one, short);
    await hostileStaysText(page);
    await rubricLanes(page);
    await darkAndNarrow(page, one);
    await longRun(page, many);
    assert.deepEqual(await page.log(), [], 'the console is not empty');
  } finally {
    await page.close();
  }
  console.log('board-check: all is well');
} finally {
  for (const child of children) child.removeAllListeners('exit').kill();
  rmSync(work, { recursive: true, force: true });
}

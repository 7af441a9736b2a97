// What somebody does with the extension, in one go: look, hover, fix one finding, save, type, change settings, use a notebook.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { withWorkbench, workspace } from './workbench.mjs';

const missingNone = (name) => `

class ${name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        '😀';\treturn grad_output * ctx.scale


def ${name.toLowerCase()}(x):
    return ${name}.apply(x, 2.0)
`;
const twoReturns = `import torch


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mode):
        ctx.mode = mode
        return x * 2

    @staticmethod
    def backward(ctx, grad_y):
        if ctx.mode == "skip":
            return None, None
        return grad_y * 2, None
`;
const fixed = (text) => text.replaceAll('* ctx.scale\n', '* ctx.scale, None\n');
const text = `import torch\n${missingNone('First')}${missingNone('Second')}`;
const cell = (source) => ({ cell_type: 'code', execution_count: null, id: 'a1', metadata: {}, outputs: [], source });
const notebook = (source) => JSON.stringify({
  cells: [cell(source)], metadata: { language_info: { name: 'python' } }, nbformat: 4, nbformat_minor: 5,
}, null, 1);

const className = (name) => `In${path.parse(name).name}`;
const inNotebook = (name) => `import torch\n${missingNone(className(name))}`;

const file = path.join(workspace, 'functions.py');
const read = () => fs.readFileSync(file, 'utf8');
fs.writeFileSync(file, text);
fs.writeFileSync(path.join(workspace, 'returns.py'), twoReturns);
for (const name of ['first.ipynb', 'second.ipynb']) {
  fs.writeFileSync(path.join(workspace, name), notebook(inNotebook(name)));
}
const documentation = fs.readFileSync(path.join(import.meta.dirname, '../../../docs/editors.md'), 'utf8');
const ownSetting = JSON.parse(/```json\n(\{\s*"\[python\]"[^`]*)```/.exec(documentation)[1]);

let changes = 0;

/** Write the settings of the workspace, and wait until the window has them: they change its title, too. */
async function set(code, settings) {
  const folder = path.join(workspace, '.vscode');
  const title = `settings ${++changes}`;
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'settings.json'), JSON.stringify({ ...settings, 'window.title': title }));
  await code.until(async () => (await code.page.title()).includes(title), `the window has the ${title}`);
}

/** Write a program, with the folders around it. */
function writeProgram(place, ...lines) {
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.writeFileSync(place, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 });
}

/** Make a `.venv` with ctxlint in a folder; returns the file that will hold the number of its process. */
function installInto(folder) {
  const pid = path.join(folder, 'pid');
  writeProgram(
    path.join(folder, '.venv/bin/ctxlint'), `echo $$ >'${pid}.new' && mv '${pid}.new' '${pid}'`, `exec '${process.env.CTXLINT}' "$@"`,
  );
  return pid;
}

const numberIn = (file) => Number(fs.readFileSync(file, 'utf8'));

/** Whether a process runs. */
function runs(number) {
  try {
    return process.kill(number, 0);
  } catch {
    return false;
  }
}

/** Make a folder with a file in which ctxlint finds something, but none that starts by itself: the settings name none. */
function folderOfItsOwn(name) {
  const folder = path.join(workspace, '..', name);
  fs.mkdirSync(path.join(folder, '.vscode'), { recursive: true });
  fs.writeFileSync(path.join(folder, '.vscode/settings.json'), JSON.stringify({ 'ctxlint.path': '' }));
  fs.writeFileSync(path.join(folder, 'functions.py'), text);
  return folder;
}

const started = Date.now();
const passed = (what) => console.log(`ok  ${what} (${((Date.now() - started) / 1000).toFixed(1)} s)`);

const [several, empty, full] = ['several.code-workspace', 'empty', 'full'].map((name) => path.join(workspace, '..', 'several', name));
fs.mkdirSync(empty, { recursive: true });
const pidOfSecond = installInto(full);
fs.writeFileSync(path.join(full, 'functions.py'), text);
fs.writeFileSync(several, JSON.stringify({ folders: [{ path: empty }, { path: full }], settings: { 'ctxlint.path': '' } }));

await withWorkbench(async (code) => {
  await code.open('functions.py', 'class First');
  await code.until(() => fs.existsSync(pidOfSecond), 'the one of the second folder is started');
  passed('of several folders, the first that has ctxlint decides');
}, undefined, undefined, { workspace: several });

await withWorkbench(async (code) => {
  const { page } = code;
  await code.open('functions.py', 'class First');
  const underlined = page.locator('.editor-instance .squiggly-error');
  await code.until(async () => (await underlined.count()) === 2, 'two stretches are underlined');
  await code.run('Problems: Focus on Problems View');
  await code.problems(
    /`backward` of `First` returns 1 gradient .*ctxlint CTX203 \[Ln 12, Col 15\]/,
    /ctxlint CTX203 \[Ln 27, Col 15\]/,
  );
  passed('findings with their codes and places, behind an emoji and a tab');

  const hinted = async () => (await code.shown()).some((line) => /return grad_output \* ctx\.scale ?x$/.test(line));
  await code.until(hinted, async () => (await code.shown()).join('\n'));
  passed('inlay hints');

  await page.locator('.editor-instance .view-line', { hasText: 'class First' }).locator('span', { hasText: 'First' }).last().hover();
  const hover = page.locator('.monaco-hover:visible', { hasText: 'contract with autograd' });
  await hover.waitFor();
  assert.match(await hover.innerText(), /1\s+scale\s+non-tensor\s+missing/);
  passed('hover shows the contract');

  await page.locator('.editor-instance .view-line', { hasText: 'class Second' }).click();
  const fixes = await code.quickFixes(27, 20, 'Disable for this line');
  await fixes.locator('.monaco-list-row', { hasText: 'Return `None` for `scale`' }).first().click();
  await code.problems(/Ln 12, Col 15/);
  assert.equal(read(), text);
  passed('one finding is fixed by hand');

  await code.save();
  assert.equal(read(), fixed(text));
  await code.until(async () => (await underlined.count()) === 0, 'no finding is left');
  passed('saving applies safe fixes');

  const [half, rest] = missingNone('Typed').split('(ctx, grad_output)');
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText(half);
  await code.problems(/CTX901.*\[Ln 41, /);
  await page.keyboard.insertText(`(ctx, grad_output)${rest}`);
  await code.problems(/CTX203 \[Ln 42, Col 15\]/);
  passed('a class is typed');

  await set(code, { 'ctxlint.inlayHints': false, 'ctxlint.fixOnSave': false });
  await code.until(async () => !(await hinted()), 'the hints go');
  await code.save();
  assert.ok(read().endsWith(missingNone('Typed')));
  passed('settings turn off hints and fixes on save');

  await set(code, { 'ctxlint.path': '${workspaceFolder}/nowhere' });
  await page.locator('.notification-toast', { hasText: 'nowhere server` does not start' }).waitFor();
  assert.equal(await page.locator('.notification-toast').count(), 1);
  await code.problems();
  await set(code, {});
  await code.problems(/CTX203/);
  passed('a path that leads nowhere is said, and one that leads to ctxlint starts it');

  const bundled = () => spawnSync('pgrep', ['-f', 'bundled/server.py server']).status === 0;
  const useBundled = { 'ctxlint.importStrategy': 'useBundled', 'ctxlint.interpreter': process.env.PYTHON };
  await set(code, { 'ctxlint.path': '', ...useBundled });
  await code.until(bundled, 'the one of the extension is started');
  await code.problems(/CTX203/);
  await set(code, {});
  await code.until(() => !bundled(), 'the one of the extension ends');
  await code.problems(/CTX203/);
  passed('the ctxlint that comes with the extension');

  const pid = installInto(workspace);
  await set(code, { 'ctxlint.path': '' });
  await code.until(() => fs.existsSync(pid), 'the one of .venv is started');
  await code.problems(/CTX203/);
  passed('ctxlint is found in .venv');

  const before = numberIn(pid);
  await code.run('ctxlint: Restart Server');
  await code.until(() => numberIn(pid) !== before && !runs(before), 'another one is started, and the first ends');
  await code.problems(/CTX203/);
  passed('a command restarts ctxlint');

  await code.run('ctxlint: Show Logs');
  await code.until(async () => (await code.channel()) === 'ctxlint', async () => `the output of ctxlint is shown: ${await code.channel()}`);
  await code.until(async () => {
    await code.run('Problems: Focus on Problems View');
    return page.locator('.markers-panel').waitFor({ timeout: 5000 }).then(() => true, () => false);
  }, 'the panel of problems is shown again');
  await code.problems(/CTX203/);
  passed('a command shows the logs');

  await code.run('ctxlint: Print Debug Information');
  const { version } = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, '../package.json'), 'utf8'));
  const printed = [`"extension": "${version}"`, `"command": "${path.join(workspace, '.venv/bin/ctxlint')}"`, '"running": true', '"trusted": true'];
  const lacking = async () => {
    const lines = await code.shown();
    return printed.filter((each) => !lines.some((line) => line.includes(each)));
  };
  await code.until(async () => (await lacking()).length === 0, async () => `it is printed: ${await lacking()}`);
  await code.run('View: Revert and Close Editor');
  await page.locator('.editor-instance .view-line', { hasText: 'class Typed' }).waitFor();
  passed('a command prints what a report of a bug needs');

  await page.locator('.editor-instance .view-line').last().click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('# slow');
  await code.problems(/CTX203/);
  const server = numberIn(pid);
  process.kill(server, 'SIGSTOP');
  try {
    await code.save();
    await page.locator('.notification-toast', { hasText: 'functions.py was saved without fixes' }).waitFor();
  } finally {
    process.kill(server, 'SIGCONT');
  }
  assert.ok(read().endsWith(`${missingNone('Typed')}# slow`));
  passed('a save whose fixes come too late is reported');

  const found = { 'ctxlint.path': '' };
  await set(code, { ...found, ...ownSetting, 'ctxlint.fixOnSave': false });
  await page.keyboard.insertText('# saved again');
  await code.problems(/CTX203/);
  await code.save();
  assert.ok(read().endsWith(`${fixed(missingNone('Typed'))}# slow# saved again`));
  await code.problems();
  passed('editor.codeActionsOnSave of the documentation does the same');

  await code.open('returns.py', 'class Gate');
  await page.locator('.editor-instance .view-line', { hasText: 'class Gate' }).locator('span', { hasText: 'Gate' }).last().hover();
  const columns = page.locator('.monaco-hover:visible', { hasText: 'contract with autograd' });
  await columns.waitFor();
  assert.match(await columns.innerText(), /gradient, line 13\s+gradient, line 14\s+0\s+x\s+tensor\s+None\s+grad_y \* 2\s+1\s+mode/);
  passed('hover shows a column for each return');

  for (const [name, way, onSave] of [
    ['first.ipynb', 'ctxlint.fixOnSave', { 'ctxlint.fixOnSave': true }],
    ['second.ipynb', 'notebook.codeActionsOnSave', { ...ownSetting, 'ctxlint.fixOnSave': false }],
  ]) {
    const place = path.join(workspace, name);
    // It is not changed before it is fixed, and while the editor writes, the file is empty for a moment.
    const saved = () => {
      const text = fs.readFileSync(place, 'utf8');
      return text.endsWith('}') || text.endsWith('}\n') ? [JSON.parse(text).cells[0].source].flat().join('') : '';
    };
    await set(code, { ...found, ...onSave });
    await code.open(name, `class ${className(name)}`);
    await code.problems(/CTX203 \[Ln 12, Col 15\]/);
    assert.equal(await page.locator('.notebookOverlay:visible .squiggly-error').count(), 1);
    await page.locator('.notebookOverlay:visible .view-line', { hasText: 'import torch' }).click();
    await page.keyboard.press('Control+KeyS');
    await code.until(() => saved().includes('None'), () => `the notebook is fixed: ${saved()}`);
    assert.equal(saved(), fixed(inNotebook(name)));
    passed(`a notebook is fixed when it is saved, by ${way}`);
  }
});

// Without a copy in the extension, and without one on the PATH of a login shell.
const machine = path.join(process.env.VSCODE, 'user/Machine/settings.json');
fs.writeFileSync(machine, '{}');
for (const name of fs.readdirSync(path.join(process.env.VSCODE, 'extensions'))) {
  fs.rmSync(path.join(process.env.VSCODE, 'extensions', name, 'bundled'), { recursive: true, force: true });
}
const { SELECTED_PYTHON: python } = process.env;
const selected = path.dirname(python);
writeProgram(python, `echo "$@" >'${selected}/given'`, `ln -s '${process.env.CTXLINT}' '${selected}/ctxlint'`);

await withWorkbench(async (code) => {
  await code.open('functions.py', 'class First');
  const message = code.page.locator('.notification-toast', { hasText: `ctxlint is not installed` });
  assert.match(await message.innerText(), new RegExp(`in ${python}`));
  await message.getByText('Install', { exact: true }).click();
  await code.page.locator('.editor-instance .squiggly-error').first().waitFor();
  assert.equal(fs.readFileSync(path.join(selected, 'given'), 'utf8'), '-m pip install ctxlint[lsp]\n');
  passed('a button installs ctxlint into the selected environment');
}, undefined, undefined, { folder: folderOfItsOwn('uninstalled') });

fs.rmSync(selected, { recursive: true });
const user = path.join(process.env.VSCODE, 'user/User/settings.json');
fs.writeFileSync(user, JSON.stringify({ ...JSON.parse(fs.readFileSync(user, 'utf8')), 'security.workspace.trust.enabled': true }));
const untrusted = folderOfItsOwn('untrusted');
const pidOfUntrusted = installInto(untrusted);

await withWorkbench(async (code) => {
  const { page } = code;
  await code.open('functions.py', 'class First');
  await page.locator('.notification-toast', { hasText: 'ctxlint is not installed' }).waitFor();
  assert.ok(!fs.existsSync(pidOfUntrusted));
  await code.run('Workspaces: Manage Workspace Trust');
  const trust = page.locator('.workspace-trust-editor').getByText('Trust', { exact: true }).first();
  await code.until(async () => {
    await trust.click({ timeout: 5_000 }).catch(() => {}); // the editor may draw it again meanwhile
    return fs.existsSync(pidOfUntrusted);
  }, 'the one of .venv is started');
  passed('nothing in a folder is started before it is trusted');
}, undefined, undefined, { folder: untrusted });

// The window of VS Code, as somebody in front of it uses it.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { chromium } = createRequire(path.join(process.env.TOOLS, 'package.json'))('playwright-core');
const MILLISECONDS = 60_000;

export const workspace = process.env.WORKSPACE;

/** Open the window on the folder, or what else `opened` names, let `work` use it, and close it, whatever happens. */
export async function withWorkbench(work, view = { width: 1280, height: 800 }, options = {}, opened = { folder: workspace }) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: view, ...options });
  page.setDefaultTimeout(MILLISECONDS);
  try {
    await page.goto(`${process.env.ADDRESS}/?${new URLSearchParams(opened)}`);
    await page.waitForSelector('.monaco-workbench');
    await work(new Workbench(page));
  } catch (error) {
    const picture = path.join(import.meta.dirname, 'tools', 'failure.png');
    fs.mkdirSync(path.dirname(picture), { recursive: true });
    await page.screenshot({ path: picture });
    console.error(`${error.stack}\nWhat the window showed: ${picture}`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

class Workbench {
  constructor(page) {
    this.page = page;
  }

  /** Open a file of the workspace from the list of files, and wait until its text is there. */
  async open(name, text) {
    await this.page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).dblclick();
    await this.page.locator('.view-line', { hasText: text }).first().waitFor();
  }

  /** Run a command by the name it has in the palette, which lists those that were there when it was opened. */
  async run(command) {
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: command }).first();
    await this.until(async () => {
      await this.ask('F1', `>${command}`);
      const listed = await row.waitFor({ timeout: MILLISECONDS / 6 }).then(() => true, () => false);
      if (!listed) await this.page.keyboard.press('Escape');
      return listed;
    }, `the palette has ${command}`);
    await this.page.keyboard.press('Enter');
  }

  /** Fill in the input that a key opens, as often as it takes: a key is lost that comes while the focus moves. */
  async ask(key, text) {
    const input = this.page.locator('.quick-input-widget input');
    await this.until(async () => {
      await this.page.keyboard.press(key);
      return input.fill(text, { timeout: MILLISECONDS / 12 }).then(() => true, () => false);
    }, `${key} opens an input`);
  }

  /** Put the cursor behind the `column - 1`th character of a line. */
  async goto(line, column) {
    await this.ask('Control+KeyG', `:${line}:${column}`);
    await this.page.keyboard.press('Enter');
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
  }

  /** Ask for the quick fixes at a place, as often as it takes: a key is lost that comes before the editor has the focus again. */
  async quickFixes(line, column, text) {
    const menu = this.page.locator('.action-widget', { hasText: text });
    await this.until(async () => {
      await this.page.keyboard.press('Escape');
      await this.goto(line, column);
      await this.page.locator('.editor-instance .monaco-editor.focused').waitFor();
      await this.page.keyboard.press('Control+Period');
      return menu.waitFor({ timeout: MILLISECONDS / 6 }).then(() => true, () => false);
    }, `the quick fixes have ${text}`);
    return menu;
  }

  /** Save the file in the editor, which was changed, and wait until all of it is written. */
  async save() {
    await this.page.locator('.tab.active.dirty').waitFor();
    await this.page.keyboard.press('Control+KeyS');
    await this.page.locator('.tab.active:not(.dirty)').waitFor();
  }

  /** The lines of the editor as they are shown, with inlay hints. */
  async shown() {
    const lines = await this.page.locator('.editor-instance .view-lines > .view-line').evaluateAll((all) =>
      all.map((line) => [Number.parseInt(line.style.top, 10), line.textContent]));
    return lines.sort(([one], [other]) => one - other).map(([, text]) => text.replace(/\u00a0/g, ' '));
  }

  /** The name of the channel whose output the panel shows; empty if it shows something else. */
  async channel() {
    const chosen = this.page.locator('.part.panel select.monaco-select-box');
    const names = await chosen.evaluateAll((all) => all.map((each) => each.selectedOptions[0]?.textContent ?? ''));
    return names.at(-1) ?? '';
  }

  /** Wait until the panel of problems lists one that fits each pattern, in order, and no other. */
  async problems(...patterns) {
    const rows = this.page.locator('.markers-panel .monaco-list-row:has(.codicon-error, .codicon-warning, .codicon-info)');
    const listed = async () => (await rows.allInnerTexts()).map((row) => row.replace(/\s+/g, ' ').trim());
    await this.until(async () => {
      const all = await listed();
      return all.length === patterns.length && patterns.every((pattern, index) => pattern.test(all[index]));
    }, async () => `problems like ${patterns.join(', ')}, but: ${(await listed()).join('\n')}`);
  }

  /** Ask for something again and again until it is true. `what` says what was waited for. */
  async until(condition, what) {
    const end = Date.now() + MILLISECONDS;
    while (!(await condition())) {
      if (Date.now() > end) {
        throw new Error(`it never came to this: ${typeof what === 'string' ? what : await what()}`);
      }
      await this.page.waitForTimeout(100);
    }
  }
}

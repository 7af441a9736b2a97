// The picture in the README: a class with two findings, what each gradient is for, and the contract under the mouse.

import fs from 'node:fs';
import path from 'node:path';
import { withWorkbench, workspace } from './workbench.mjs';

const picture = path.resolve(import.meta.dirname, '../../../docs/editor.png');
const text = `"""Exponentials.

soften(x) is exp(x / 2).
"""

import torch


def soften(x):
    return ScaledExp.apply(x, 0.5)


class ScaledExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(x * scale)
        ctx.scale = scale
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y * ctx.scale
`;
const settings = {
  'breadcrumbs.enabled': false,
  'editor.fontSize': 15,
  'editor.glyphMargin': false,
  'editor.lightbulb.enabled': 'off',
  'editor.occurrencesHighlight': 'off',
  'editor.renderLineHighlight': 'none',
  'editor.scrollBeyondLastLine': false,
  'editor.stickyScroll.enabled': false,
  'workbench.activityBar.location': 'hidden',
  'workbench.colorCustomizations': { 'editorInlayHint.foreground': '#667085' },
  'workbench.layoutControl.enabled': false,
};
fs.writeFileSync(path.join(workspace, 'scaled_exp.py'), text);
fs.mkdirSync(path.join(workspace, '.vscode'));
fs.writeFileSync(path.join(workspace, '.vscode', 'settings.json'), JSON.stringify(settings));

await withWorkbench(async (code) => {
  const { page } = code;
  await code.open('scaled_exp.py', 'class ScaledExp');
  await code.run('View: Close Primary Side Bar');
  await code.run('Problems: Focus on Problems View');
  await code.problems(/CTX203/, /CTX301/);
  const panel = await page.locator('.part.panel').boundingBox();
  await page.mouse.move(panel.x + panel.width / 2, panel.y - 3); // its border
  await page.mouse.down();
  await page.mouse.move(panel.x + panel.width / 2, 555, { steps: 5 });
  await page.mouse.up();
  await code.until(async () => (await code.shown()).some((line) => /ctx\.scale ?x$/.test(line)), 'the hints are there');
  await page.locator('.view-line', { hasText: 'class ScaledExp' }).locator('span', { hasText: 'ScaledExp' }).last().hover();
  await page.locator('.monaco-hover:visible', { hasText: 'contract with autograd' }).waitFor();
  await page.waitForTimeout(2000); // until nothing fades in any more
  await page.screenshot({ path: picture });
}, { width: 1120, height: 715 }, { deviceScaleFactor: 1.5 });

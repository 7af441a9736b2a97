// Safe fixes on save, as the setting `ctxlint.fixOnSave` has it.

import * as vscode from 'vscode';

const FIX_ALL = 'source.fixAll.ctxlint';
const MILLISECONDS = 1300; // VS Code waits 1.5 s for what happens before a save, and then saves without it, silently

/** Fix a text document before it is saved. */
export function fixOnSave(event: vscode.TextDocumentWillSaveEvent, log?: vscode.OutputChannel): void {
  const { document, reason } = event;
  if (document.languageId === 'python' && isWanted(document.uri, reason)) {
    event.waitUntil(inTime(edits(document, FIX_ALL), document.uri, log)
      .then((found) => found.flatMap((edit) => edit.get(document.uri))));
  }
}

/** Fix all cells of a notebook before it is saved. */
export function fixNotebookOnSave(event: vscode.NotebookDocumentWillSaveEvent, log?: vscode.OutputChannel): void {
  const { notebook, reason } = event;
  const cell = notebook.getCells().find((each) => each.document.languageId === 'python');
  if (cell !== undefined && isWanted(notebook.uri, reason)) {
    event.waitUntil(inTime(edits(cell.document, `notebook.${FIX_ALL}`), notebook.uri, log)
      .then((found) => found[0] ?? new vscode.WorkspaceEdit()));
  }
}

/** Let VS Code itself apply the fixes on save: it waits for them as long as it takes. */
export async function setUpFixOnSave(): Promise<void> {
  const target = vscode.ConfigurationTarget.Global;
  const python = vscode.workspace.getConfiguration('editor', { languageId: 'python' });
  const own = python.inspect<object>('codeActionsOnSave')?.globalLanguageValue;
  await python.update('codeActionsOnSave', { ...own, [FIX_ALL]: 'explicit' }, target, true);
  const notebook = vscode.workspace.getConfiguration('notebook');
  const cells = notebook.inspect<object>('codeActionsOnSave')?.globalValue;
  await notebook.update('codeActionsOnSave', { ...cells, [`notebook.${FIX_ALL}`]: 'explicit' }, target);
}

// What is saved after a delay may still be in the middle of a thought.
function isWanted(uri: vscode.Uri, reason: vscode.TextDocumentSaveReason): boolean {
  const onSave = vscode.workspace.getConfiguration('ctxlint', uri).get<boolean>('fixOnSave');
  return onSave === true && reason === vscode.TextDocumentSaveReason.Manual;
}

/** What was found; nothing, and a word about it, where it is not there before VS Code saves without it. */
function inTime<Found>(work: Promise<Found[]>, uri: vscode.Uri, log?: vscode.OutputChannel): Promise<Found[]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const name = vscode.workspace.asRelativePath(uri);
      log?.appendLine(`${name} was saved without fixes: the server did not answer in ${MILLISECONDS} ms`);
      void vscode.window.showWarningMessage(
        `ctxlint: ${name} was saved without fixes, which came too late. VS Code's own setting waits for them.`,
        'Use editor.codeActionsOnSave',
      ).then((chosen) => (chosen === undefined ? undefined : setUpFixOnSave()));
      resolve([]);
    }, MILLISECONDS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

async function edits(document: vscode.TextDocument, kind: string): Promise<vscode.WorkspaceEdit[]> {
  const everything = new vscode.Range(0, 0, document.lineCount, 0);
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider', document.uri, everything, kind, 1,
  );
  return actions.flatMap((action) => (action.edit === undefined ? [] : [action.edit]));
}

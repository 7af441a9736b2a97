// Safe fixes on save, as the setting `ctxlint.fixOnSave` has it.

import * as vscode from 'vscode';

const FIX_ALL = 'source.fixAll.ctxlint';

/** Mend a text document before it is saved. */
export function fixOnSave(event: vscode.TextDocumentWillSaveEvent): void {
  const { document, reason } = event;
  if (document.languageId === 'python' && isWanted(document.uri, reason)) {
    event.waitUntil(edits(document, FIX_ALL).then((found) => found.flatMap((edit) => edit.get(document.uri))));
  }
}

/** Mend all cells of a notebook before it is saved. */
export function fixNotebookOnSave(event: vscode.NotebookDocumentWillSaveEvent): void {
  const { notebook, reason } = event;
  const cell = notebook.getCells().find((each) => each.document.languageId === 'python');
  if (cell !== undefined && isWanted(notebook.uri, reason)) {
    event.waitUntil(edits(cell.document, `notebook.${FIX_ALL}`).then((found) => found[0] ?? new vscode.WorkspaceEdit()));
  }
}

// What is saved after a delay may still be in the middle of a thought.
function isWanted(uri: vscode.Uri, reason: vscode.TextDocumentSaveReason): boolean {
  const onSave = vscode.workspace.getConfiguration('ctxlint', uri).get<boolean>('fixOnSave');
  return onSave === true && reason === vscode.TextDocumentSaveReason.Manual;
}

async function edits(document: vscode.TextDocument, kind: string): Promise<vscode.WorkspaceEdit[]> {
  const everything = new vscode.Range(0, 0, document.lineCount, 0);
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider', document.uri, everything, kind, 1,
  );
  return actions.flatMap((action) => (action.edit === undefined ? [] : [action.edit]));
}

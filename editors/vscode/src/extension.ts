// Starts `ctxlint server` and lets it speak; everything it says comes through the Language Server Protocol.

import * as vscode from 'vscode';
import { LanguageClient, type LanguageClientOptions } from 'vscode-languageclient/node';
import { fixNotebookOnSave, fixOnSave } from './saving';
import { expanded } from './places';

const SECTION = 'ctxlint';
const OPTIONS: LanguageClientOptions = {
  documentSelector: [
    { scheme: 'file', language: 'python' },
    { scheme: 'untitled', language: 'python' },
    { notebook: 'jupyter-notebook', language: 'python' },
  ],
};

/** A client that is silent while it starts and stops: what is wrong then is said once, by `complain`. */
class Client extends LanguageClient {
  isUp = false;

  override error(message: string, data?: unknown, showNotification?: boolean | 'force'): void {
    super.error(message, data, this.isUp && showNotification);
  }
}

let client: Client | undefined;
let output: vscode.OutputChannel | undefined; // outlives the servers: it says why one did not start
let turn: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand('ctxlint.restart', restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration(`${SECTION}.path`)) {
        await restart();
      }
    }),
    vscode.workspace.onWillSaveTextDocument(fixOnSave),
    vscode.workspace.onWillSaveNotebookDocument(fixNotebookOnSave),
  );
  await restart();
}

export function deactivate(): Promise<void> {
  return inTurn(stop);
}

function restart(): Promise<void> {
  return inTurn(async () => {
    await stop();
    await start();
  });
}

// Starts and stops wait for each other: two servers would say everything twice.
function inTurn(work: () => Promise<void>): Promise<void> {
  turn = turn.then(work, work);
  return turn;
}

async function start(): Promise<void> {
  const path = vscode.workspace.getConfiguration(SECTION).get<string>('path') || 'ctxlint';
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const command = expanded(path, folder);
  output ??= vscode.window.createOutputChannel('ctxlint');
  const server = { command, args: ['server'], options: folder ? { cwd: folder } : {} };
  client = new Client(SECTION, 'ctxlint', server, { ...OPTIONS, outputChannel: output });
  try {
    await client.start();
    client.isUp = true;
  } catch {
    void complain(command); // the channel has the reason
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running !== undefined) {
    running.isUp = false;
  }
  if (running?.needsStop()) {
    await running.dispose();
  }
}

async function complain(command: string): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(
    `ctxlint: \`${command} server\` does not start. Run \`pip install "ctxlint[lsp]"\`, or say in the settings where it is.`,
    'Open Settings',
    'Show Output',
  );
  if (chosen === 'Open Settings') {
    await vscode.commands.executeCommand('workbench.action.openSettings', `${SECTION}.path`);
  } else if (chosen === 'Show Output') {
    output?.show();
  }
}

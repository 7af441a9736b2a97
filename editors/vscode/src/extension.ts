// Starts `ctxlint server` and lets it speak; everything it says comes through the Language Server Protocol.

import * as vscode from 'vscode';
import { LanguageClient, type LanguageClientOptions } from 'vscode-languageclient/node';
import { find, type Found, interpreter, onInterpreter } from './discovery';
import { fixNotebookOnSave, fixOnSave, setUpFixOnSave } from './saving';

const SECTION = 'ctxlint';
const DOCUMENTS = [
  { scheme: 'file', language: 'python' },
  { scheme: 'untitled', language: 'python' },
  { notebook: 'jupyter-notebook', language: 'python' },
];
const OPTIONS: LanguageClientOptions = { documentSelector: DOCUMENTS };
const PACKAGE = 'ctxlint[lsp]';
const INSTALL = `pip install "${PACKAGE}"`;

/** A client that is silent while it starts and stops: what is wrong then is said once, by `complain`. */
class Client extends LanguageClient {
  isUp = false;

  override error(message: string, data?: unknown, showNotification?: boolean | 'force'): void {
    super.error(message, data, this.isUp && showNotification);
  }
}

let client: Client | undefined;
let found: Found | undefined;
let output: vscode.OutputChannel | undefined; // outlives the servers: it says why one did not start
let status: vscode.LanguageStatusItem | undefined;
let turn: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  output = vscode.window.createOutputChannel('ctxlint');
  status = vscode.languages.createLanguageStatusItem('ctxlint', DOCUMENTS);
  status.name = 'ctxlint';
  status.command = { title: 'Show Logs', command: 'ctxlint.showLogs' };
  context.subscriptions.push(
    output,
    status,
    vscode.commands.registerCommand('ctxlint.restart', restart),
    vscode.commands.registerCommand('ctxlint.showLogs', () => output?.show()),
    vscode.commands.registerCommand('ctxlint.fixAll', fixAll),
    vscode.commands.registerCommand('ctxlint.setUpFixOnSave', setUpFixOnSave),
    vscode.commands.registerCommand('ctxlint.debugInformation', () => debugInformation(context)),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (['path', 'importStrategy', 'interpreter', 'enable', 'logFile'].some((each) => event.affectsConfiguration(`${SECTION}.${each}`))) {
        await restart();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeWorkspaceFolders(() => (found === undefined ? restart() : undefined)),
    vscode.workspace.onWillSaveTextDocument((event) => fixOnSave(event, output)),
    vscode.workspace.onWillSaveNotebookDocument((event) => fixNotebookOnSave(event, output)),
  );
  void onInterpreter(context, restart);
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
  if (!vscode.workspace.getConfiguration(SECTION).get<boolean>('enable', true)) {
    show('off', 'ctxlint.enable is false');
    return;
  }
  const folders = vscode.workspace.workspaceFolders ?? [];
  const [folder] = folders;
  found = await find(folders);
  if (found === undefined) {
    show('not found', 'ctxlint is not installed', vscode.LanguageStatusSeverity.Error);
    void offerToInstall(folder);
    return;
  }
  const { command, args, from } = found;
  const server = { command, args: [...args, 'server'], options: folder ? { cwd: folder.uri.fsPath } : {} };
  const initializationOptions = { logFile: vscode.workspace.getConfiguration(SECTION).get<string>('logFile') };
  client = new Client(SECTION, 'ctxlint', server, { ...OPTIONS, initializationOptions, outputChannel: output! });
  try {
    await client.start();
    client.isUp = true;
    show('ready', `${command}, from ${from}`);
  } catch {
    show('failed', `\`${command} server\` does not start`, vscode.LanguageStatusSeverity.Error);
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

function show(text: string, detail: string, severity = vscode.LanguageStatusSeverity.Information): void {
  if (status !== undefined) {
    Object.assign(status, { text: `ctxlint: ${text}`, detail, severity });
  }
}

async function complain(command: string): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(
    `ctxlint: \`${command} server\` does not start. Run \`${INSTALL}\`, or say in the settings where it is.`,
    'Open Settings',
    'Show Output',
  );
  if (chosen === 'Open Settings') {
    await openSettings();
  } else if (chosen === 'Show Output') {
    output?.show();
  }
}

async function offerToInstall(folder: vscode.WorkspaceFolder | undefined): Promise<void> {
  const python = await interpreter(folder);
  const buttons = [...(python === undefined ? [] : ['Install']), 'Open Settings'];
  const where = python === undefined ? '' : ` in ${python}`;
  const chosen = await vscode.window.showErrorMessage(
    `ctxlint is not installed. Run \`${INSTALL}\`${where}, or say in the settings where it is.`, ...buttons,
  );
  if (chosen === 'Install') {
    await install(python!);
  } else if (chosen === 'Open Settings') {
    await openSettings();
  }
}

// A task, not a line for a shell: each shell has its own quotes.
async function install(python: string): Promise<void> {
  const run = new vscode.ProcessExecution(python, ['-m', 'pip', 'install', PACKAGE]);
  const task = new vscode.Task({ type: SECTION }, vscode.TaskScope.Global, 'Install', SECTION, run, []);
  const ended = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
    if (execution.task.source === SECTION) {
      ended.dispose();
      return exitCode === 0 ? restart() : undefined;
    }
  });
  await vscode.tasks.executeTask(task);
}

function openSettings(): Thenable<unknown> {
  return vscode.commands.executeCommand('workbench.action.openSettings', `${SECTION}.path`);
}

function fixAll(): Thenable<unknown> {
  return vscode.commands.executeCommand('editor.action.codeAction', {
    kind: 'source.fixAll.ctxlint', apply: 'first', preferred: false,
  });
}

async function debugInformation(context: vscode.ExtensionContext): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  const content = JSON.stringify({
    extension: context.extension.packageJSON.version,
    editor: `${vscode.env.appName} ${vscode.version}`,
    system: `${process.platform} ${process.arch}`,
    server: found,
    running: client?.isUp ?? false,
    capabilities: client?.initializeResult?.serverInfo,
    interpreter: await interpreter(folder),
    trusted: vscode.workspace.isTrusted,
    settings: vscode.workspace.getConfiguration(SECTION),
  }, null, 2);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'json', content }));
}

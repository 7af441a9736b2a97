// Which ctxlint is started: of the settings, of the selected Python environment, of the folder, of the PATH.

import { existsSync } from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import { expanded } from './places';

const WINDOWS = process.platform === 'win32';
const PROGRAM = WINDOWS ? 'ctxlint.exe' : 'ctxlint';

/** A program with its first arguments, and where it was found. */
export interface Found {
  command: string;
  args: string[];
  from: string;
}

/** The ctxlint for a folder; undefined where there is none. */
export async function find(folder: vscode.WorkspaceFolder | undefined): Promise<Found | undefined> {
  return ofSettings(folder) ?? (await ofInterpreter(folder)) ?? ofFolder(folder) ?? ofPath();
}

/** The interpreter that is selected in the Python extension; undefined without the extension. */
export async function interpreter(folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension('ms-python.python');
  if (extension === undefined || !vscode.workspace.isTrusted) {
    return undefined;
  }
  try {
    const { environments } = await extension.activate();
    const selected = environments?.getActiveEnvironmentPath?.(folder?.uri);
    const resolved = selected && (await environments.resolveEnvironment(selected));
    return resolved?.executable.uri?.fsPath;
  } catch {
    return undefined;
  }
}

/** Call `changed` whenever another interpreter is selected. */
export async function onInterpreter(context: vscode.ExtensionContext, changed: () => unknown): Promise<void> {
  try {
    const { environments } = (await vscode.extensions.getExtension('ms-python.python')?.activate()) ?? {};
    context.subscriptions.push(environments?.onDidChangeActiveEnvironmentPath?.(changed) ?? { dispose() {} });
  } catch {
    return;
  }
}

function ofSettings(folder: vscode.WorkspaceFolder | undefined): Found | undefined {
  const given = vscode.workspace.getConfiguration('ctxlint', folder?.uri).get<string | string[]>('path') ?? [];
  const paths = (typeof given === 'string' ? [given] : given)
    .filter((each) => each !== '').map((each) => expanded(each, folder?.uri.fsPath));
  const command = paths.find((each) => !path.isAbsolute(each) || existsSync(each)) ?? paths[0];
  return command === undefined ? undefined : { command, args: [], from: '`ctxlint.path`' };
}

async function ofInterpreter(folder: vscode.WorkspaceFolder | undefined): Promise<Found | undefined> {
  const python = await interpreter(folder);
  const command = python && path.join(path.dirname(python), PROGRAM);
  return command && existsSync(command) ? { command, args: [], from: 'the selected Python environment' } : undefined;
}

// Nothing of a folder that is not trusted is started.
function ofFolder(folder: vscode.WorkspaceFolder | undefined): Found | undefined {
  for (const name of folder !== undefined && vscode.workspace.isTrusted ? ['.venv', 'venv'] : []) {
    const command = path.join(folder!.uri.fsPath, name, WINDOWS ? 'Scripts' : 'bin', PROGRAM);
    if (existsSync(command)) {
      return { command, args: [], from: `${name} of the folder` };
    }
  }
  return undefined;
}

function ofPath(): Found | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((each) => path.isAbsolute(each));
  const command = folders.map((each) => path.join(each, PROGRAM)).find((each) => existsSync(each));
  return command === undefined ? undefined : { command, args: [], from: 'the PATH' };
}

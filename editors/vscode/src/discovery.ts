// Which ctxlint is started: of the settings, of the selected Python environment, of the folder, of the PATH, or the one that
// comes with the extension.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import * as vscode from 'vscode';
import { expanded } from './places';

const WINDOWS = process.platform === 'win32';
const BUNDLED = path.join(__dirname, '..', 'bundled');
const PROGRAM = WINDOWS ? 'ctxlint.exe' : 'ctxlint';

/** A program with its first arguments, and where it was found. */
export interface Found {
  command: string;
  args: string[];
  from: string;
}

/** The ctxlint of the first folder that has one, else the one that all of them have; undefined where there is none. */
export async function find(folders: readonly vscode.WorkspaceFolder[]): Promise<Found | undefined> {
  const all = folders.length > 0 ? folders : [undefined];
  for (const folder of all) {
    const own = await ofItsOwn(folder);
    if (own !== undefined) {
      return own;
    }
  }
  return ofPath() ?? (await bundled(all[0]));
}

async function ofItsOwn(folder: vscode.WorkspaceFolder | undefined): Promise<Found | undefined> {
  const given = ofSettings(folder);
  if (given !== undefined || settings(folder).get('importStrategy') === 'useBundled') {
    return given ?? (await bundled(folder));
  }
  return (await ofInterpreter(folder)) ?? ofFolder(folder);
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
  const command = firstPath('path', folder);
  return command === undefined ? undefined : { command, args: [], from: '`ctxlint.path`' };
}

function settings(folder: vscode.WorkspaceFolder | undefined): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration('ctxlint', folder?.uri);
}

/** The first path of a setting that exists; the first one where none does. */
function firstPath(name: string, folder: vscode.WorkspaceFolder | undefined): string | undefined {
  const given = settings(folder).get<string | string[]>(name) ?? [];
  const paths = (typeof given === 'string' ? [given] : given)
    .filter((each) => each !== '').map((each) => located(expanded(each, folder?.uri.fsPath), folder)).filter(isTrusted);
  return paths.find((each) => existsSync(each)) ?? paths[0];
}

// A name is looked up here: on Windows, the system would look into the folder first.
function located(given: string, folder: vscode.WorkspaceFolder | undefined): string {
  if (!/[/\\]/.test(given)) {
    return onPath(given) ?? (WINDOWS ? onPath(`${given}.exe`) : undefined) ?? given;
  }
  return path.resolve(folder?.uri.fsPath ?? homedir(), given);
}

// The user's own settings may name a program of whatever folder is open.
function isTrusted(program: string): boolean {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return vscode.workspace.isTrusted || (path.isAbsolute(program) && !folders.some((each) => isInside(program, each.uri.fsPath)));
}

function isInside(program: string, folder: string): boolean {
  const relative = path.relative(folder, program);
  return !path.isAbsolute(relative) && relative.split(path.sep)[0] !== '..';
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
  const command = onPath(PROGRAM);
  return command === undefined ? undefined : { command, args: [], from: 'the PATH' };
}

function onPath(program: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((each) => path.isAbsolute(each) && isTrusted(each));
  return folders.map((each) => path.join(each, program)).find((each) => existsSync(each));
}

async function bundled(folder: vscode.WorkspaceFolder | undefined): Promise<Found | undefined> {
  const python = existsSync(path.join(BUNDLED, 'libs'))
    ? firstPath('interpreter', folder) ?? (await interpreter(folder)) ?? onPath(WINDOWS ? 'python.exe' : 'python3')
    : undefined;
  const args = ['-I', path.join(BUNDLED, 'server.py')];
  return python === undefined ? undefined : { command: python, args, from: 'the extension' };
}

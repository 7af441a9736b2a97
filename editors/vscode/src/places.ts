// Paths as people write them in settings.

import { homedir } from 'node:os';

/** A path with `${workspaceFolder}`, `${userHome}`, `${env:NAME}` and a leading `~` replaced by what they stand for. */
export function expanded(path: string, folder: string | undefined): string {
  return path
    .replace(/^~(?=$|[/\\])/, () => homedir())
    .replace(/\$\{userHome\}/g, () => homedir())
    .replace(/\$\{workspaceFolder\}/g, (whole) => folder ?? whole)
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => process.env[name] ?? '');
}

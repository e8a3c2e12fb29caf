/** Programs of this machine. */

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The first program of this name on the PATH. */
export function onPath(name: string): string | undefined {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name));
  return candidates.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

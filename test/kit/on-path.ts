/** Finds programs that are installed on this machine. */

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Returns the path of the first executable with this name in the folders of PATH, or of another list, or `undefined`. */
export function onPath(name: string, folders = process.env.PATH ?? ''): string | undefined {
  const candidates = folders.split(delimiter).map((folder) => join(folder, name));
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

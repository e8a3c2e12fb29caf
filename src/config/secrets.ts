/** Secrets that stand in a file of their own. */

import { readFileSync } from 'node:fs';

/**
 * The secret in a file, without the line break that editors leave at its end.
 *
 * @throws Error if the file cannot be read or is empty; names the file, never its content
 */
export function readSecret(file: string): string {
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  if (secret === '') throw new Error(`the secret in ${file} is empty`);
  return secret;
}

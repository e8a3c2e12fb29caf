/** The keys that values are encrypted with, as they stand in a file. */

import { readFileSync } from 'node:fs';

/** Keys of 32 bytes: the current one, and older ones that are only read with. */
export type EncryptionKeys = readonly [current: Buffer, ...older: Buffer[]];

/**
 * Reads one key a line: 32 bytes in base64, or 64 hex digits. Blank lines and those that begin with # say nothing.
 *
 * @throws Error with a sentence that says what to change; it quotes nothing of the file
 */
export function readEncryptionKeys(file: string): EncryptionKeys {
  const lines = contentOf(file)
    .split('\n')
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  const keys = lines.map(({ text, number }) => keyIn(text) ?? fail(`line ${number} of ${file} is no key`));
  const [current, ...older] = keys;
  if (!current) return fail(`${file} holds no key`);
  const again = keys.findIndex((key, index) => keys.findIndex((other) => other.equals(key)) < index);
  const repeated = lines[again];
  if (repeated)
    throw new Error(
      `state.encryptionKeyFile: the key in line ${repeated.number} of ${file} stands there twice; remove one`,
    );
  return [current, ...older];
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`state.encryptionKeyFile: the file cannot be read (${why}); name a file that can`, {
      cause,
    });
  }
}

function keyIn(text: string): Buffer | undefined {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return Buffer.from(text, 'base64');
  return undefined;
}

function fail(what: string): never {
  throw new Error(
    `state.encryptionKeyFile: ${what}; write one key a line, 32 random bytes in base64 or 64 hex digits ` +
      '(openssl rand -base64 32)',
  );
}

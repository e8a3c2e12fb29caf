/** The file with the keys that encrypt stored responses (`state.encryptionKeyFile`). */

/** Keys of 32 bytes: the current one, and older ones that only decrypt. */
export type EncryptionKeys = readonly [current: Buffer, ...older: Buffer[]];

/**
 * Parses one key per line: 32 bytes in base64, or 64 hex digits. Blank lines and lines that start with # are ignored.
 *
 * @throws Error that completes a sentence that begins with the name of the file; it quotes nothing of the content
 */
export function parseEncryptionKeys(content: string): EncryptionKeys {
  const lines = content
    .split('\n')
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  const keys = lines.map(({ text, number }) => parseKey(text) ?? fail(`line ${number} is not a key`));
  const [current, ...older] = keys;
  if (!current) return fail('contains no key');
  const isRepeated = (key: Buffer, index: number) => keys.findIndex((other) => other.equals(key)) < index;
  const repeatedLine = lines[keys.findIndex(isRepeated)];
  if (repeatedLine) throw new Error(`line ${repeatedLine.number} repeats an earlier key; remove one of them`);
  return [current, ...older];
}

function parseKey(text: string): Buffer | undefined {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return Buffer.from(text, 'base64');
  return undefined;
}

function fail(problem: string): never {
  throw new Error(
    `${problem}; write one key per line, 32 random bytes in base64 or 64 hex digits (openssl rand -base64 32)`,
  );
}

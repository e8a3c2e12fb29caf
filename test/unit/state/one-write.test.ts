import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inOneWrite } from '../../../src/state/one-write.ts';

/** A connection that keeps what reached the system in one piece. */
function startConnection() {
  const pieces: string[] = [];
  const connection = new Writable({
    decodeStrings: false,
    write: (chunk, _, done) => done(void pieces.push(chunk)),
    writev: (chunks, done) => done(void pieces.push(chunks.map(({ chunk }) => chunk).join(''))),
  });
  return { connection, pieces };
}

test('what several give while the promises run that are due leaves in one piece', async () => {
  const { connection, pieces } = startConnection();
  const holdBack = inOneWrite(() => [connection]);
  const give = async (text: string) => {
    await undefined;
    holdBack();
    connection.write(text);
  };
  await Promise.all([give('a'), give('b'), give('c')]);
  await nextTurn();
  assert.deepEqual(pieces, ['abc']);
  await give('d');
  await nextTurn();
  assert.deepEqual(pieces, ['abc', 'd']);
});

test('a connection that is closed meanwhile harms nobody', async () => {
  const { connection, pieces } = startConnection();
  const { connection: other, pieces: others } = startConnection();
  const holdBack = inOneWrite(() => [connection, other]);
  holdBack();
  connection.destroy();
  other.write('a');
  await nextTurn();
  assert.deepEqual([pieces, others], [[], ['a']]);
});

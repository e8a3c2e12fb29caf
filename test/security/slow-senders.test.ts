import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setInterval } from 'node:timers';
import { createRequestReader } from '../../src/http/read-request.ts';
import { createTppApp } from '../../src/http/tpp-app.ts';
import { createMatcher } from '../../src/pis/operations.ts';
import { initiation, newStatusPath, refusalOf, requestText } from '../kit/attack.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { onConnection } from '../kit/raw-connection.ts';

/** A listener with short limits, whose pipeline must not be reached. */
async function startShortListener(t: TestContext) {
  const refusals: string[] = [];
  const readRequest = createRequestReader({
    match: createMatcher({
      segment: 'berlingroup',
      paymentServices: 'any',
      paymentProducts: 'any',
      authorisationTypes: 'any',
    }),
    admit: () => {},
    authenticate: () => ({ name: 'anonymous', tenant: 'anonymous', environments: ['sandbox', 'production'] }),
    checkQuota: () => ({ result: Promise.resolve(), isLikely: false }),
    environments: ['sandbox', 'production'],
    maxBodyBytes: 1024,
    deadlineMs: { write: 1_000, read: 1_000, status: 1_000 },
  });
  const onRefused = ({ code }: { readonly code: string }) => void refusals.push(code);
  const pipeline = () => Promise.reject(new Error('an incomplete request reached the pipeline'));
  const listener = await startPlainListener(
    t,
    createTppApp({ readRequest, pipeline, networkOf: () => undefined, onRefused }),
  );
  return { port: listener.port, refusals: () => [...refusals, ...listener.refusals] };
}

/*
 * Attack: a few hundred connections send one byte now and then and never complete a request. They occupy a server that only
 * limits the pause between two bytes.
 */
describe('a TPP that sends too slowly', () => {
  const starts: Readonly<Record<string, string>> = {
    nothing: '',
    'half a request line': 'GET /berl',
    'half a head': `GET ${newStatusPath()} HTTP/1.1\r\nHost: a\r\nX-A: `,
    'a head and no body': initiation('', 'Content-Length: 1000'),
    'half a body': initiation('{"a":', 'Content-Length: 1000'),
    'half of an empty body': requestText(
      `GET ${newStatusPath()} HTTP/1.1`,
      ['Transfer-Encoding: chunked'],
      '0\r\nX-A: ',
    ),
    'half a chunk': initiation('100\r\n{"a":', 'Transfer-Encoding: chunked'),
  };

  for (const [name, bytes] of Object.entries(starts)) {
    test(`E1, E2: gets 408 after ${name}, with and without a byte now and then`, async (t) => {
      const { port, refusals } = await startShortListener(t);
      for (const drip of bytes === '' ? [''] : ['', 'a']) {
        await onConnection(port, async (connection) => {
          connection.send(bytes);
          const dripping = setInterval(() => connection.send(drip), 20);
          try {
            assert.deepEqual(refusalOf(await connection.answer()), [408, 'REQUEST_TIMEOUT']);
            await connection.closed(3_000);
          } finally {
            clearInterval(dripping);
          }
        });
      }
      assert.ok(refusals().length >= 1 && refusals().every((code) => code === 'REQUEST_TIMEOUT'));
    });
  }

  test('E1: gets 408 for the second request of a connection as well', async (t) => {
    const { port } = await startShortListener(t);
    await onConnection(port, async (connection) => {
      connection.send(requestText('GET /nowhere HTTP/1.1'));
      assert.equal((await connection.answer()).status, 404);
      connection.send('GET /berl');
      assert.deepEqual(refusalOf(await connection.answer()), [408, 'REQUEST_TIMEOUT']);
      await connection.closed();
    });
  });
});

/** Conditional status reads: the gateway gives each status a tag, and answers 304 while the status is the same. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, type Reply } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { startGateway } from '../kit/gateway.ts';
import { statusRead } from '../kit/request.ts';
import { type StubBank, type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';

interface Setup {
  readonly bank: StubBank;
  /** Reads the status. @param tag for `If-None-Match` */
  read(tag?: string, headers?: readonly Field[]): Promise<Reply>;
  /** Sets the next responses of the bank. */
  respond(response: StubResponse): void;
}

async function start(t: TestContext, sections: object = {}): Promise<Setup> {
  let response = statusResponse('ACTC');
  const bank = await startStubBank(t, () => response);
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  const gateway = await startGateway(t, { environments, ...sections });
  return {
    bank,
    read: (tag, headers = []) =>
      call(gateway.url, {
        ...statusRead,
        headers: [...headers, ...(tag === undefined ? [] : [['If-None-Match', tag] as const])],
      }),
    respond(next) {
      response = next;
    },
  };
}

const tagOf = (reply: Reply): string => {
  const tag = reply.header('ETag') ?? '';
  assert.match(tag, /^W\/"penstock-[\w-]{22}"$/);
  return tag;
};

const uncached = [['Cache-Control', 'no-cache']] as const;

describe('a conditional status read', () => {
  test('gets 304 without a body while the status is the same, from the cache and from the bank', async (t) => {
    const { bank, read } = await start(t);
    const first = await read();
    const tag = tagOf(first);

    const cached = await read(tag);
    const fresh = await read(tag, uncached);

    for (const reply of [cached, fresh]) {
      assert.equal(reply.status, 304);
      assert.equal(reply.header('ETag'), tag);
      assert.equal(reply.body.length, 0);
      assert.equal(reply.header('Content-Length'), undefined);
      assert.equal(reply.header('Content-Type'), undefined);
      assert.equal(reply.header('Penstock-Environment'), 'sandbox');
    }
    assert.match(cached.header('Cache-Status') ?? '', /^penstock; hit/);
    assert.equal(fresh.header('Cache-Status'), 'penstock; fwd=request');
    assert.equal(bank.requests.length, 2);
    assert.ok(bank.requests.every(({ header }) => header('if-none-match') === ''));
  });

  test('gets the response with another tag when the status is another one', async (t) => {
    const { read, respond } = await start(t);
    const tag = tagOf(await read());
    respond(statusResponse('ACSC'));

    const changed = await read(tag, uncached);

    assert.equal(changed.status, 200);
    assert.match(changed.text, /ACSC/);
    assert.notEqual(tagOf(changed), tag);
  });

  test('compares statuses, not bodies', async (t) => {
    const { read, respond } = await start(t);
    const tag = tagOf(await read());
    respond(statusResponse('ACTC', { psuMessage: 'please wait' }));

    assert.equal((await read(tag, uncached)).status, 304);
  });

  test('goes to the bank unchanged with any other tag or condition, and gets its answer', async (t) => {
    const { bank, read, respond } = await start(t);
    const tag = tagOf(await read());
    respond({ status: 304, headers: [['ETag', '"of-the-bank"']] });

    const conditions: readonly (readonly [string, readonly Field[]])[] = [
      ['"of-the-bank"', []],
      ['*', []],
      [`${tag}, "of-the-bank"`, []],
      [tag, [['If-Modified-Since', 'Mon, 23 Nov 2026 10:00:00 GMT']]],
      [tag, [['Signature', 'keyId="1"']]],
    ];
    for (const [condition, headers] of conditions) {
      const reply = await read(condition, headers);
      assert.equal(reply.status, 304, condition);
      assert.equal(reply.header('ETag'), '"of-the-bank"');
      assert.equal(bank.requests.at(-1)?.header('if-none-match'), condition);
    }
  });

  test('uses the tag of the bank if the bank sends one', async (t) => {
    const { bank, read, respond } = await start(t);
    respond(statusResponse('ACTC', {}, [['ETag', '"of-the-bank"']]));

    const first = await read();
    const second = await read('"of-the-bank"');

    assert.equal(first.header('ETag'), '"of-the-bank"');
    assert.equal(second.status, 200, 'the bank decides');
    assert.equal(bank.requests.length, 2);
  });

  test('has no tags of the gateway while the cache is off', async (t) => {
    const { bank, read } = await start(t, { statusCache: { enabled: false } });
    const tag = `W/"penstock-${'A'.repeat(22)}"`;

    const reply = await read(tag);

    assert.equal(reply.status, 200);
    assert.equal(reply.header('ETag'), undefined);
    assert.equal(bank.requests[0]?.header('if-none-match'), tag);
  });

  test('gets an error unchanged: only a 200 has a tag', async (t) => {
    const { read, respond } = await start(t);
    respond({ status: 404, headers: [['Content-Type', 'application/json']], body: '{}' });

    const missing = await read(`W/"penstock-${'A'.repeat(22)}"`);

    assert.equal(missing.status, 404);
    assert.equal(missing.header('ETag'), undefined);
  });
});

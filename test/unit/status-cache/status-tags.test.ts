/** The tags that the gateway gives to statuses. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { headerValue } from '../../../src/pis/headers.ts';
import { isStatusTag } from '../../../src/request/status-tag.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  bankResponse,
  bankStatusResponse,
  createCacheInstance,
  type RequestOptions,
  statusRead,
} from './cache-instance.ts';

const json = ['Content-Type', 'application/json'] as const;
const xml = ['Content-Type', 'application/xml'] as const;
const uncached = ['Cache-Control', 'no-cache'] as const;

/** An instance, and the tag of each read. */
function startInstance() {
  let response = bankStatusResponse('ACTC');
  const state = createMemoryState();
  const instance = createCacheInstance(state, async () => response);
  return {
    instance,
    respond(next: typeof response) {
      response = next;
    },
    async tag(options: RequestOptions = {}): Promise<string | undefined> {
      const headers = [...(options.headers ?? []), uncached];
      const { headers: fields } = await instance.send(statusRead({ ...options, headers }));
      return headerValue(fields, 'etag');
    },
  };
}

describe('the tag of a status', () => {
  test('depends on tenant, payment and status, and on nothing else of the request', async () => {
    const { tag, respond } = startInstance();
    const first = await tag();
    assert.ok(isStatusTag(first ?? ''));

    const authorised = { headers: [['Authorization', 'Bearer two']] as const };
    assert.equal(await tag(authorised), first);
    assert.notEqual(await tag({ tenant: 'rival' }), first);
    assert.notEqual(await tag({ payment: 'another' }), first);
    respond(bankStatusResponse('ACSC'));
    assert.notEqual(await tag(), first);
  });

  test('is the same in JSON, in pain.002, and in a compressed body', async () => {
    const { tag, respond } = startInstance();
    const first = await tag();
    respond(bankResponse(200, [xml], '<Document><GrpSts>ACTC</GrpSts></Document>'));
    assert.equal(await tag(), first);
    const compressed = gzipSync('{"transactionStatus":"ACTC","psuMessage":"wait"}');
    respond({ ...bankResponse(200, [json, ['Content-Encoding', 'gzip']]), body: compressed });
    assert.equal(await tag(), first);
  });

  test('is that of the body if the response names no status', async () => {
    const { tag, respond } = startInstance();
    const text = ['Content-Type', 'text/plain'] as const;
    respond(bankResponse(200, [text], 'being processed'));
    const first = await tag();
    assert.equal(await tag(), first);
    respond(bankResponse(200, [text], 'done'));
    assert.notEqual(await tag(), first);
  });

  test('is stored with the response', async () => {
    const { instance } = startInstance();
    const missed = await instance.send(statusRead());
    const hit = await instance.send(statusRead());
    assert.equal(hit.servedFrom, 'cache');
    assert.equal(headerValue(hit.headers, 'etag'), headerValue(missed.headers, 'etag'));
  });

  test('is another one after a purge: the secret of the hash has changed', async () => {
    const { instance, tag } = startInstance();
    const first = await tag();
    await instance.purge({});
    assert.notEqual(await tag(), first);
  });

  test('is absent from every response but a 200, and never replaces a tag of the bank', async () => {
    const { tag, respond } = startInstance();
    for (const status of [203, 204, 404, 503]) {
      respond(bankResponse(status));
      assert.equal(await tag(), undefined, String(status));
    }
    respond(bankStatusResponse('ACTC', [['ETag', '"of-the-bank"']]));
    assert.equal(await tag(), '"of-the-bank"');
  });
});

/** The cache serves the bank's responses byte for byte, in every format and content coding. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { call } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { startStubBank } from '../kit/stub-bank.ts';

const json = Buffer.from('{"transactionStatus":"ACCC","psuMessage":"Grüße"}');
const pain002 = Buffer.from(
  '<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.03">' +
    '<CstmrPmtStsRpt><OrgnlGrpInfAndSts><GrpSts>ACCC</GrpSts></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>',
);
const jsonType: Field = ['Content-Type', 'application/json'];
const xmlType: Field = ['Content-Type', 'application/xml'];

describe('a cached response on two instances', { skip: skipWithoutRedis }, () => {
  for (const [what, body, fields] of [
    ['JSON', json, [jsonType]],
    ['pain.002', pain002, [xmlType]],
    ['JSON in gzip', gzipSync(json), [jsonType, ['Content-Encoding', 'gzip']]],
    ['pain.002 in brotli', brotliCompressSync(pain002), [xmlType, ['Content-Encoding', 'br']]],
    ['an empty body', Buffer.alloc(0), [jsonType]],
    ['truncated JSON', Buffer.from('{"transactionStatus":"AC'), [jsonType]],
    ['thirty kilobytes', Buffer.alloc(30_000, json), [['Content-Type', 'text/plain']]],
  ] as const) {
    test(`serves the same bytes and content type as the first response: ${what}`, async (t) => {
      const bank = await startStubBank(t, () => ({ headers: fields, body }));
      const instances = await startInstances(t, bank, await sharedRedisUrl(t), {
        statusCache: { pendingTtl: '1min', pendingTtlMax: '1min' },
      });
      const read = { ...statusRead, headers: [['Accept-Encoding', 'gzip, br']] as const };
      for (const [instance, from] of [
        [instances[0], 'fwd=miss'],
        [instances[0], 'hit'],
        [instances[1], 'hit'],
      ] as const) {
        const reply = await call(instance.url, read);
        assert.equal(reply.status, 200);
        assert.ok(reply.header('Cache-Status')?.startsWith(`penstock; ${from}`));
        assert.deepEqual(reply.body, body);
        assert.equal(reply.header('Content-Length'), String(body.length));
        for (const [name, value] of fields) assert.equal(reply.header(name), value);
      }
      assert.equal(bank.requests.length, 1);
    });
  }
});

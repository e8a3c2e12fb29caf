import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { parseJson, readAdminBody } from '../../../src/admin/read-body.ts';
import { GatewayError } from '../../../src/request/errors.ts';

const json = 'application/json';
const parsed = (text: string | Buffer, type: string | undefined = json, coding?: string) =>
  parseJson(Buffer.from(text), type, coding);
const refused = { status: 400, message: 'The body must be JSON in UTF-8 of at most 16 KiB.' };

describe('readAdminBody of the admin listener', () => {
  const request = () => new IncomingMessage(new Socket());

  test('returns the body when it is complete, up to 16 KiB', async () => {
    const incoming = request();
    const body = readAdminBody(incoming);
    for (const chunk of ['a'.repeat(16_000), 'b'.repeat(384), null]) incoming.push(chunk);
    assert.equal((await body)?.length, 16_384);
  });

  test('returns undefined for a larger body, after its end', async () => {
    const incoming = request();
    const body = readAdminBody(incoming);
    for (const chunk of ['a'.repeat(16_000), 'b'.repeat(385), null]) incoming.push(chunk);
    assert.equal(await body, undefined);
  });

  test('rejects with the error of the listener, or with REQUEST_TIMEOUT if the connection closes', async () => {
    const malformed = request();
    const body = readAdminBody(malformed);
    malformed.emit('error', new GatewayError('HEADER_MALFORMED', 'broken'));
    await assert.rejects(body, { code: 'HEADER_MALFORMED' });
    const closed = request();
    const cut = readAdminBody(closed);
    closed.destroy();
    await assert.rejects(cut, { code: 'REQUEST_TIMEOUT' });
  });
});

describe('parseJson of the admin listener', () => {
  test('parses objects and lists in UTF-8', () => {
    assert.deepEqual(parsed('{"a":"\u00fc"}'), { a: '\u00fc' });
    assert.deepEqual(parsed('[]', 'Application/JSON; charset=UTF-8'), []);
    assert.deepEqual(parsed('{}', 'application/json;charset="utf-8"', 'identity'), {});
  });

  test('returns an empty object without a body, and undefined for another type', () => {
    assert.deepEqual(parsed(''), {});
    for (const type of [undefined, 'text/plain', 'application/jsonp', 'application/x-www-form-urlencoded'])
      assert.equal(parseJson(Buffer.from('{}'), type, undefined), undefined);
  });

  test('refuses everything else', () => {
    assert.throws(() => parseJson(undefined, json, undefined), refused);
    for (const text of ['{', '"a"', '1', 'null', '{"a":1}}'])
      assert.throws(() => parsed(text), refused, text);
    assert.throws(() => parsed(Buffer.from([0x22, 0xff, 0x22])), refused);
    assert.throws(() => parsed('{}', 'application/json; charset=latin1'), refused);
    assert.throws(() => parsed('{}', json, 'gzip'), refused);
  });
});

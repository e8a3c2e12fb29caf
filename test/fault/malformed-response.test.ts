import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { publicUrl } from '../kit/gateway.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { type ExpectedFailure, startWithPayment, testEveryMethodFails } from './fault-contract.ts';

const malformed = (proxyError: string): ExpectedFailure => ({
  status: 502,
  code: 'UPSTREAM_MALFORMED',
  proxyError,
});

describe('malformed response of the bank', { concurrency: 8 }, () => {
  testEveryMethodFails({ name: 'garbage' }, malformed('http_protocol_error'));
  testEveryMethodFails({ name: 'two-content-lengths' }, malformed('http_protocol_error'));
  testEveryMethodFails({ name: 'carriage-return-in-header' }, malformed('http_protocol_error'));
  testEveryMethodFails({ name: 'huge-headers' }, malformed('http_response_header_section_size'));
  testEveryMethodFails({ name: 'switching-protocols' }, malformed('http_upgrade_failed'));
  const upgradeResponse = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'; // without Connection: Upgrade
  testEveryMethodFails({ name: 'garbage', bytes: upgradeResponse }, malformed('http_upgrade_failed'));
  for (const status of ['099', '600', '999']) {
    const bytes = `HTTP/1.1 ${status} Odd\r\nContent-Length: 0\r\n\r\n`;
    testEveryMethodFails({ name: 'garbage', bytes }, malformed('http_protocol_error'));
  }
  const gzipped = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n';
  testEveryMethodFails({ name: 'garbage', bytes: gzipped }, malformed('http_response_transfer_coding'));
  const undecodable = malformed('http_response_content_coding');
  testEveryMethodFails({ name: 'corrupt-gzip-answer' }, undecodable, {}, ['GET', 'DELETE']);

  test('a payment that Location names is accepted although the body is damaged', async (t) => {
    const { bank, gateway } = await startWithPayment(t);
    bank.injectFault({ name: 'corrupt-gzip-answer' }, { times: 1 });
    const payment = newCall('POST', transfersPath);
    const created = await call(gateway.url, payment);
    assert.equal(created.status, 201);
    const path = created.header('Location')?.slice(publicUrl.length) ?? '';
    assert.equal((await call(gateway.url, newCall('GET', path))).status, 200);
    const repeat = await call(gateway.url, payment);
    assert.deepEqual([repeat.header('Idempotent-Replayed'), repeat.body], ['true', created.body]);
    assert.equal(bank.payments.length, 2);
  });

  const tooLarge = malformed('http_response_body_size');
  const bytes = 4 * 1024 * 1024 + 1;
  testEveryMethodFails({ name: 'huge-answer', bytes }, tooLarge);
  testEveryMethodFails({ name: 'huge-answer', bytes, framing: 'content-length' }, tooLarge);
});

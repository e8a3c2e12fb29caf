import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requestText, statusRead } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw.ts';

/*
 * The story: every new path, id or header value becomes a new series of a metric, until the memory of the gateway, or of
 * whoever collects the metrics, is full of them.
 */
describe('the metrics', () => {
  test('H10: have no more series after 200 calls that differ in everything than after one', async (t) => {
    const { gateway } = await startLine(t);
    const series = async () => {
      const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
      return text.split('\n').filter((line) => line.startsWith('penstock_'));
    };
    const odd = (mark: string) => [
      statusRead(`X-A: ${mark}`, `Authorization: Bearer ${mark}`),
      requestText(`GET /berlingroup/v1/payments/${mark}/${mark}/status HTTP/1.1`),
      requestText(`GET /${mark} HTTP/1.1`),
      requestText(`${mark.toUpperCase()} /x HTTP/1.1`),
    ];
    for (const bytes of odd('first')) await sendRaw(gateway.port, bytes);
    const before = await series();
    for (let count = 0; count < 50; count++)
      for (const bytes of odd(`canary${count}`)) await sendRaw(gateway.port, bytes);
    const after = await series();
    assert.equal(after.length, before.length);
    assert.doesNotMatch(after.join('\n'), /canary/);
  });
});

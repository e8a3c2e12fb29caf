import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation, type Refusal } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';

/*
 * Attack: of two fields with the same name, one parser uses the first, another one the second, a third one both. The
 * attacker's own token passes the check, and the bank uses another redirect URI or signature.
 */
describe('a repeated field that must occur once', { concurrency: 8 }, () => {
  const fields: Readonly<Record<string, string>> = {
    Authorization: 'Bearer token',
    'X-API-Key': 'key',
    'Consent-ID': '1',
    'Content-Encoding': 'identity',
    'Content-Type': 'text/plain',
    Date: 'Sun, 06 Nov 1994 08:49:37 GMT',
    Digest: 'SHA-256=AAAA',
    Expect: '100-continue',
    'Penstock-Environment': 'sandbox',
    'PSU-ID': 'a',
    'PSU-ID-Type': 'a',
    'PSU-Corporate-ID': 'a',
    'PSU-Corporate-ID-Type': 'a',
    'PSU-IP-Address': '192.0.2.1',
    Signature: 'a',
    'TPP-Redirect-URI': 'https://tpp.example/a',
    'TPP-Nok-Redirect-URI': 'https://tpp.example/b',
    'TPP-Notification-URI': 'https://tpp.example/c',
    'TPP-Signature-Certificate': 'a',
  };
  const forms = (name: string, value: string): readonly (readonly string[])[] => [
    [`${name}: ${value}`, `${name}: ${value}`],
    [`${name}: ${value}`, `${name.toLowerCase()}: other`],
    [`${name.toUpperCase()}: `, `${name}: ${value}`],
  ];

  for (const [name, value] of Object.entries(fields)) {
    test(`C4: is refused if it is ${name}, and the connection is closed`, async (t) => {
      const line = await startGatewayWithBank(t);
      for (const twice of forms(name, value)) {
        await assertCutOff(line, initiation('{}', 'Content-Length: 2', ...twice), [400, 'HEADER_MALFORMED']);
      }
      await assertServes(line);
    });
  }

  test('C4: is refused if it is X-Request-ID, repeated or as a list', async (t) => {
    const line = await startGatewayWithBank(t);
    const id = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    const refusal: Refusal = [400, 'REQUEST_ID_INVALID'];
    await assertCutOff(line, initiation('{}', 'Content-Length: 2', `x-request-id: ${id}`), refusal);
    const list = initiation('', 'Content-Length: 0').replace(
      /X-Request-ID: (\S+)/,
      `X-Request-ID: $1, ${id}`,
    );
    await assertCutOff(line, list.replace('Content-Length: 0', 'Connection: close'), refusal);
  });
});

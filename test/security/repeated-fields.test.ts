import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation, type Refusal } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';

/*
 * The story: of two equal fields one reader believes the first, the next the second, a third both. The attacker's own
 * token passes the check, and the victim's redirect address, or somebody else's signature, is what counts at the bank.
 */
describe('a field that matters and stands twice', { concurrency: true }, () => {
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
    test(`C4: ${name} is refused, and the connection closed`, async (t) => {
      const line = await startLine(t);
      for (const twice of forms(name, value)) {
        await assertCutOff(line, initiation('{}', 'Content-Length: 2', ...twice), [400, 'HEADER_MALFORMED']);
      }
      await assertServes(line);
    });
  }

  test('C4: so is X-Request-ID, twice or as a list', async (t) => {
    const line = await startLine(t);
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

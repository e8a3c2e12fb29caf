import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AttackTarget, paymentsPath, refusalOf, requestText } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';

const tricks: Readonly<Record<string, readonly string[]>> = {
  'B1: dot segments': [
    ...[
      '.',
      '..',
      '%2e',
      '%2E',
      '%2e%2e',
      '%2E%2E',
      '.%2e',
      '%2e.',
      '%2E.',
      '..;',
      '..;a=b',
      '.;',
      '..%2f',
      'a%2f..',
      'a%5c.',
    ],
    ...[
      '%252e%252e',
      '%25%32%65',
      '..%2f..',
      '..%5c..',
      '%c0%ae%c0%ae',
      '%e0%80%ae',
      '%u002e%u002e',
      '..%00',
    ],
  ],
  'B2: encoded and foreign characters': [
    ...[
      '...%2f',
      '%2f',
      '%2F',
      '%5c',
      '%5C',
      '\\',
      '%00',
      '%25',
      '%252f',
      ';',
      ';a=b',
      '%3b',
      '%3f',
      '%23',
      '%0d%0a',
      '%0a',
    ],
    ...['%09', '%20', '%7f', '%c0%af', '%e2%80%ae', '%', '%%', '%a', '%zz', '%u002f', '%3d%', '%3d', '%2b'],
    ...[
      '\xff',
      '\xc3\xa9',
      '\xef\xbc\x8f',
      '"',
      '<',
      '>',
      '|',
      '^',
      '`',
      '{1}',
      "'",
      '(',
      ')',
      '&',
      '[',
      ']',
    ],
  ],
  'B3: empty segments': ['', '/', './', '/.', '//', '/..'],
  'B5: segments that are too long': [
    'a'.repeat(257),
    'a'.repeat(1_025),
    'a'.repeat(5_000),
    '%3D'.repeat(257),
  ],
  'B6: malformed queries, and fragments': ['1?|', '1?a=%', '1?a=\\', '1#', '1#a', '#', '?#'],
};

/** Targets with the trick at every position of a path. */
const targetsWith = (trick: string): readonly string[] => [
  `/${trick}/v1/payments/sepa-credit-transfers/1`,
  `/berlingroup/${trick}/payments/sepa-credit-transfers/1`,
  `/berlingroup/v1/${trick}/sepa-credit-transfers/1`,
  `/berlingroup/v1/payments/${trick}/1`,
  `${paymentsPath}/${trick}`,
  `${paymentsPath}/1${trick === '' ? '/' : trick}/status`,
  `${paymentsPath}/${trick}/status`,
  `${paymentsPath}/1/${trick}`,
  `${paymentsPath}/1/authorisations/${trick}`,
  `${paymentsPath}/1/status/${trick}`,
  `${trick}${paymentsPath}/1/status`,
];

/** At some positions, a trick of allowed characters results in a valid path, which is not an attack. */
const isHarmless = (target: string) =>
  /^(\/[\w.~-]{1,256})+$/.test(target) && !/\/\.{1,2}(\/|$)/.test(target);

async function assertAllRefused(
  line: AttackTarget,
  method: string,
  targets: readonly string[],
  mayBeIssued = (target: string) => isWithinId.test(target),
): Promise<void> {
  for (const target of targets) {
    const [status, code] = refusalOf(
      await sendRaw(line.gateway.port, requestText(`${method} ${target} HTTP/1.1`)),
    );
    assert.ok(status === 400 || status === 404, `${method} ${JSON.stringify(target)}: ${status}`);
    assert.match(
      code,
      mayBeIssued(target) ? refusedOrNotIssued : refused,
      `${method} ${JSON.stringify(target)}`,
    );
  }
  assert.deepEqual(line.bank.requests, []);
}

const refused = /^(PATH_MALFORMED|PATH_UNKNOWN|HEADER_MALFORMED)$/;
/** Ids may contain other characters and be longer, if the bank has issued them. */
const refusedOrNotIssued = /^(PATH_MALFORMED|PATH_UNKNOWN|HEADER_MALFORMED|PAYMENT_UNKNOWN)$/;
/** The trick is a part of an id only. */
const isWithinId = /\/1[^/]+\/status$/;

/*
 * Attack: the gateway and the bank interpret a path differently. With dots, encoded slashes or a second decoding, an allowed
 * read becomes a read of another payment, or a request to the bank's administration.
 */
describe('a path with several interpretations', { concurrency: 8 }, () => {
  for (const [name, list] of Object.entries(tricks)) {
    test(`${name} are refused at every position, and the bank receives nothing`, async (t) => {
      const line = await startGatewayWithBank(t);
      const targets = list.flatMap(targetsWith).filter((target) => !isHarmless(target));
      await assertAllRefused(line, 'GET', targets, /^B[25]/.test(name) ? () => true : undefined);
    });
  }

  test('B1-B6: is refused for a payment and a cancellation as well', async (t) => {
    const line = await startGatewayWithBank(t);
    const some = Object.values(tricks).flatMap((list) => list.slice(0, 6));
    await assertAllRefused(
      line,
      'POST',
      some.map((trick) => `/berlingroup/v1/payments/${trick}x%`),
    );
    await assertAllRefused(
      line,
      'DELETE',
      some.map((trick) => `${paymentsPath}/${trick}%`),
    );
  });

  test('B3, B4: is refused with a double slash, a trailing slash or another case', async (t) => {
    const line = await startGatewayWithBank(t);
    const path = `${paymentsPath}/1/status`;
    await assertAllRefused(line, 'GET', [
      ...[`/${path}`, `//${path}`, `${path}/`, `${path}//`, path.replaceAll('/', '//'), path.toUpperCase()],
      ...[
        path.replace('berlingroup', 'BerlinGroup'),
        path.replace('v1', 'V1'),
        path.replace('status', 'Status'),
      ],
      ...[
        '/',
        '/v1',
        '/berlingroup',
        '/berlingroup/v1',
        '/berlingroup/v1/payments',
        '/admin',
        '/ready',
        '/metrics',
      ],
      ...[`${path}/../../../..`, `${paymentsPath}/1/AUTHORISATIONS`, path.replace('v1', 'v2')],
    ]);
  });

  test('B6: is refused with 431 if it has 20 KB', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const response = await sendRaw(gateway.port, requestText(`GET /${'a/'.repeat(10_000)} HTTP/1.1`));
    assert.deepEqual(refusalOf(response), [431, 'HEADERS_TOO_LARGE']);
    assert.deepEqual(bank.requests, []);
  });

  test('is not one with an id of a real bank, which reaches the bank decoded', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    for (const id of ['GJv0KO..Fg==_=_bS6p6XvTWI', 'GJv0KO..Fg%3D%3D_%3D_bS6p6XvTWI']) {
      await sendRaw(gateway.port, requestText(`GET ${paymentsPath}/${id} HTTP/1.1`));
      assert.equal(bank.requests.at(-1)?.url, `${paymentsPath}/GJv0KO..Fg==_=_bS6p6XvTWI`);
    }
  });
});

/** `penstock bank`. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { call } from '../../kit/call.ts';
import { startCommand, writeConfigFile } from '../../kit/command.ts';
import { startCommandRunner } from '../../kit/command-runner.ts';
import { startGateway } from '../../kit/gateway.ts';
import { takenPort } from '../../kit/ports.ts';
import { initiation } from '../../kit/request.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

function run(t: TestContext, ...options: readonly string[]) {
  const child = spawn(process.execPath, [main, 'bank', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`penstock bank prints its address and exits cleanly on ${signal}`, {
    timeout: 20_000,
  }, async (t) => {
    const bank = run(t, '--port', '0', '--name', 'sandbox', '--base-path', '/xs2a');
    const [chunk] = await once(bank.stdout.setEncoding('utf8'), 'data');
    const baseUrl = /sandbox listens at (http:\S+)\/berlingroup\/v1;/.exec(chunk)?.[1] ?? '';

    const answer = await fetch(new URL('/_bank/', baseUrl));
    const explanation = await answer.json();
    bank.kill(signal);
    const [code] = await once(bank, 'exit');

    assert.match(baseUrl, /\/xs2a$/);
    assert.ok(typeof explanation === 'object' && explanation && 'calls' in explanation);
    assert.equal(code, 0);
  });
}

for (const [name, options, message] of [
  [
    'an unknown link style',
    ['--links', 'sideways'],
    '--links must be one of absolute, relative, relative-without-segment, relative-without-base\n',
  ],
  [
    'a base path without a leading slash',
    ['--port', '0', '--base-path', 'psd2'],
    '--base-path must start with a slash and not end with one: --base-path /psd2\n',
  ],
  [
    'a base path with a trailing slash',
    ['--port', '0', '--base-path', '/a/b/'],
    '--base-path must start with a slash and not end with one: --base-path /a/b\n',
  ],
  [
    'a name that payment ids cannot begin with',
    ['--port', '0', '--name', 'A B'],
    '--name must consist of lower-case letters and digits\n',
  ],
  [
    'a segment with slashes at its ends',
    ['--port', '0', '--segment', '/psd2/xs2a/'],
    '--segment must not start or end with a slash: --segment psd2/xs2a\n',
  ],
  [
    'a public origin with a path',
    ['--port', '0', '--public-origin', 'https://bank.example/psd2'],
    '--public-origin must be a URL without a path, such as https://bank.example:8443\n',
  ],
  [
    'a CA of client certificates without TLS',
    ['--port', '0', '--client-ca', 'ca.crt'],
    '--client-ca requires --tls: a bank without TLS gets no client certificates\n',
  ],
  ['a port that is not a number', ['--port', 'none'], '--port must be a number from 0 to 65535\n'],
] as const) {
  test(`penstock bank reports ${name}, and ends`, async () => {
    const { exitCode, stderr } = await runCommand(['bank', ...options]);
    assert.equal(stderr, `${message}See 'penstock bank --help'.\n`);
    assert.equal(exitCode, 64);
  });
}

for (const [name, file, why] of [
  ['does not exist', '/nowhere/ca.crt', 'ENOENT.*'],
  ['contains no certificate', 'package.json', '.*'],
] as const) {
  test(`penstock bank reports a file of --client-ca that ${name}, and ends`, async () => {
    const { exitCode, stderr } = await runCommand(['bank', '--port', '0', '--tls', '--client-ca', file]);
    assert.match(
      stderr,
      new RegExp(
        `^--client-ca: no certificate in PEM format can be read from ${file} \\(${why}\\); name the file with the CA certificate `,
      ),
    );
    assert.equal(exitCode, 64);
  });
}

test('penstock bank --tls lets a gateway pay that trusts its certificate, and removes the certificate at the end', async (t) => {
  const options = ['--port', '0', '--tls', '--host', '127.0.0.2', '--public-origin', 'https://bank.example'];
  const bank = startCommand(t, process.execPath, [main, 'bank', ...options]);
  await bank.waitForOutput('Inject a fault');
  const printed = bank.stdout();
  const environment = parse(/^ {2}baseUrl:.*?(?=^\S)/ms.exec(printed)?.[0] ?? '');
  const { baseUrl, tls } = environment;
  assert.match(baseUrl, /^https:\/\/127\.0\.0\.2:\d+$/);
  assert.ok(printed.includes(`control calls: curl --cacert ${tls.caFile} ${baseUrl}/_bank/\n`));
  const { subjectAltName } = new X509Certificate(readFileSync(tls.caFile));
  assert.match(subjectAltName ?? '', /IP Address:127\.0\.0\.2, DNS:bank\.example$/);

  const gateway = await startGateway(t, { environments: { sandbox: environment } });
  const { status, text: body } = await call(gateway.url, initiation);
  assert.equal(status, 201, body);

  bank.kill('SIGTERM');
  assert.equal(await bank.exitCode(), 0);
  assert.equal(existsSync(dirname(tls.caFile)), false);
});

test('penstock bank --like takes the path of the profile, and prints the baseUrl for the gateway', {
  timeout: 20_000,
}, async (t) => {
  const bank = run(t, '--port', '0', '--like', 'examples/banks/redsys.yaml');
  const lines: string[] = [];
  for await (const line of createInterface(bank.stdout)) if (lines.push(line) === 2) break;
  const [address = '', baseUrl = ''] = lines;
  const [, origin] =
    /bank listens at (http:\/\/127\.0\.0\.1:\d+)\/api-entrada-xs2a\/services\/BBVA\/v1\.1;/.exec(address) ??
    [];
  assert.equal(
    baseUrl,
    `In the configuration of the gateway, the environment has baseUrl: ${origin}/api-entrada-xs2a/services`,
  );
});

test('penstock bank --like lists all mistakes of the profile with their lines, and ends', async (t) => {
  const file = writeConfigFile(
    t,
    `segment: /xs2a
pathVerson: v2
requires:
  headers:
    - { name: "X Y", status: 200 }
answers:
  cancellation: 205
links: { as: string, queries: { getPayments: a=1 } }
pathVersion: 1.1
`,
  );
  const { exitCode, stderr } = await runCommand(['bank', '--like', file]);
  const lines = stderr.trim().replaceAll(`${file}:`, '').split('\n');
  assert.deepEqual(lines, [
    '1 segment: expected path segments without a slash at the ends, such as v1.1',
    '2 pathVerson: unknown key; allowed: basePath, segment, pathVersion, requires, links, ids, answers, status, sca (did you mean pathVersion?)',
    '5 requires.headers[0].name: expected the name of a header field',
    '5 requires.headers[0].status: expected a status from 400 to 499',
    '7 answers.cancellation: expected one of 200, 202, 204',
    '8 links.as: expected one of objects, strings',
    '8 links.queries.getPayments: unknown key; allowed: initiatePayment, getPayment, getPeriodicPayment, getPaymentStatus, cancelPayment, startAuthorisation, listAuthorisations, getAuthorisation, updatePsuData, updatePayment, getBulkPayment (did you mean getPayment?)',
    '9 pathVersion: expected a text in quotes, or a mapping with default and names of operations: { default: v1.1, startAuthorisation: v1 }',
  ]);
  assert.equal(exitCode, 78);
});

test('penstock bank --like names each missing key, and each wrong key of a mapping by operation', async (t) => {
  const file = writeConfigFile(
    t,
    `pathVersion: { default: 1.3, startAuthorization: v1 }
requires: { headers: [{ status: 401 }] }
`,
  );
  const { exitCode, stderr } = await runCommand(['bank', '--like', file]);
  assert.deepEqual(stderr.trim().replaceAll(`${file}:`, '').split('\n'), [
    '1 pathVersion.default: expected a text in quotes',
    '1 pathVersion.startAuthorization: unknown key; allowed: default, initiatePayment, getPayment, getPeriodicPayment, getPaymentStatus, cancelPayment, startAuthorisation, listAuthorisations, getAuthorisation, updatePsuData, updatePayment, getBulkPayment (did you mean startAuthorisation?)',
    '2 requires.headers[0].name: required; expected a text',
  ]);
  assert.equal(exitCode, 78);
});

test('penstock bank --like names a file that cannot be read, and refuses options that the profile sets', async () => {
  const missing = await runCommand(['bank', '--like', '/nowhere/bank.yaml']);
  const both = await runCommand(['bank', '--like', 'examples/banks/ing.yaml', '--segment', 'x']);
  assert.match(missing.stderr, /^The profile cannot be read: ENOENT.*\/nowhere\/bank\.yaml/);
  assert.match(
    both.stderr,
    /^--like already sets --base-path, --segment and --links: change the file instead\n/,
  );
  assert.deepEqual([missing.exitCode, both.exitCode], [78, 64]);
});

test('penstock bank reports a port that is in use, and exits', { timeout: 20_000 }, async (t) => {
  const bank = run(t, '--port', String(await takenPort(t)));

  const [complaint, [code]] = await Promise.all([text(bank.stderr), once(bank, 'exit')]);

  assert.match(
    complaint,
    /^EADDRINUSE: port \d+ of 127\.0\.0\.1 is in use; stop the program that uses the port, or name another/,
  );
  assert.equal(code, 1);
});

for (const [host, code] of [
  ['192.0.2.1', 'EADDRNOTAVAIL'],
  ['no-such-host.invalid', 'ENOTFOUND|EAI_AGAIN'],
] as const)
  test(`penstock bank reports the address ${host}, at which it cannot listen, and exits`, async () => {
    const { exitCode, stderr } = await runCommand(['bank', '--port', '0', '--host', host]);
    assert.match(
      stderr,
      new RegExp(`^(${code}): this is no address of this machine; name one with --host, `),
    );
    assert.equal(exitCode, 1);
  });

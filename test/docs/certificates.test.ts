/** The section "Rehearse it" of docs/operations/certificates.md: its commands, and what a payment gets. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { call } from '../kit/call.ts';
import { root, startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until, within } from '../kit/within.ts';
import { blocksOf, missingIn, textOf } from './blocks.ts';

const page = 'docs/operations/certificates.md';
const section = 'Rehearse it';
const [certificates, bankCommand] = blocksOf(page, section);
assert.ok(certificates && bankCommand);

const life = scopeOfAllTests();
const folder = temporaryFolder(life);
const otherFolder = temporaryFolder(life);
for (const cwd of [folder, otherFolder])
  execFileSync('sh', ['-ec', certificates.commands], { cwd, stdio: 'pipe' });

const [program, ...args] = bankCommand.commands.trim().split(' ');
assert.equal(program, 'penstock');
const main = join(root, 'src/main.ts');
const bank = startCommand(life, process.execPath, [main, ...args, '--port', '0'], { TMPDIR: folder }, folder);
await bank.waitForOutput('Inject a fault');
const printed = bank.stdout();

const { baseUrl, tls } = parse(/^ {2}baseUrl:.*?(?=^\S)/ms.exec(printed)?.[0] ?? '');
const filesIn = (of: string) => ({ certFile: join(of, 'qwac.crt'), keyFile: join(of, 'qwac.key') });
const files = filesIn(folder);

/** What a payment gets from a gateway with these settings in `environments.NAME.tls`. */
async function payWith(t: TestContext, settings: object) {
  const gateway = await startGateway(t, { environments: { sandbox: { baseUrl, tls: settings } } });
  return within(20_000, 'an answer', call(gateway.url, initiation));
}

/** A call of the bank's control endpoint, with the client certificate. */
async function askBank(path: string) {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const [ca, cert, key] = [tls.caFile, files.certFile, files.keyFile].map((file) => readFileSync(file));
  request(`${baseUrl}/_bank/${path}`, { ca, cert, key, agent: false }, (response) => resolve(json(response)))
    .on('error', reject)
    .end();
  return within(20_000, 'an answer of the bank', promise) as Promise<readonly Record<string, unknown>[]>;
}

describe('the rehearsal of certificates', () => {
  test('prints what the page shows', () => {
    const output = printed.replaceAll(new URL(baseUrl).host, '127.0.0.1:9101');
    assert.equal(missingIn(output, bankCommand.shown), undefined, output);
    assert.deepEqual(Object.keys(tls), ['caFile', 'certFile', 'keyFile']);
    const { subjectAltName } = new X509Certificate(readFileSync(tls.caFile));
    assert.equal(subjectAltName, 'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1');
  });

  test('lets a payment with the client certificate pass, and shows whose certificate it was', async (t) => {
    const { status, text } = await payWith(t, { ...tls, ...files });
    assert.equal(status, 201, text);
    const [received] = await askBank('requests');
    assert.equal(received?.clientCertificate, 'rehearsal-qwac');
    const { href } = JSON.parse(text)._links.scaRedirect;
    assert.match(href, /^https:\/\/sca\.bank\.example\//, 'no page that demands a client certificate');
  });

  test('fails no payment while the certificate and its key are replaced', async (t) => {
    const issue = certificates.commands.replace(/^.*?(?=openssl req -newkey)/s, '');
    const renewed = issue.replaceAll('qwac', 'renewed');
    execFileSync('sh', ['-ec', renewed], { cwd: folder, stdio: 'pipe' });
    const own = { certFile: join(folder, 'own.crt'), keyFile: join(folder, 'own.key') };
    copyFileSync(files.certFile, own.certFile);
    copyFileSync(files.keyFile, own.keyFile);
    const settings = { environments: { sandbox: { baseUrl, tls: { ...tls, ...own } } } };
    const gateway = await startGateway(t, settings);
    const load = startLoad(t, { perSecond: 20 }, () =>
      measureExchange(initiation, (one) => call(gateway.url, one)),
    );
    await load.hasSent(20);
    for (const [from, to] of [
      ['renewed.crt', own.certFile],
      ['renewed.key', own.keyFile],
    ] as const)
      renameSync(join(folder, from), to);
    const isUsed = async () => (await askBank('requests')).at(-1)?.clientCertificate === 'rehearsal-renewed';
    await until(20_000, 'the bank gets the new certificate', isUsed);
    assert.deepEqual(failuresIn(await load.stop()), {});
  });

  for (const [why, settings] of [
    ['remove `certFile` and `keyFile`', { caFile: tls.caFile }],
    ['remove `caFile`', files],
    ['use a certificate of another CA', { ...tls, ...filesIn(otherFolder) }],
  ] as const) {
    test(`fails as the page says after the change: ${why}`, async (t) => {
      const row = textOf(page, section)
        .split('\n')
        .find((line) => line.startsWith(`| ${why} |`));
      const [, status, code, text = ''] = /\| (\d+) (\w+): (.*) \|$/.exec(row ?? '') ?? [];
      const before = await askBank('requests');

      const reply = await payWith(t, settings);

      assert.deepEqual([String(reply.status), reply.header('penstock-error')], [status, code]);
      assert.ok(reply.text.includes(text), reply.text);
      assert.equal((await askBank('requests')).length, before.length, 'the bank has received nothing');
    });
  }
});

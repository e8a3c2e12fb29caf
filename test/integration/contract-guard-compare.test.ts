/** Ready for production? What only the version of the sandbox has is listed before a switch, and must be acknowledged. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { contractComparison } from '../../src/admin/contract-schemas.ts';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { callAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { startCommandRunner } from '../kit/command-runner.ts';
import { comparisonOf, contractReportOf, type ShownComparison, untilShown } from '../kit/contract-report.ts';
import { adminToken, type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { type Feature, onlyIn11 } from '../kit/version-features.ts';
import { outcomeOf } from '../kit/writes.ts';

const runCommand = startCommandRunner(scopeOfAllTests());

const startedAtMs = Date.parse('2026-12-01T12:00:00Z');

interface Environments {
  readonly sandbox: SimulatedBank;
  readonly production: SimulatedBank;
  readonly gateway: GatewayUnderTest;
  /** Uses other settings of the contract of production. */
  reload(production: object): Promise<void>;
  /** Runs `penstock` with the gateway's admin listener. */
  run(...words: readonly string[]): ReturnType<typeof runCommand>;
}

/** A sandbox of 1.3.11, and production of 1.3.6. The date of this process is simulated. */
async function startEnvironments(t: TestContext): Promise<Environments> {
  t.mock.timers.enable({ apis: ['Date'], now: startedAtMs });
  const sandbox = await startBank(t, { name: 'sandbox' });
  const production = await startBank(t, { name: 'production' });
  const sections = (contract: object) => ({
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl, standardVersion: '1.3.11' },
      production: { baseUrl: production.baseUrl, standardVersion: '1.3.6', contract },
    },
    clients: clientSettings(),
  });
  const gateway = await startGateway(t, sections({}));
  return {
    sandbox,
    production,
    gateway,
    reload: (contract) => gateway.reload(sections(contract)),
    run: (...words) =>
      runCommand([...words, '--url', gateway.adminUrl], { PENSTOCK_ADMIN_TOKEN: adminToken }),
  };
}

const asClient = (client: 'shop' | 'till', { headers = [], ...rest }: Call): Call => ({
  ...rest,
  headers: [...headers, ['X-API-Key', apiKeyOf(client)]],
});

/** The request of a feature. @param paymentPath of the payment that it is about, unless it initiates one */
function callOf({ request, authorisationType = 'authorisations' }: Feature, paymentPath: string): Call {
  const { operation, paymentService, paymentProduct } = request;
  const headers = request.headers.filter(([name]) => name !== 'X-Request-ID');
  const body = Buffer.from(request.body);
  if (operation === 'cancelPayment') return { method: 'DELETE', path: paymentPath, headers };
  const path =
    operation === 'startAuthorisation'
      ? `${paymentPath}/${authorisationType}`
      : `/berlingroup/v1/${paymentService}/${paymentProduct}`;
  return { method: 'POST', path, headers, body };
}

/** Initiates a payment. @returns its path */
async function pay({ gateway }: Environments): Promise<string> {
  const reply = await call(gateway.url, asClient('shop', initiation));
  assert.equal(reply.status, 201, reply.text);
  return `${transfersPath}/${jsonOf(reply).paymentId}`;
}

/** What each difference must be, and how often. */
function expectedDifferences(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { request, in6 } of onlyIn11) {
    for (const deviation of in6) {
      const name = `${request.operation} ${deviation}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return new Map([...counts].toSorted());
}

const shownDifferences = ({ differences }: ShownComparison): ReadonlyMap<string, number> =>
  new Map(
    differences
      .map(
        ({ operation, path, rule, effect, count }) =>
          [`${operation} ${path} ${rule} ${effect}`, count] as const,
      )
      .toSorted(),
  );

const severe = /(refused|executed-at-once|executed-differently)$/;
const mayBe = /may-be-refused$/;

const refusedSwitch = z.object({ error: z.string(), contract: contractComparison });

async function trySwitch(gateway: GatewayUnderTest, environment: string) {
  const body = { environment, reason: 'go-live', confirm: environment };
  return callAdminApi(gateway, 'PUT', '/api/environments/active', body);
}

describe('requests in a sandbox of another version', () => {
  test('are listed with what production does to each feature, and a switch asks for it once', async (t) => {
    const environments = await startEnvironments(t);
    const { gateway, sandbox, production, run } = environments;
    const nothing = await run('contract', 'compare', 'sandbox', 'production');
    assert.equal(
      nothing.stdout,
      'No request in sandbox was judged by the contract of production: nothing is known.\n',
    );

    const paymentPath = await pay(environments);
    for (const [index, feature] of onlyIn11.entries()) {
      const client = index % 2 === 0 ? 'shop' : 'till';
      await call(gateway.url, asClient(client, callOf(feature, paymentPath)));
    }
    assert.equal(sandbox.requests.length, 1 + onlyIn11.length); // all of them were sent, and none was changed
    const compared = await untilShown(
      () => comparisonOf(gateway),
      ({ requests }) => requests === 1 + onlyIn11.length,
    );
    assert.deepEqual(shownDifferences(compared), expectedDifferences());
    for (const {
      level,
      effect,
      path,
      rule,
      operation,
      mustAcknowledge,
      clients,
      count,
    } of compared.differences) {
      const name = `${operation} ${path} ${rule} ${effect}`;
      assert.equal(mustAcknowledge, severe.test(name) && !mayBe.test(name), name);
      assert.equal(level, mustAcknowledge ? 'harmful' : 'notable', name);
      assert.equal(
        clients.reduce((sum, one) => sum + one.count, 0),
        count,
        name,
      );
    }
    assert.deepEqual(
      new Set(compared.differences.flatMap(({ clients }) => clients.map(({ client }) => client))),
      new Set(['shop', 'till']),
    );
    assert.equal(compared.complete, false); // the week before is not known

    const printed = await run('contract', 'compare', 'sandbox', 'production');
    assert.equal(printed.exitCode, 0, printed.stderr);
    for (const { operation, path, rule, effect, mustAcknowledge } of compared.differences) {
      const mark = mustAcknowledge ? '!' : '-';
      const entry = `${mark} ${effect}: ${operation}\n  ${path}  ${rule}`;
      assert.ok(printed.stdout.includes(entry), `${entry}\n${printed.stdout}`);
    }
    assert.match(printed.stdout, /^ {2}not judged before 2026-12-01T1/m);

    const preflight = await callAdminApi(gateway, 'POST', '/api/environments/production/preflight');
    const { contract } = z.object({ contract: contractComparison }).parse(jsonOf(preflight));
    assert.deepEqual(shownDifferences(contract), expectedDifferences());
    const refused = await trySwitch(gateway, 'production');
    assert.equal(refused.status, 409);
    const { error, contract: listed } = refusedSwitch.parse(jsonOf(refused));
    assert.match(error, /must be acknowledged/);
    assert.deepEqual(shownDifferences(listed), expectedDifferences());
    const use = [
      'environment',
      'use',
      'production',
      '--reason',
      'go-live',
      '--confirm',
      'production',
    ] as const;
    const refusedCommand = await run(...use);
    assert.equal(refusedCommand.exitCode, 1);
    const output = refusedCommand.stdout + refusedCommand.stderr;
    for (const { path, mustAcknowledge } of compared.differences)
      if (mustAcknowledge) assert.ok(output.includes(`  ${path}  `), path);

    const done = await run(...use, '--acknowledge-differences');
    assert.equal(done.exitCode, 0, done.stderr);
    assert.match(done.stdout, /New payments go to production now/);
    const audit = await callAdminApi(gateway, 'GET', '/api/audit');
    assert.match(audit.text, /"acknowledgeDifferences":true/);
    assert.match(
      audit.text,
      /"path":"body\/requestedExecutionDate","rule":"not-in-version","effect":"executed-at-once"/,
    );
    await pay(environments);
    assert.equal(production.payments.length, 1);

    await switchEnvironment(gateway, 'sandbox'); // back within an hour: it does not ask
    await switchEnvironment(gateway, 'production'); // production was left within the hour as well
  });

  test('are not judged before a change of the profile, and what was not checked is counted', async (t) => {
    const environments = await startEnvironments(t);
    const { gateway, reload, run } = environments;
    await pay(environments);
    const known = await untilShown(
      () => comparisonOf(gateway),
      ({ requests }) => requests === 1,
    );
    assert.match(known.judgedSince ?? '', /^2026-12-01T1/);

    await reload({ profile: join(root, 'examples/contract-profiles/stricter-bank.yaml') });
    const changed = await comparisonOf(gateway);
    assert.deepEqual(
      [changed.requests, changed.judgedSince, changed.complete, changed.differences],
      [0, null, false, []],
    );
    const { stdout } = await run('contract', 'compare', 'sandbox', 'production');
    assert.equal(
      stdout,
      'No request in sandbox was judged by the contract of production: nothing is known.\n',
    );

    const hourMs = 3_600_000;
    t.mock.timers.setTime(startedAtMs + hourMs);
    const withAddress = { ...jsonOf({ text: initiation.body }), creditorAddress: { country: 'DE' } };
    await call(gateway.url, asClient('shop', { ...initiation, body: JSON.stringify(withAddress) }));
    const judged = await untilShown(
      () => comparisonOf(gateway),
      ({ requests }) => requests === 1,
    );
    assert.deepEqual(
      judged.differences.map(({ path, rule, effect }) => `${path} ${rule} ${effect}`),
      ['body/creditorAddress forbidden refused'],
    );
    assert.ok(Date.parse(judged.judgedSince ?? '') > startedAtMs + hourMs / 2, 'counted since the change');
    assert.equal(judged.complete, false);

    const large = asClient('shop', {
      ...initiation,
      body: JSON.stringify({ ...withAddress, more: 'x'.repeat(70_000) }),
    });
    const isShed = ({ skipped }: ShownComparison) => skipped.some(({ reason }) => reason === 'shed');
    await untilShown(async () => {
      await Promise.all(Array.from({ length: 40 }, () => call(gateway.url, large)));
      return comparisonOf(gateway);
    }, isShed);
    const printed = await run('contract', 'compare', 'sandbox', 'production');
    assert.match(printed.stdout, /^ {2}not judged before 2026-12-01T1/m);
    assert.match(printed.stdout, /^ {2}\d+ not checked \(shed\)$/m);
    const report = await run('contract', 'report', '--environment', 'sandbox');
    assert.match(report.stdout, /requests +report: .*\n +\d+ not checked \(shed\)/);
    assert.match(report.stdout, /answers +report: .*\n +\d+ not checked \(sampled-out\)/);
  });

  test('are never listed as compatible if nobody has checked them', async (t) => {
    const [bank, production] = [await startBank(t), await startBank(t)];
    const environments = {
      active: 'sandbox',
      sandbox: { baseUrl: bank.baseUrl, contract: { requests: 'off', responses: 'off' } },
      production: { baseUrl: production.baseUrl, standardVersion: '1.3.6' },
    };
    const gateway = await startGateway(t, { environments });
    await call(gateway.url, initiation);
    const { requests, judgedSince, complete } = await comparisonOf(gateway);
    assert.deepEqual([requests, judgedSince, complete], [0, null, false]);
    const [sandbox] = (await contractReportOf(gateway)).environments;
    assert.deepEqual([sandbox?.requests.mode, sandbox?.requests.checked], ['off', 0]);
    const switched = await trySwitch(gateway, 'production');
    assert.equal(switched.status, 200, switched.text);
    const { contract } = z.object({ contract: contractComparison }).parse(jsonOf(switched));
    assert.deepEqual([contract.judgedSince, contract.complete], [null, false]);
  });

  test('get the first response again after a switch to an environment that would refuse them', async (t) => {
    const environments = await startEnvironments(t);
    const { gateway, reload, sandbox, production } = environments;
    await reload({ requests: 'enforce', requireHeaders: { initiatePayment: ['Consent-ID'] } });
    const feature = onlyIn11.find(({ name }) => name === 'a day of execution') ?? assert.fail();
    const payment = {
      ...asClient('shop', callOf(feature, '')),
      requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    };
    assert.equal(outcomeOf(await call(gateway.url, payment)), '201');
    const body = {
      environment: 'production',
      reason: 'a test',
      confirm: 'production',
      acknowledgeDifferences: true,
    };
    assert.equal((await callAdminApi(gateway, 'PUT', '/api/environments/active', body)).status, 200);
    assert.equal(outcomeOf(await call(gateway.url, payment)), '201 replayed');
    const { requestId: _, ...other } = payment;
    assert.equal(outcomeOf(await call(gateway.url, other)), '400 HEADER_MALFORMED');
    assert.deepEqual([sandbox.payments.length, production.payments.length], [1, 0]);
  });
});

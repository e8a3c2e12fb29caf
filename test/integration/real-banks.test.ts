/**
 * The interfaces of real banks, from the initiation to the cancellation: one gateway in front of a simulated bank for each profile
 * of examples/banks, with the environment of config/banks. Every link that the gateway returns is followed through the
 * gateway, and leads to the bytes that the bank wrote. At banks with the embedded approach, the TPP sends password, method and TAN.
 */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { readBankProfile } from '../../src/commands/bank-profile.ts';
import { type OperationName, type OptionalOperation, optionalOperations } from '../../src/pis/operations.ts';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { payerCredentials } from '../../src/simulated-bank/embedded-sca.ts';
import { createLinks } from '../../src/simulated-bank/links.ts';
import { type BankProfile, profileSchema, startsByUpdate } from '../../src/simulated-bank/profile.ts';
import { createSimulatedBank } from '../../src/simulated-bank/server.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { startCommandRunner } from '../kit/command-runner.ts';
import { exampleOf } from '../kit/examples.ts';
import type { Field } from '../kit/fields.ts';
import { publicUrl, withoutLimits } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

/** What a TPP sends with every request because the bank demands it; the rest is in the environment. */
const demanded: Readonly<Record<string, readonly Field[]>> = {
  volksbanken: [
    ['PSU-ID', 'VRK1234567890ALL'],
    ['Signature', 'keyId="1"'],
    ['TPP-Signature-Certificate', 'MIIB'],
  ],
  'deutsche-bank': [['Date', 'Thu, 26 Nov 2026 00:00:00 GMT']],
  ing: [
    ['Authorization', 'Bearer 1'],
    ['Date', 'Thu, 26 Nov 2026 00:00:00 GMT'],
    ['Signature', 'keyId="1"'],
  ],
  'santander-consumer': [['Authorization', 'Bearer 1']],
  hypovereinsbank: [['PSU-ID-Type', 'HVB_ONLINEBANKING']],
  dkb: [['PSD2-AUTHORIZATION', 'Bearer 1']],
  sparda: [['X-BIC', 'GENODEF1S08']],
  n26: [['Authorization', 'bearer 1']],
  redsys: [['Signature', 'keyId="1"']],
  'cbi-globe': [['date', '2026-11-26']],
  swedbank: [
    ['Date', 'Thu, 26 Nov 2026 00:00:00 GMT'],
    ['PSU-User-Agent', 'test'],
  ],
  handelsbanken: [
    ['TPP-Transaction-ID', '6f0bd9ff-2b4f-4f40-9a3e-6b1f3d4c1f55'],
    ['TPP-Request-ID', '0c0f1d0e-83a4-4d0c-8d1a-2f7a5a0e3c11'],
  ],
};

/** What a user must replace in an example. */
const placeholder = 'CHANGE';

const life = scopeOfAllTests();
const names = globSync('config/banks/*.yaml')
  .map((file) => basename(file, '.yaml'))
  .sort();

interface SimulatedInterface {
  readonly bank: SimulatedBank;
  readonly profile: BankProfile;
  /** The operations beyond the eight that the file names. */
  readonly alsoOffer: readonly OptionalOperation[];
  /** As in the file, with the address of the simulated bank, and the profile's values in place of CHANGE. */
  readonly environment: Readonly<Record<string, unknown>>;
}

async function simulate(name: string): Promise<SimulatedInterface> {
  const profile = profileSchema.parse(readBankProfile(`examples/banks/${name}.yaml`));
  const bank = createSimulatedBank({ profile });
  await bank.start();
  life.after(() => bank.stop());
  const { environments, standard } = parse(readFileSync(`config/banks/${name}.yaml`, 'utf8'));
  const { production } = environments;
  assert.equal(new URL(production.baseUrl).pathname.replace(/^\/$/, ''), profile.basePath);
  const replaced = {
    ...production,
    ...(production.segment === placeholder && { segment: profile.segment }),
    ...(production.query && { query: replacedIn(production.query, profile.requires.query) }),
  };
  const alsoOffer = standard?.alsoOffer ?? [];
  return { bank, profile, alsoOffer, environment: { ...replaced, baseUrl: bank.baseUrl } };
}

const replacedIn = (
  texts: Readonly<Record<string, string>>,
  values: Readonly<Record<string, string | null>>,
) =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, text === placeholder ? values[name] : text]),
  );

describe('the interface of', () => {
  let gateway: GatewayProcess;
  let interfaces: Readonly<Record<string, SimulatedInterface>>;

  before(async () => {
    interfaces = Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await simulate(name)])),
    );
    const environments = Object.fromEntries(names.map((name) => [name, interfaces[name]?.environment]));
    gateway = await startGatewayProcess(life, {
      ...withoutLimits({}),
      standard: { alsoOffer: [...new Set(Object.values(interfaces).flatMap(({ alsoOffer }) => alsoOffer))] },
      environments: { active: names[0], ...environments },
    });
  });

  for (const name of names) {
    test(`${name} works from the initiation to the cancellation`, async (t) => {
      const { bank, profile, environment, alsoOffer } = interfaces[name] ?? assert.fail();
      const atOthers = () =>
        names.flatMap((other) => (other === name ? [] : [interfaces[other]?.bank.requests.length]));
      const atOthersBefore = atOthers();
      const ask = createTpp(gateway, name);
      const written = createLinks(
        { ...profile, links: { ...profile.links, before: '{path}/' } },
        () => '',
        'bank',
      );
      const isXml = profile.status.format === 'pain.002';
      const product = `${isXml ? 'pain.001-' : ''}sepa-credit-transfers`;
      const path = `/berlingroup/v1/payments/${product}`;
      const order = exampleOf(isXml ? 'initiate-payment-pain001' : 'initiate-payment-json');

      /** Sends a request, and checks what the bank received. */
      async function follow(method: Call['method'], link: string, expected: string, body?: string) {
        const url = new URL(link);
        assert.equal(url.origin, publicUrl, `${link} leads to the gateway`);
        const reply = await ask(method, url.pathname + url.search, body);
        assert.equal(bank.requests.at(-1)?.url, withQuery(expected, environment.query));
        assert.equal(reply.header('Penstock-Error'), undefined);
        return reply;
      }

      const initiated = await ask('POST', path, order.body);
      const payment = bank.payments.at(-1) ?? assert.fail('no payment at the bank');
      const addressed = { service: 'payments', product, id: payment.paymentId };
      const links = linksOf(initiated);
      assert.equal(initiated.status, 201);
      assert.equal(jsonOf(initiated).paymentId, payment.paymentId);
      const form = profile.links.as === 'strings' ? 'string' : 'object';
      for (const link of Object.values(jsonOf(initiated)._links ?? {})) assert.equal(typeof link, form);

      await t.test('the payment and its status are read at the links of the bank', async () => {
        const self = await follow('GET', links.self ?? '', written.payment(addressed));
        const status = await follow('GET', links.status ?? '', written.status(addressed));
        assert.deepEqual([self.status, status.status], [200, 200]);
        assert.match(status.text, /RCVD/);
      });

      await t.test('the payment is found at Location, unless that is on another host', async () => {
        const location = initiated.header('Location') ?? '';
        const href = profile.links.location.as === 'json' ? JSON.parse(location).href : location;
        if (profile.links.location.before) return assert.match(href, /^https:\/\/gateway\.hub\.example\//);
        const spelling = { ...addressed, product: profile.links.location.product ?? product };
        assert.equal((await follow('GET', href, written.payment(spelling))).status, 200);
      });

      const type = 'authorisations';
      const { startLink, redirectLink, approaches } = profile.sca;
      const isEmbedded = approaches[0] === 'embedded';
      const password = JSON.stringify({ psuData: { password: payerCredentials.password } });
      const started = await start();
      const [authorisationId = ''] = bank.payments.at(-1)?.authorisationIds ?? [];
      const authorisationLinks = linksOf(started);

      /** Starts the authorisation of the payment, unless the bank has started it. */
      function start(): Reply | Promise<Reply> {
        if (!startLink) return initiated;
        const link = links[startLink] ?? '';
        if (startsByUpdate(profile)) return follow('PUT', link, written.payment(addressed), '{}');
        const body = startLink.endsWith('WithPsuAuthentication') ? password : '{}';
        return follow('POST', link, written.authorisations(addressed, type), body);
      }

      /** Sends what the bank asks for in an embedded authorisation until it is finalised. @param reply names the next step */
      async function authorise(reply: Reply, kind: string, id: string): Promise<void> {
        const target = written.update(addressed, kind, id);
        const send = async (last: Reply, link: string, body: string) => {
          const answer = await follow(
            'PUT',
            linksOf(last)[link] ?? assert.fail(`no link ${link}`),
            target,
            body,
          );
          assert.equal(answer.status, 200);
          return answer;
        };
        const withPassword = linksOf(reply).updatePsuAuthentication
          ? await send(reply, 'updatePsuAuthentication', password)
          : reply;
        const { scaMethods } = jsonOf(withPassword);
        assert.ok(Array.isArray(scaMethods), 'the bank offers methods');
        const { authenticationMethodId } = scaMethods[0];
        const method = JSON.stringify({ authenticationMethodId });
        const chosen = await send(withPassword, 'selectAuthenticationMethod', method);
        const tan = JSON.stringify({ scaAuthenticationData: payerCredentials.tan });
        const finished = await send(chosen, 'authoriseTransaction', tan);
        assert.equal(jsonOf(finished).scaStatus, 'finalised');
      }

      await t.test('the authorisation is read at its link, and listed', async () => {
        const link = written.authorisation(addressed, type, authorisationId);
        const one = await follow('GET', authorisationLinks.scaStatus ?? '', link);
        assert.equal(jsonOf(one).scaStatus, jsonOf(started).scaStatus ?? 'received');
        const list = await follow('GET', `${links.self}/${type}`, listOf(written, profile, addressed, type));
        assert.deepEqual(jsonOf(list).authorisationIds, [authorisationId]);
      });

      if (approaches[0] === 'redirect')
        await t.test('the link for the payer leads to the bank, in an absolute form', () => {
          const page = written.scaRedirect({ id: authorisationId });
          const { origin } = new URL(bank.baseUrl);
          assert.equal(authorisationLinks[redirectLink], new URL(page, origin).href);
        });

      await t.test('a payment that is authorised is cancelled with an authorisation', async () => {
        if (isEmbedded) await authorise(started, type, authorisationId);
        else bank.clock.advance(5_000);
        const asked = await follow('DELETE', links.self ?? '', written.payment(addressed));
        const start = linksOf(asked).startAuthorisation ?? '';
        const cancellations = 'cancellation-authorisations';
        const cancelling = await follow(
          'POST',
          start,
          written.authorisations(addressed, cancellations),
          '{}',
        );
        const [id = ''] = bank.payments.at(-1)?.cancellationAuthorisationIds ?? [];
        const { scaStatus = '' } = linksOf(cancelling);
        const sca = await follow('GET', scaStatus, written.authorisation(addressed, cancellations, id));
        assert.equal(jsonOf(sca).scaStatus, 'received');
        if (isEmbedded) await authorise(cancelling, cancellations, id);
        else bank.clock.advance(5_000);
        const status = await follow('GET', links.status ?? '', written.status(addressed));
        assert.deepEqual([asked.status, cancelling.status, status.status], [202, 201, 200]);
        assert.match(status.text, /CANC/);
      });

      await t.test('a payment that is not authorised is cancelled at once', async () => {
        const other = linksOf(await ask('POST', path, order.body));
        const id = bank.payments.at(-1)?.paymentId ?? '';
        const cancelled = await follow('DELETE', other.self ?? '', written.payment({ ...addressed, id }));
        assert.equal(cancelled.status, 204);
        assert.equal(bank.payments.at(-1)?.transactionStatus, 'CANC');
      });

      await t.test('the file offers exactly the further operations that this needs', () => {
        const used = new Set(bank.requests.map(({ operation }) => operation));
        assert.deepEqual(
          alsoOffer,
          optionalOperations.filter((operation) => used.has(operation)),
        );
      });

      await t.test('no request arrives at the bank of another environment', () => {
        assert.deepEqual(atOthers(), atOthersBefore);
      });
    });
  }
});

describe('penstock check', () => {
  const run = startCommandRunner(life);
  for (const name of names)
    test(`accepts config/banks/${name}.yaml, and warns of a placeholder at exactly the lines that are marked CHANGE`, async () => {
      const file = `config/banks/${name}.yaml`;
      const { exitCode, stdout, stderr } = await run(['check', '--config', file]);
      assert.equal(exitCode, 0, stderr);
      const warned = stdout
        .split('\n')
        .flatMap(
          (line) => /:(\d+) environments\.production\.\S+ .*placeholder; replace it/.exec(line)?.[1] ?? [],
        );
      const marked = readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line, index) => (/^\s*[^#\s].*\bCHANGE\b/.test(line) ? [`${index + 1}`] : []));
      assert.ok(marked.length > 0);
      assert.deepEqual(warned, marked, stdout);
    });
});

describe('the examples of environments', () => {
  test('are 16, and each has a profile', () => {
    const profiles = globSync('examples/banks/*.yaml').map((file) => basename(file, '.yaml'));
    assert.deepEqual(profiles.sort(), names);
    assert.equal(names.length, 16);
  });
});

/** A TPP that sends what this bank demands of it. */
function createTpp(gateway: GatewayProcess, name: string) {
  const own = demanded[name] ?? [];
  const isSigned = own.some(([field]) => field === 'Signature');
  return async (method: Call['method'], path: string, body?: string): Promise<Reply> => {
    const digest = createHash('sha256')
      .update(body ?? '')
      .digest('base64');
    const type =
      path.includes('/pain.001-') && body?.startsWith('<') ? 'application/xml' : 'application/json';
    const headers: readonly Field[] = [
      ['Penstock-Environment', name],
      ['PSU-IP-Address', '192.168.8.78'],
      ['Cache-Control', 'no-cache'],
      ...(body === undefined ? [] : ([['Content-Type', type]] as const)),
      ...(isSigned ? ([['Digest', `SHA-256=${digest}`]] as const) : []),
      ...own,
    ];
    const requestId = randomUUID();
    const reply = await call(gateway.url, { method, path, headers, body, requestId });
    assert.equal(reply.header('X-Request-ID'), requestId);
    assert.equal(reply.header('Penstock-Environment') ?? name, name);
    return reply;
  };
}

/** The targets of all links, which are objects or texts. */
function linksOf(reply: Reply): Readonly<Record<string, string>> {
  const links = Object.entries(jsonOf(reply)._links ?? {});
  return Object.fromEntries(links.map(([name, link]) => [name, typeof link === 'string' ? link : link.href]));
}

/** The link to the list of authorisations, which the bank does not write: its own path, and the same id. */
function listOf(
  written: ReturnType<typeof createLinks>,
  { pathVersion, segment }: BankProfile,
  addressed: Parameters<typeof written.payment>[0],
  type: string,
): string {
  const start = written.authorisations(addressed, type);
  const versionOf = (operation: OperationName) =>
    typeof pathVersion === 'string' ? pathVersion : pathVersion[operation];
  assert.equal(versionOf('listAuthorisations'), versionOf('startAuthorisation'), segment);
  return start;
}

/** A target with the fixed parameters of an environment. */
function withQuery(target: string, query: unknown): string {
  const fixed = Object.entries(query ?? {}).map(([name, value]) => `${name}=${value}`);
  if (fixed.length === 0) return target;
  return `${target}${target.includes('?') ? '&' : '?'}${fixed.join('&')}`;
}

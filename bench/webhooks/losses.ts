/**
 * A thousand subscriptions while endpoints fail in every way, each instance is killed, and the database is restarted; or while an endpoint
 * hangs beside a hundred of the same tenant that work. Runs in a network of its own.
 */

import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Database } from '../../src/store/database.ts';
import { callAdminApi } from '../../test/kit/admin-api.ts';
import { temporaryFolder } from '../../test/kit/folder.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { type BenchDatabase, startBenchDatabase } from './bench-database.ts';
import {
  byNumber,
  deliveryDelays,
  deliveryTakeoversMs,
  faultsOf,
  hasAccepted,
  isComplete,
  pollTakeoversMs,
  quantiles,
  type Subscribed,
} from './check-deliveries.ts';
import { type EndpointKind, endpointKinds } from './endpoint-kinds.ts';
import { type Arrival, type Endpoints, startEndpoints, urlOf } from './endpoints.ts';
import { type ProgressingBank, startProgressingBank } from './progressing-bank.ts';
import { apiKeyOf, type Initiated, initiate, tokenPrefix } from './tpp-systems.ts';

export type Losses = 'losses' | 'hanging';

export interface LossesRun {
  readonly dialect: Database['dialect'];
  readonly subscriptions: number;
  readonly instances: number;
  /** `shaping.rate`, per second. */
  readonly rate: number;
}

export interface LossesResult {
  readonly rows: readonly (readonly string[])[];
  /** A sentence for each broken promise. */
  readonly faults: readonly string[];
}

/** The initiations are spread over this time; the losses are in it. */
const initiationMs = 120_000;
/** After the start, as parts of `initiationMs`: the kills, and before the last of them the restart of the database. */
const killAt = [0.25, 0.5, 0.85] as const;
const restartAt = 0.65;
/** When the endpoints that recover do so. */
const recoverAt = 1.1;
/** Repeats of messages that were tried before the recovery: up to the third one, 2 min after the second. Minutes. */
const patienceMinutes = 12;

/** Who subscribes for which endpoint. */
interface Scenario {
  readonly clients: number;
  /** Whether each client is a tenant. */
  readonly hasTenants: boolean;
  readonly choose: (number: number) => { readonly client: number; readonly kind: EndpointKind };
}

const kindNamed = (name: string): EndpointKind => {
  const kind = endpointKinds.find((one) => one.name === name);
  if (!kind) throw new Error(`there are no endpoints of the kind ${name}`);
  return kind;
};
/** Kinds by their weight. */
const rotation = endpointKinds.flatMap((kind) => Array<EndpointKind>(kind.weight ?? 1).fill(kind));

const scenarios: Readonly<Record<Losses, Scenario>> = {
  losses: {
    clients: 10,
    hasTenants: true,
    choose: (number) => ({
      client: number % 10,
      kind: rotation[Math.floor(number / 10) % rotation.length] ?? kindNamed('works'),
    }),
  },
  hanging: {
    clients: 101,
    hasTenants: false,
    choose: (number) =>
      number % 2 === 0
        ? { client: 0, kind: kindNamed('hangs') }
        : { client: 1 + (Math.floor(number / 2) % 100), kind: kindNamed('works') },
  },
};

export async function measureLosses(
  life: TestScope,
  name: Losses,
  { dialect, subscriptions, instances, rate }: LossesRun,
): Promise<LossesResult> {
  const { clients, hasTenants, choose } = scenarios[name];
  const stored = await startBenchDatabase(life, dialect);
  const bank = await startProgressingBank(life);
  const secrets = Array.from({ length: clients }, (_, client) => secretsOf(client));
  const endpoints = await startEndpoints(life, (client) => secrets[client] ?? []);
  const folder = temporaryFolder(life);
  const encryptionKeyFile = join(folder, 'key');
  writeFileSync(encryptionKeyFile, randomBytes(32).toString('base64'));
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    clients: secrets.map((lines, client) => {
      const secretFile = join(folder, `secret-${client}`);
      writeFileSync(secretFile, lines.join('\n'));
      return {
        name: `client-${client}`,
        ...(!hasTenants && { tenant: 'all' }),
        apiKeySha256: createHash('sha256').update(apiKeyOf(client)).digest('hex'),
        notifications: { urls: endpointKinds.map((kind) => urlOf(kind, client)), secretFile },
      };
    }),
    shaping: { rate: `${rate}/s`, burst: rate, expectedInstances: instances },
    state: { ...stored.settings, encryptionKeyFile },
  };
  const variables = {
    NODE_EXTRA_CA_CERTS: endpoints.caFile,
    NODE_USE_ENV_PROXY: '1',
    HTTPS_PROXY: endpoints.proxyUrl,
    NO_PROXY: '127.0.0.1',
  };
  const gateways: GatewayProcess[] = [];
  for (let started = 0; started < instances; started++)
    gateways.push(await startGatewayProcess(life, sections, { variables }));
  const logs: string[] = [];

  const startedAtMs = performance.now();
  const untilPart = (part: number) =>
    setTimeout(Math.max(0, startedAtMs + part * initiationMs - performance.now()));
  const progress = setInterval(() => reportProgress(endpoints, bank), 15_000).unref();
  life.after(() => clearInterval(progress));

  const initiating = initiateAll(subscriptions, choose, gateways);
  const endedAtMs: number[] = [];
  const losses = async () => {
    for (const [index, at] of name === 'losses' ? killAt.entries() : []) {
      const gateway = gateways[index % gateways.length];
      if (index === killAt.length - 1 && stored.restart) {
        await untilPart(restartAt);
        await stored.restart();
        console.error('the database was restarted');
      }
      await untilPart(at);
      if (!gateway) continue;
      const ended = gateway.stop('SIGKILL');
      endedAtMs.push(performance.now());
      await ended;
      logs.push(gateway.command.stdout() + gateway.command.stderr());
      console.error(`instance ${index} was killed`);
      await gateway.start();
    }
    await untilPart(recoverAt);
    endpoints.recover();
    console.error('the endpoints have recovered');
  };
  const [initiated] = await Promise.all([initiating, losses()]);
  const recoveredAtMs = performance.now();

  const subscribed = initiated.flatMap((one): Subscribed[] => {
    const payment = bank.payments.get(one.requestId);
    return one.outcome === 'subscribed' && payment ? [{ ...one, payment }] : [];
  });
  const wanted = subscribed.filter(({ kind }) => kind.accepts);
  const missing = () => {
    const grouped = byNumber(endpoints.arrivals);
    return wanted.filter(({ number }) => !isComplete(grouped.get(number)));
  };
  const untilMs = performance.now() + patienceMinutes * 60_000;
  while (missing().length > 0 && performance.now() < untilMs) await setTimeout(1_000);
  const completeAtMs = performance.now();
  const left = await untilEnded(gateways[0], initiated);
  logs.push(...gateways.map(({ command }) => command.stdout() + command.stderr()));
  const { arrivals, connections } = endpoints;
  reportSlow(subscribed, arrivals, startedAtMs);
  const faults = [
    ...faultsOf(subscribed, arrivals),
    ...(subscribed.length < subscriptions ? [`only ${subscribed.length} subscriptions were made`] : []),
    ...(connections.forbidden > 0 ? [`${connections.forbidden} connections to forbidden addresses`] : []),
    ...(bank.repeats() > 0 ? [`${bank.repeats()} payments were initiated twice`] : []),
    ...left,
    ...tokensIn(stored, logs),
  ];
  return {
    faults,
    rows: [
      ['initiations; of them subscribed, not subscribed, in doubt', countsOf(initiated)],
      ['initiations that were sent more than once', `${initiated.filter((one) => one.attempts > 1).length}`],
      ['final statuses that were delivered', `${wanted.length - missing().length} of ${wanted.length}`],
      [
        'attempts; of them accepted, the same message accepted again',
        `${arrivals.length}, ${arrivals.filter(hasAccepted).length}, ${repeatsIn(arrivals)}`,
      ],
      ['messages that the endpoints of each kind got', countsByKind(arrivals)],
      ['payments with two attempts at the same time', `${overlapsIn(arrivals)}`],
      ['valid signatures', `${arrivals.filter(({ fault }) => !fault).length} of ${arrivals.length}`],
      ['connections to forbidden addresses', `${connections.forbidden} (${connections.public} to others)`],
      ['questions to the name server', `${endpoints.questions()}`],
      ['status reads of the bank, of them refused', `${bank.reads()}, ${bank.refused()}`],
      [
        'from the answer of the bank to the attempt: p50, p99, longest',
        quantiles(deliveryDelays(subscribed, arrivals).map(({ delayMs }) => delayMs)),
      ],
      ...endedAtMs.map((atMs, index) => [
        `takeover after kill ${index + 1}, of deliveries and of reads: p50, p99, longest`,
        `${quantiles(deliveryTakeoversMs(arrivals, atMs))}; ${quantiles(pollTakeoversMs(bank, atMs))}`,
      ]),
      [
        'from the recovery of the endpoints to the last final status',
        `${((completeAtMs - recoveredAtMs) / 1_000).toFixed(0)} s`,
      ],
    ],
  };
}

/** The first client is replacing its secret. */
function secretsOf(client: number): readonly string[] {
  const create = () => `whsec_${randomBytes(32).toString('base64')}`;
  return client === 0 ? [create(), create()] : [create()];
}

/** Makes as many subscriptions as wanted; further initiations replace those whose answer was another one. */
async function initiateAll(
  count: number,
  choose: Scenario['choose'],
  gateways: readonly GatewayProcess[],
): Promise<readonly Initiated[]> {
  const urls = gateways.map(({ url }) => url);
  const all: Promise<Initiated>[] = [];
  for (let number = 0; number < count; number++) {
    all.push(initiate(number, choose(number), urls));
    await setTimeout(initiationMs / count);
  }
  const initiated = await Promise.all(all);
  for (let number = count; initiated.filter(isSubscribed).length < count && number < 2 * count; number++)
    initiated.push(await initiate(number, choose(number), urls));
  return initiated;
}

const isSubscribed = ({ outcome }: Initiated) => outcome === 'subscribed';

function countsOf(initiated: readonly Initiated[]): string {
  const count = (outcome: Initiated['outcome']) => initiated.filter((one) => one.outcome === outcome).length;
  return `${initiated.length}; ${count('subscribed')}, ${count('not subscribed')}, ${count('in doubt')}`;
}

function countsByKind(arrivals: readonly Arrival[]): string {
  const counts = endpointKinds.map(({ name }) => {
    const ids = new Set(arrivals.filter(({ kind }) => kind === name).map(({ id }) => id));
    return `${name} ${ids.size}`;
  });
  return counts.join(', ');
}

/** How often a message was accepted after it had been accepted. */
function repeatsIn(arrivals: readonly Arrival[]): number {
  const accepted = arrivals.filter(hasAccepted);
  return accepted.length - new Set(accepted.map(({ id }) => id)).size;
}

function overlapsIn(arrivals: readonly Arrival[]): number {
  const all = [...byNumber(arrivals).values()];
  return all.filter((own) =>
    own.some((one, index) => {
      const next = own[index + 1];
      return next && (one.endMs ?? Number.POSITIVE_INFINITY) > next.atMs;
    }),
  ).length;
}

/** Waits until only the subscriptions of endpoints that never accept are left. @returns the faults otherwise */
async function untilEnded(
  gateway: GatewayProcess | undefined,
  initiated: readonly Initiated[],
): Promise<readonly string[]> {
  if (!gateway) return [];
  const byNumber = new Map(initiated.map((one) => [String(one.number), one]));
  const faults = async () => {
    const { text } = await callAdminApi(gateway, 'GET', '/api/notifications');
    const listed: { url: string; state: string; why?: string }[] = JSON.parse(text); // of our own gateway
    return listed.flatMap(({ url, ...shown }) => {
      const one = byNumber.get(/\/(\d+)$/.exec(url)?.[1] ?? '');
      const isExpected = one?.kind.name === 'private' || one?.kind.name === 'untrusted';
      return isExpected
        ? []
        : `a subscription has not ended: ${url}, ${one?.outcome}, ${JSON.stringify(shown)}`;
    });
  };
  for (let tries = 0; tries < 60 && (await faults()).length > 0; tries++) await setTimeout(500);
  return faults();
}

/** Whether a token can be read in the files of the database or in a log. */
function tokensIn({ folder }: BenchDatabase, logs: readonly string[]): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));
  const isIn = (text: string) => text.includes(tokenPrefix);
  return [
    ...(files.length === 0 ? ['the database has no file'] : []),
    ...(texts.some(isIn) ? ['a file of the database contains a token'] : []),
    ...(logs.some(isIn) ? ['a log contains a token'] : []),
  ];
}

/** Messages that took long, to look for the reason in the log of the run. */
function reportSlow(
  subscribed: readonly Subscribed[],
  arrivals: readonly Arrival[],
  startedAtMs: number,
): void {
  for (const { number, shownAtMs, delayMs } of deliveryDelays(subscribed, arrivals))
    if (delayMs > 5_000) {
      const seconds = [shownAtMs - startedAtMs, delayMs].map((ms) => (ms / 1_000).toFixed(1));
      console.error(`the status of ${number}, shown after ${seconds[0]} s, arrived ${seconds[1]} s later`);
    }
}

function reportProgress({ arrivals }: Endpoints, bank: ProgressingBank): void {
  const complete = [...byNumber(arrivals).values()].filter(isComplete).length;
  console.error(
    `${arrivals.length} attempts, ${complete} final statuses accepted; ${bank.payments.size} payments, ${bank.reads()} reads`,
  );
}

/** A gateway whose output is captured completely: log, admin API, console, spans, Redis commands, errors to TPPs. */

import { createHash } from 'node:crypto';
import type { TestContext } from 'node:test';
import { format } from 'node:util';
import { Redis } from 'ioredis';
import { explain } from '../../src/commands/explain.ts';
import { assembleGateway } from '../../src/gateway.ts';
import { optionalOperations } from '../../src/pis/operations.ts';
import type { BankOptions, SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { callAdminApi } from './admin-api.ts';
import { apiKeys, paymentIdWithCanary } from './canaries.ts';
import {
  adminToken,
  configOf,
  readTestCredentials,
  type Sections,
  startBank,
  withoutLimits,
} from './gateway.ts';
import { startOtlpCollector } from './otlp-collector.ts';
import { type RawAnswer, sendRaw } from './raw-connection.ts';
import { skipWithoutRedisServer, startRedis } from './redis.ts';
import { endWith } from './test-scope.ts';
import { within } from './within.ts';

/** All channels of output, each with a pattern that its output matches if the channel works. */
export const outputChannels = {
  'the log, as JSON': /"message":"/,
  'the log, as text': / (INFO|WARN): /,
  'the console and warnings': /^/,
  metrics: /penstock_requests_total/,
  'reports, and penstock explain': /answered \d+/,
  'the event stream': /"samples":/,
  'the admin API': /"standardVersion":/,
  spans: /penstock\.request_id|"resourceSpans"/,
  'errors to TPPs': /^/,
  'keys in Redis': /penstock:/,
  'commands to Redis': /environment:beat/,
} as const;
export type OutputChannel = keyof typeof outputChannels;

export interface CapturedGateway {
  readonly bank: SimulatedBank;
  readonly port: number;
  readonly adminUrl: string;
  /** All lines of the log, at level trace. */
  readonly lines: readonly string[];
  /** Secrets of the configuration that no output may contain. */
  readonly secrets: readonly string[];
  /** A client of its Redis, if there is one. */
  readonly redis: Redis | undefined;
  /** Sends a request, whose report `outputs` will contain. */
  send(request: string): Promise<RawAnswer>;
  /** Stops the gateway. @returns all output by channel, without those of Redis if there is none */
  outputs(): Promise<Partial<Readonly<Record<OutputChannel, string>>>>;
}

/** Differences from the gateway that most tests need. */
export interface CaptureOptions {
  readonly bank?: BankOptions;
  /** Settings of the environment other than its base URL. */
  readonly environment?: object;
  /** Sections of the configuration. */
  readonly sections?: Sections;
  readonly secrets?: readonly string[];
}

/** The password of its Redis. */
export const redisPassword = 'canary-redis-password';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A gateway, a bank, a collector and, if available, a Redis. Stopped when the test ends. */
export async function startCapturedGateway(
  t: TestContext,
  options: CaptureOptions = {},
): Promise<CapturedGateway> {
  const captured = captureLogsAndConsole(t);
  const [collector, bank, redis] = [
    await startOtlpCollector(t),
    await startBank(t, options.bank),
    skipWithoutRedisServer ? undefined : await startMonitoredRedis(t),
  ];
  bank.nextPaymentId(paymentIdWithCanary);
  const config = configOf(
    withoutLimits({
      ...{ listen: { port: 0 }, admin: { port: 0 } },
      standard: { alsoOffer: optionalOperations },
      environments: { sandbox: { baseUrl: bank.baseUrl, ...options.environment } },
      clients: Object.entries(apiKeys).map(([name, key]) => ({
        name,
        tenant: name,
        apiKeySha256: sha256(key),
      })),
      deadlines: { connect: '500ms', status: '2s', read: '2s', write: '2s' },
      shaping: { maxWait: { write: '300ms', read: '300ms', status: '300ms' } },
      idempotency: { wait: '1s' },
      tracing: { otlpUrl: collector.url, sample: '100%' },
      ...options.sections,
    }),
    redis && { PENSTOCK_STATE_REDIS: redis.url },
  );
  // A long deadline: on a busy machine, only the test may make the state unavailable.
  const onProblem = (problem?: string) =>
    captured.log('warn', 'the state', { why: problem ?? 'has no problem' });
  const state =
    redis && createRedisState({ kind: 'single', url: redis.url }, config.state.prefix, onProblem, 2_000);
  const gateway = assembleGateway(config, captured.log, readTestCredentials, state && { state });
  const { tppPort: port, adminPort } = await gateway.start();
  endWith(t, () => gateway.stop());
  const adminListener = { adminUrl: `http://127.0.0.1:${adminPort}` };
  const answers: RawAnswer[] = [];

  return {
    ...{ bank, port, adminUrl: adminListener.adminUrl, lines: captured.json, redis: redis?.client },
    secrets: [adminToken, redisPassword, ...Object.values(apiKeys).map(sha256), ...(options.secrets ?? [])],
    async send(request) {
      const answer = await sendRaw(port, request);
      answers.push(answer);
      return answer;
    },
    async outputs() {
      const shown = await adminOutputs(adminListener, answers);
      const keys = await redis?.keys();
      await gateway.stop(); // which sends the last spans
      return {
        'the log, as JSON': captured.json.join(''),
        'the log, as text': captured.text.join(''),
        'the console and warnings': captured.elsewhere.join('\n'),
        ...shown,
        spans: collector.bodies.join('\n'),
        // All other responses are those of the bank, passed on unchanged.
        'errors to TPPs': answers
          .filter(({ headers }) => headers.has('penstock-error'))
          .map(({ headers, body }) => JSON.stringify([...headers]) + body)
          .join('\n'),
        ...(redis && { 'keys in Redis': keys ?? '', 'commands to Redis': redis.commands.join('\n') }),
      };
    },
  };
}

/** The log in both formats, the console and process warnings. */
function captureLogsAndConsole(t: TestContext) {
  const [json, text, elsewhere]: [string[], string[], string[]] = [[], [], []];
  const logs = [
    createLog({ level: 'trace', format: 'json' }, { write: (line) => void json.push(line) }),
    createLog({ level: 'trace', format: 'text' }, { write: (line) => void text.push(line) }),
  ];
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const)
    t.mock.method(console, name, (...said: unknown[]) => void elsewhere.push(format(...said)));
  const warned = (warning: Error) => void elsewhere.push(format(warning));
  process.on('warning', warned);
  endWith(t, () => process.off('warning', warned));
  const log: Parameters<typeof assembleGateway>[1] = (...line) => {
    for (const one of logs) one(...line);
  };
  return { log, json, text, elsewhere };
}

function disconnectAfter(t: TestContext, client: Redis): Redis {
  endWith(t, () => client.disconnect());
  return client.on('error', () => {});
}

/** A Redis with a password, and all commands that it receives, with keys and values. */
async function startMonitoredRedis(t: TestContext) {
  const { port } = await startRedis(t, ['--requirepass', redisPassword]);
  const url = `redis://:${redisPassword}@127.0.0.1:${port}`;
  // Both connections are idle while the second one starts MONITOR: ioredis would take its output for a reply.
  const client = disconnectAfter(t, new Redis(url, { enableReadyCheck: false }));
  await client.ping();
  const monitor = disconnectAfter(t, await client.monitor());
  const commands: string[] = [];
  monitor.on('monitor', (_time: string, args: readonly string[]) => void commands.push(args.join(' ')));
  return { url, client, commands, keys: async () => (await client.keys('*')).join('\n') };
}

const pages = [
  ...['environments', 'circuits', 'in-doubt', 'audit', 'audit/verify', 'config'],
  ...['search?limit=500', 'errors', 'history', 'payments', `payments/sandbox/${paymentIdWithCanary}`],
].map((page) => `/api/${page}`);

/** Reports of one kind of answer that are read one by one. */
const reportsPerKind = 3;

/**
 * The output of the admin listener: pages, metrics, event stream, and a report of each request. The search lists the same reports: of
 * many answers with one status and error code, the others are read there, because to find each of them takes long.
 */
async function adminOutputs(gateway: Pick<CapturedGateway, 'adminUrl'>, answers: readonly RawAnswer[]) {
  const textAt = async (path: string) => (await callAdminApi(gateway, 'GET', path)).text;
  const reports: string[] = [];
  const shown = await Promise.all([...pages, '/health/live', '/health/ready', '/'].map(textAt));
  const listed = shown.join('\n');
  const counts = new Map<string, number>();
  for (const { status: answered, headers } of answers) {
    const kind = `${answered} ${headers.get('penstock-error')}`;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const requestId = headers.get('x-request-id') ?? '';
    if (count > reportsPerKind && listed.includes(`"${requestId}"`)) continue;
    const callAdmin = async (method: string, path: string) => {
      const { status, text } = await callAdminApi(gateway, method, `/api${path}`);
      reports.push(text);
      return { ok: status === 200, status, body: JSON.parse(text) };
    };
    reports.push(...(await explain(callAdmin, requestId)).lines);
  }
  return {
    'reports, and penstock explain': reports.join('\n'),
    'the admin API': listed,
    metrics: await textAt('/metrics'),
    'the event stream': await firstEvents(gateway.adminUrl),
  };
}

/** The snapshot and the first tick. */
async function firstEvents(adminUrl: string): Promise<string> {
  const headers = { Authorization: `Bearer ${adminToken}` };
  const { body } = await fetch(`${adminUrl}/api/events`, { headers });
  let text = '';
  const reading = async () => {
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.split('\n\n').length > 2) return;
    }
  };
  await within(5_000, 'two events', reading());
  return text;
}

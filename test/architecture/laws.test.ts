import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { roomOf, type Source, sources } from './sources.ts';

/** Which rooms a room may import from, beside itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  pis: [],
  flow: ['pis'],
  config: ['pis', 'flow'],
  state: ['flow', 'config'],
  telemetry: ['pis', 'flow', 'config'],
  idempotency: ['pis', 'flow', 'config', 'state', 'telemetry'],
  environments: ['pis', 'flow', 'config', 'state', 'telemetry'],
  'status-cache': ['pis', 'flow', 'config', 'state', 'telemetry'],
  rewriting: ['pis', 'flow', 'config', 'state', 'telemetry'],
  upstream: ['pis', 'flow', 'config', 'state', 'telemetry'],
  http: ['pis', 'flow', 'config', 'state', 'telemetry'],
  admin: ['pis', 'flow', 'config', 'telemetry', 'environments', 'idempotency', 'status-cache', 'upstream'],
  'pipeline.ts': [
    ...['pis', 'flow', 'config', 'telemetry'],
    ...['idempotency', 'environments', 'status-cache', 'rewriting', 'upstream'],
  ],
  'assembly.ts': [
    ...['pis', 'flow', 'config', 'state', 'telemetry', 'http', 'pipeline.ts'],
    ...['idempotency', 'environments', 'status-cache', 'rewriting', 'upstream'],
  ],
  'gateway.ts': [
    ...['pis', 'flow', 'config', 'state', 'telemetry', 'http', 'admin', 'assembly.ts'],
    ...['idempotency', 'environments', 'status-cache', 'rewriting', 'upstream'],
  ],
  commands: ['gateway.ts', 'admin', 'config', 'telemetry'],
  'main.ts': ['commands', 'config'],
  'simulated-bank': ['pis'],
};

/** `simulated-bank/demo.ts` starts the banks and the gateway together: it stands above both. */
const demo = 'simulated-bank/demo';

/** Where alone each of these may be imported. */
const homes: Readonly<Record<string, (path: string) => boolean>> = {
  express: (path) => /^(http|admin)\//.test(path),
  'http-proxy-middleware': (path) => path === 'upstream/transport.ts',
  opossum: (path) => path === 'upstream/circuit/evidence.ts',
  ioredis: (path) => path === 'state/redis.ts',
  'node:sqlite': (path) => path === 'state/file.ts',
  pino: (path) => path === 'telemetry/log.ts',
  'prom-client': (path) => path === 'telemetry/metrics.ts',
  '@opentelemetry/sdk-trace-node': (path) => path === 'telemetry/tracing.ts',
  '@opentelemetry/exporter-trace-otlp-http': (path) => path === 'telemetry/tracing.ts',
};

const breaches = (law: (source: Source) => readonly string[]) =>
  sources.flatMap((source) => law(source).map((breach) => `${source.path}: ${breach}`));

describe('the laws of the house', () => {
  test('imports run downwards, and stages never know each other', () => {
    const found = breaches(({ path, ours }) => {
      if (path.startsWith(demo)) return [];
      const room = roomOf(path);
      return ours.map(roomOf).filter((other) => other !== room && !mayImport[room]?.includes(other));
    });
    assert.deepEqual(found, []);
  });

  test('no import goes in a circle, not even of types', () => {
    const importsOf = new Map(sources.map(({ path, ours }) => [path, ours]));
    const reaches = (from: string, goal: string, seen: Set<string>): boolean =>
      (importsOf.get(from) ?? []).some((next) => {
        if (next === goal) return true;
        if (seen.has(next)) return false;
        seen.add(next);
        return reaches(next, goal, seen);
      });
    assert.deepEqual(
      breaches(({ path }) => (reaches(path, path, new Set()) ? ['imports itself in the end'] : [])),
      [],
    );
  });

  test('every vendor is known to one place', () => {
    assert.deepEqual(
      breaches(({ path, packages }) =>
        packages.filter((name) => homes[name] && !homes[name](path)).map((name) => `knows ${name}`),
      ),
      [],
    );
  });

  test('the environment variables are read by config/load.ts alone', () => {
    assert.deepEqual(
      breaches(({ path, text }) =>
        path !== 'config/load.ts' && /process\.env/.test(text) ? ['reads process.env'] : [],
      ),
      [],
    );
  });

  test('no file is longer than 250 lines', () => {
    assert.deepEqual(
      breaches(({ lines }) => (lines > 250 ? [`${lines} lines`] : [])),
      [],
    );
  });

  test('no file exports a default or passes another file through', () => {
    assert.deepEqual(
      breaches(({ text }) => text.match(/^export (?:default\b.*|\*.*|(?:type )?\{.*\} from .*)/gm) ?? []),
      [],
    );
  });

  test('every file says in its first line what it is', () => {
    assert.deepEqual(
      breaches(({ text }) => (/^(?:#!.*\n)?\/\*\*/.test(text) ? [] : ['begins without a comment'])),
      [],
    );
  });
});

/** Defaults that follow the settings that the user wrote. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { describeDerived } from '../../../src/config/derive-defaults.ts';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { withValue } from '../../../src/config/object-path.ts';
import type { Config } from '../../../src/config/schema.ts';
import { describeDefault, settingOrders } from '../../../src/config/setting-orders.ts';
import { jsonSchema, settings } from '../../../src/config/settings.ts';
import { withFile } from '../../kit/folder.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { loadValid, minimalConfig } from './load-text.ts';

const environments = { a: { baseUrl: 'https://a.example' } };

/** The derived defaults of a valid configuration, without the word `derived:`. */
function derivedIn(text: string, variables: EnvironmentVariables = {}): readonly string[] {
  const loaded = withFile(text, (file) => loadConfig(file, variables));
  assert.equal(loaded.kind, 'valid', JSON.stringify(loaded));
  return loaded.derived.map(describeDerived).map((line) => line.replace(/^derived: /, ''));
}

/** What is written, and the defaults that follow. */
const cases: readonly (readonly [text: string, ...derived: readonly string[]])[] = [
  [
    'deadlines: { write: 900ms }',
    'deadlines.connect 450ms (deadlines.write is 900ms)',
    'shaping.maxWait.write 225ms (deadlines.write is 900ms)',
    'idempotency.wait 450ms (deadlines.write is 900ms)',
  ],
  [
    'deadlines: { read: 900ms }',
    'deadlines.connect 450ms (deadlines.read is 900ms)',
    'shaping.maxWait.read 225ms (deadlines.read is 900ms)',
  ],
  [
    'deadlines: { status: 900ms }',
    'deadlines.connect 450ms (deadlines.status is 900ms)',
    'shaping.maxWait.status 225ms (deadlines.status is 900ms)',
  ],
  [
    'deadlines: { status: 1s, read: 1s, write: 1s }',
    'deadlines.connect 500ms (deadlines.status is 1s)',
    'shaping.maxWait.status 250ms (deadlines.status is 1s)',
    'shaping.maxWait.read 250ms (deadlines.read is 1s)',
    'shaping.maxWait.write 250ms (deadlines.write is 1s)',
    'idempotency.wait 500ms (deadlines.write is 1s)',
  ],
  [
    'deadlines: { connect: 60s }',
    'deadlines.status 2min (deadlines.connect is 1min)',
    'deadlines.read 2min (deadlines.connect is 1min)',
    'deadlines.write 2min (deadlines.connect is 1min)',
  ],
  [
    'deadlines: { connect: 9min, read: 10min }',
    'deadlines.status 10min (deadlines.connect is 9min)',
    'deadlines.write 10min (deadlines.connect is 9min)',
  ],
  ['shaping: { maxConcurrent: 500 }', 'upstream.maxSockets 500 (shaping.maxConcurrent is 500)'],
  ['upstream: { maxSockets: 20 }', 'shaping.maxConcurrent 20 (upstream.maxSockets is 20)'],
  ['idempotency: { wait: 40s }', 'deadlines.write 80s (idempotency.wait is 40s)'],
  ['shaping: { maxWait: { read: 20s } }', 'deadlines.read 40s (shaping.maxWait.read is 20s)'],
  [
    'idempotency: { wait: 40s, window: 1min }',
    'deadlines.write 1min (idempotency.wait is 40s, idempotency.window is 1min)',
  ],
  [
    'idempotency: { window: 2s }',
    'deadlines.write 2s (idempotency.window is 2s)',
    'deadlines.connect 1s (deadlines.write is 2s)',
    'shaping.maxWait.write 500ms (deadlines.write is 2s)',
    'idempotency.wait 1s (deadlines.write is 2s)',
  ],
  ['idempotency: { window: 500d }', 'payments.rememberFor 500d (idempotency.window is 500d)'],
  ['statusCache: { pendingTtl: 20s }', 'statusCache.pendingTtlMax 20s (statusCache.pendingTtl is 20s)'],
  ['statusCache: { pendingTtlMax: 1ms }', 'statusCache.pendingTtl 1ms (statusCache.pendingTtlMax is 1ms)'],
  ['upstream: { writeSocketIdle: 5s }', 'upstream.idle 5s (upstream.writeSocketIdle is 5s)'],
  ['upstream: { idle: 500ms }', 'upstream.writeSocketIdle 500ms (upstream.idle is 500ms)'],
  [
    'listen: { port: 9090 }',
    'admin.port 9091 (listen.port is 9090)',
    'listen.publicUrl http://127.0.0.1:9090 (listen.port is 9090)',
  ],
  [
    'admin: { port: 8080 }',
    'listen.port 8081 (admin.port is 8080)',
    'listen.publicUrl http://127.0.0.1:8081 (listen.port is 8081)',
  ],
  [
    'listen: { port: 8081 }\nnotifications: { listen: {} }',
    'notifications.listen.port 8082 (listen.port is 8081)',
    'listen.publicUrl http://127.0.0.1:8081 (listen.port is 8081)',
  ],
  ['notifications: { listen: { port: 9090 } }', 'admin.port 9091 (notifications.listen.port is 9090)'],
  ['listen: { host: "::1" }', 'listen.publicUrl http://[::1]:8080 (listen.host is ::1)'],
];

describe('a default that follows a setting', () => {
  for (const [text, ...derived] of cases)
    test(`is derived from ${text}`, () => {
      assert.deepEqual(derivedIn(`${minimalConfig}${text}`).toSorted(), derived.toSorted());
    });

  test('follows what an environment overrides', () => {
    const shaping = { maxConcurrent: 300, maxWait: { read: '20s' } };
    assert.deepEqual(derivedIn(JSON.stringify({ environments: { a: { ...environments.a, shaping } } })), [
      'upstream.maxSockets 300 (environments.a.shaping.maxConcurrent is 300)',
      'environments.a.deadlines.read 40s (environments.a.shaping.maxWait.read is 20s)',
    ]);
  });

  test('follows the deadlines of an environment in this environment only', () => {
    const text =
      'environments: { active: a, a: { baseUrl: https://a.example, deadlines: { write: 900ms } }, b: { baseUrl: https://b.example } }';
    assert.deepEqual(derivedIn(text), [
      'environments.a.deadlines.connect 450ms (environments.a.deadlines.write is 900ms)',
      'environments.a.shaping.maxWait.write 225ms (environments.a.deadlines.write is 900ms)',
    ]);
    const { environments, deadlines } = loadValid(text);
    assert.deepEqual(
      environments.all.map((one) => [one.deadlines.connect, one.deadlines.write, one.shaping.maxWait.write]),
      [
        [450, 900, 225],
        [2_000, 35_000, 10_000],
      ],
    );
    assert.equal(deadlines.connect, 2_000);
  });

  test('is derived for the other environments if one environment overrides it', () => {
    const text = `${minimalConfig.replace('}', ', deadlines: { read: 40s } }')}deadlines: { connect: 20s, status: 50s, write: 50s }`;
    assert.deepEqual(derivedIn(text), ['deadlines.read 40s (deadlines.connect is 20s)']);
  });

  test('applies to the environments as well', () => {
    const {
      environments: { all },
    } = loadValid(`${minimalConfig}deadlines: { read: 1s }\nupstream: { maxSockets: 20 }`);
    assert.deepEqual([all[0]?.shaping.maxWait.read, all[0]?.shaping.maxConcurrent], [250, 20]);
  });

  test('follows an environment variable, and a variable is not changed', () => {
    const variables = { PENSTOCK_DEADLINES_WRITE: '900ms', PENSTOCK_IDEMPOTENCY_WAIT: '100ms' };
    assert.deepEqual(derivedIn(minimalConfig, variables), [
      'deadlines.connect 450ms (deadlines.write is 900ms)',
      'shaping.maxWait.write 225ms (deadlines.write is 900ms)',
    ]);
  });

  test('stays as documented if it does not contradict what is written', () => {
    const text = `${minimalConfig}deadlines: { connect: 9s, status: 12s, read: 11s, write: 11s }\nupstream: { maxSockets: 100 }`;
    assert.deepEqual(derivedIn(text), []);
    assert.deepEqual(loadValid(text).shaping, loadValid(minimalConfig).shaping);
  });

  test('never shortens the time for which a repeat is recognised', () => {
    const { idempotency, payments } = loadValid(`${minimalConfig}payments: { rememberFor: 1h }`);
    assert.deepEqual([idempotency.window, payments.rememberFor], [86_400_000, 3_600_000]);
  });

  test('lets a client present its certificate, if the listener trusts an authority', () => {
    const client = { name: 'a', certificateSha256: 'a'.repeat(64) };
    const tls = { certFile: 'a', keyFile: 'b', clientCaFile: 'c' };
    const listen = { tls, publicUrl: 'https://gateway.example' };
    assert.deepEqual(derivedIn(JSON.stringify({ environments, clients: [client], listen })), [
      'listen.tls.clientCertificate optional (clients[0].certificateSha256 is set)',
    ]);
  });

  test('says in its description what it follows, in docs/configuration.md and in the JSON Schema', () => {
    assert.match(
      jsonSchema.properties?.deadlines?.properties?.connect?.description ?? '',
      /follows deadlines\.status, deadlines\.read and deadlines\.write: half of the shortest/,
    );
    for (const { lesser, greater, part, times } of settingOrders) {
      if (part !== undefined) assert.match(describeDefault(lesser) ?? '', RegExp(greater));
      if (times !== undefined) assert.match(describeDefault(greater) ?? '', RegExp(lesser));
    }
  });
});

/** The rules that every configuration must satisfy, stated without the table that derives the defaults. */
function assertConsistent({ deadlines, shaping, environments: { all }, ...config }: Config): void {
  for (const limits of [{ deadlines, shaping }, ...all]) {
    for (const lane of ['status', 'read', 'write'] as const) {
      assert.ok(limits.deadlines.connect < limits.deadlines[lane]);
      assert.ok(limits.shaping.maxWait[lane] < limits.deadlines[lane]);
    }
    assert.ok(limits.deadlines.write <= config.idempotency.window);
  }
  for (const { maxConcurrent } of [shaping, ...all.map((one) => one.shaping)])
    assert.ok(maxConcurrent <= config.upstream.maxSockets);
  assert.ok(config.idempotency.wait < deadlines.write && deadlines.write <= config.idempotency.window);
  assert.ok(config.idempotency.window <= Math.max(config.payments.rememberFor, 86_400_000));
  assert.ok(config.statusCache.pendingTtl <= config.statusCache.pendingTtlMax);
  assert.ok(config.upstream.writeSocketIdle <= config.upstream.idle);
  assert.ok(config.listen.port !== config.admin.port || config.listen.port === 0);
}

/** Every setting whose values can be generated from its schema, in an environment called a. */
const numeric = settings
  .map(({ path, schema }) => ({ path: path.map((name) => (name === '*' ? 'a' : name)), schema }))
  .filter(({ schema }) => schema.unit === 'duration' || schema.type === 'integer');

/** Those that limit others, or are limited by them. */
const limited = numeric.filter(({ path }) =>
  settingOrders.some((order) => [order.lesser, order.greater].some((name) => path.join('.').endsWith(name))),
);

/** A setting and a value, more often near the defaults and the bounds, where contradictions begin. */
const written = fc
  .oneof(fc.constantFrom(...numeric), fc.constantFrom(...limited))
  .chain(({ path, schema }) => {
    const { minimum = 0, maximum = 1_000_000 } = schema;
    const durations = fc.oneof(
      fc.constantFrom(
        '0ms',
        '1ms',
        '2ms',
        '3ms',
        '900ms',
        '1s',
        '2s',
        '10s',
        '15s',
        '35s',
        '5min',
        '599s',
        '10min',
      ),
      fc.constantFrom('1h', '24h', '400d', '3650d'),
      fc.integer({ min: 0, max: 700_000 }).map((ms) => `${ms}ms`),
    );
    const integers = fc.oneof(
      fc.constantFrom(minimum, maximum, 8080, 9090, 100, 128).filter((value) => value <= maximum),
      fc.integer({ min: minimum, max: Math.min(maximum, 2_000) }),
    );
    return fc.tuple(fc.constant(path), schema.unit === 'duration' ? durations : integers);
  });

/** The settings that an error names: where it is reported, and those in its text. */
const namesIn = (error: string) =>
  [...error.matchAll(/[a-zA-Z]+(?:\.[a-zA-Z]+)+/g)]
    .map(([name]) => name)
    .filter((name) => /\.[a-z]/.test(name));

describe('random settings', () => {
  for (const [what, count] of [
    ['one setting', 1],
    ['two settings', 2],
    ['five settings', 5],
  ] as const)
    test(`with ${what} written, no error names another setting, and a valid configuration is consistent`, (t) => {
      const chosen = fc.uniqueArray(written, {
        minLength: count,
        maxLength: count,
        selector: ([path]) => path.join('.'),
      });
      fc.assert(
        fc.property(chosen, (values) => {
          const names = values.map(([path]) => path.join('.'));
          const { errors, config } = loadWritten(values);
          if (config) assertConsistent(config);
          if (count === 1)
            assert.ok(
              errors.every((error) => error.includes('expected at')),
              errors.join(),
            );
          for (const error of errors)
            assert.ok(
              namesIn(error).length > 0 && namesIn(error).every((name) => names.includes(name)),
              error,
            );
        }),
        seededRuns(t, 300),
      );
    });
});

/** Loads the settings, with PostgreSQL and Redis, so that there may be several instances. */
function loadWritten(values: readonly (readonly [path: readonly string[], value: unknown])[]) {
  const tree = values.reduce<unknown>((reduced, [path, value]) => withValue(reduced, path, value), {
    environments,
    state: { postgres: 'postgres://penstock@db/penstock', redis: 'redis://redis:6379' },
  });
  return withFile(JSON.stringify(tree), (file) => {
    const loaded = loadConfig(file, {});
    if (loaded.kind === 'valid') return { config: loaded.config, errors: [] };
    return { errors: loaded.errors.map((error) => error.replace(file, '')) };
  });
}

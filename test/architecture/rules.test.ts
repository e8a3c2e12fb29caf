import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { consoleFiles, folderOf, type Source, sources } from './sources.ts';

/** Folders (or files at the top of `src/`) that each folder may import from, apart from itself. */
const foundation = ['pis', 'request', 'config', 'certificates', 'store', 'state', 'telemetry', 'contract'];
const parts = [
  ...['identities', 'idempotency', 'environments', 'status-cache', 'rewriting', 'upstream', 'http'],
  'notifications',
  'payments',
  'contract-guard',
];
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  pis: [],
  certificates: [],
  'periodic-task.ts': [],
  request: ['pis'],
  contract: ['pis'],
  config: ['pis', 'request', 'certificates', 'contract'],
  store: ['request', 'config'],
  state: ['request', 'config', 'certificates', 'store'],
  'version.ts': [],
  telemetry: ['pis', 'request', 'config', 'certificates', 'store', 'state', 'version.ts'],
  'request-records': foundation,
  ...Object.fromEntries(parts.map((part) => [part, foundation])),
  'contract-guard': foundation.filter((folder) => folder !== 'state'),
  alerts: ['pis', 'certificates', 'telemetry', 'upstream', 'idempotency'],
  'self-service': [...foundation, 'idempotency'],
  admin: [
    ...[...foundation, 'request-records', 'identities', 'environments', 'idempotency', 'status-cache'],
    'upstream',
    'self-service',
    'notifications',
    'payments',
    'contract-guard',
    'identities',
    'alerts',
  ],
  'pipeline.ts': [...foundation, ...parts],
  'database-heartbeat.ts': ['store', 'telemetry', 'environments', 'upstream', 'periodic-task.ts'],
  'database-metrics.ts': ['store', 'telemetry'],
  'state-heartbeat.ts': ['state', 'periodic-task.ts'],
  'services.ts': [
    ...[...foundation, ...parts, 'request-records', 'self-service', 'admin'],
    ...['periodic-task.ts', 'database-heartbeat.ts', 'database-metrics.ts', 'state-heartbeat.ts'],
  ],
  'request-handler.ts': [...foundation, ...parts, 'self-service', 'admin', 'pipeline.ts', 'services.ts'],
  'readiness.ts': [...foundation, 'http', 'admin', 'services.ts', 'request-handler.ts'],
  'reload-config.ts': [...foundation, 'admin', 'services.ts', 'request-handler.ts'],
  'admin-listener.ts': [...foundation, 'http'],
  'admin-server.ts': [
    ...[...foundation, ...parts, 'admin', 'services.ts', 'request-handler.ts', 'readiness.ts'],
    'admin-listener.ts',
    'gateway-alerts.ts',
  ],
  'bank-notification-listener.ts': [...foundation, 'http', 'notifications'],
  'bank-notification-server.ts': [
    ...[...foundation, 'http', 'notifications', 'services.ts', 'request-handler.ts'],
    'bank-notification-listener.ts',
  ],
  'gateway-alerts.ts': [...[...foundation, 'alerts', 'services.ts', 'request-handler.ts', 'readiness.ts']],
  'instance-report.ts': ['config', 'telemetry', 'upstream', 'admin', 'version.ts'],
  'fleet-tasks.ts': [
    ...[...foundation, 'http', 'admin', 'periodic-task.ts', 'version.ts'],
    ...['services.ts', 'request-handler.ts', 'readiness.ts', 'instance-report.ts', 'gateway-alerts.ts'],
  ],
  'gateway.ts': [
    ...[...foundation, 'http', 'admin', 'periodic-task.ts'],
    ...[
      'services.ts',
      'request-handler.ts',
      'reload-config.ts',
      'readiness.ts',
      'fleet-tasks.ts',
      'admin-server.ts',
      'gateway-alerts.ts',
      'bank-notification-server.ts',
    ],
  ],
  commands: [
    ...['environments', 'identities', 'alerts'],
    'gateway.ts',
    'reload-config.ts',
    'admin',
    'config',
    'store',
    'state',
    'identities',
    'environments',
    'telemetry',
    'version.ts',
    'simulated-bank',
  ],
  'main.ts': ['commands'],
  'library.ts': ['admin', 'config', 'telemetry', 'gateway.ts'],
  'simulated-bank': ['pis'],
};

/** The only files that may import each package. */
const allowedImporters: Readonly<Record<string, (path: string) => boolean>> = {
  express: (path) => /^(http|admin)\//.test(path),
  negotiator: (path) => path === 'http/accept.ts',
  ajv: (path) => path === 'contract/compile-schemas.ts',
  ibantools: (path) => path === 'contract/iban.ts',
  saxes: (path) => path === 'contract/read-xml.ts' || path === 'request/read-content.ts',
  commander: (path) => path === 'commands/command-line.ts',
  'http-proxy-middleware': (path) => path === 'upstream/transport.ts',
  opossum: (path) => path === 'upstream/circuit/failure-window.ts',
  ioredis: (path) => path === 'state/redis-client.ts',
  pg: (path) => path === 'store/postgres.ts',
  'proxy-from-env': (path) => path === 'upstream/egress-proxy.ts',
  'node:sqlite': (path) => ['store/sqlite.ts', 'store/sqlite-file.ts'].includes(path),
  'openid-client': (path) => path === 'admin/oidc-provider.ts',
  pino: (path) => path === 'telemetry/log.ts',
  'pino-pretty': (path) => path === 'telemetry/log.ts',
  'prom-client': (path) => path === 'telemetry/metrics.ts',
  '@opentelemetry/sdk-trace-node': (path) => path === 'telemetry/tracing.ts',
  '@opentelemetry/exporter-trace-otlp-http': (path) => path === 'telemetry/tracing.ts',
};

/** No file may be longer. A file that approaches this limit usually holds two concepts. */
const maxLines = 600;

/** The page of the error reference: `npm run docs`. */
const generatedPage = 'admin/console/errors.html';

const violations = (rule: (source: Source) => readonly string[]) =>
  sources.flatMap((source) => rule(source).map((violation) => `${source.path}: ${violation}`));

describe('the architecture rules', () => {
  test('a folder imports only from the folders below it, and stages never import each other', () => {
    const found = violations(({ path, ours }) => {
      const folder = folderOf(path);
      return ours
        .map(folderOf)
        .filter((other) => other !== folder && !allowedImports[folder]?.includes(other));
    });
    assert.deepEqual(found, []);
  });

  test('no file imports itself through other files, not even for types', () => {
    const importsOf = new Map(sources.map(({ path, ours }) => [path, ours]));
    const reaches = (from: string, goal: string, seen: Set<string>): boolean =>
      (importsOf.get(from) ?? []).some((next) => {
        if (next === goal) return true;
        if (seen.has(next)) return false;
        seen.add(next);
        return reaches(next, goal, seen);
      });
    assert.deepEqual(
      violations(({ path }) => (reaches(path, path, new Set()) ? ['import cycle'] : [])),
      [],
    );
  });

  test('each package of a vendor is imported in one place only', () => {
    assert.deepEqual(
      violations(({ path, packages }) =>
        packages.filter((name) => allowedImporters[name]?.(path) === false).map((name) => `imports ${name}`),
      ),
      [],
    );
  });

  test('only config/load.ts reads environment variables', () => {
    assert.deepEqual(
      violations(({ path, text }) =>
        path !== 'config/load.ts' && /process\.env/.test(text) ? ['reads process.env'] : [],
      ),
      [],
    );
  });

  test(`no file has more than ${maxLines} lines`, () => {
    assert.deepEqual(
      violations(({ lines }) => (lines > maxLines ? [`${lines} lines`] : [])),
      [],
    );
  });

  test(`each file of the console begins with a comment and has at most ${maxLines} lines`, () => {
    const found = consoleFiles.flatMap(({ path, text }) => [
      ...(text.split('\n').length > maxLines + 1 && path !== generatedPage ? [`${path}: too long`] : []),
      ...(/^\/\*\*|^<(!doctype html|svg)/.test(text) ? [] : [`${path}: does not begin with a comment`]),
    ]);
    assert.deepEqual(found, []);
    assert.ok(consoleFiles.length > 10);
  });

  test('no file has a default export or re-exports another file', () => {
    assert.deepEqual(
      violations(({ text }) => text.match(/^export (?:default\b.*|\*.*|(?:type )?\{.*\} from .*)/gm) ?? []),
      [],
    );
  });

  test('every file begins with a comment that says what it is', () => {
    assert.deepEqual(
      violations(({ text }) => (/^(?:#!.*\n)?\/\*\*/.test(text) ? [] : ['does not begin with a comment'])),
      [],
    );
  });
});

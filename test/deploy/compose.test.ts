/** compose.yaml agrees with itself and with what it starts. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { reusePortWarning } from '../../src/http/reuse-port.ts';
import { root } from '../kit/command.ts';
import { at, configIn, documentsIn, entriesAt, listAt, textOf } from './files.ts';

const [compose] = documentsIn('compose.yaml');
const services = new Map(entriesAt(compose, 'services'));
const gateways = ['gateway-1', 'gateway-2'].map((name) => services.get(name));
const banks = ['bank-sandbox', 'bank-production'].map((name) => services.get(name));
const variablesOf = (service: unknown) =>
  Object.fromEntries(entriesAt(service, 'environment').map(([name, value]) => [name, String(value)]));
const configs = gateways.map((gateway) => configIn('deploy/compose/penstock.yaml', variablesOf(gateway)));

describe('compose.yaml', () => {
  test('starts two gateways, PostgreSQL, its migration, Redis, two banks, Prometheus and Grafana', () => {
    const names = [
      'bank-production',
      'bank-sandbox',
      'gateway-1',
      'gateway-2',
      'grafana',
      'migrate',
      'postgres',
      'prometheus',
      'redis',
    ];
    assert.deepEqual([...services.keys()].toSorted(), names);
    for (const [name, service] of services) assert.ok(at(service, 'image') || at(service, 'build'), name);
  });

  test('starts gateways that share the public port and have an admin port each', () => {
    const [one, other] = configs;
    assert.ok(one?.listen.reusePort && other?.listen.reusePort);
    assert.equal(one.listen.port, other.listen.port);
    assert.notEqual(one.admin.port, other.admin.port);
    assert.equal(at(services.get('bank-sandbox'), 'sysctls', 'net.ipv4.tcp_migrate_req'), 1);
    assert.match(reusePortWarning('/nonexistent') ?? '', /net\.ipv4\.tcp_migrate_req=1/);
  });

  test('gives a gateway more time to stop than it needs at most', () => {
    for (const [index, gateway] of gateways.entries()) {
      const seconds = Number(/^(\d+)s$/.exec(String(at(gateway, 'stop_grace_period')))?.[1]);
      assert.ok(seconds * 1_000 > (configs[index]?.deadlines.write ?? Number.NaN) + 6_000);
    }
  });

  test('starts the banks at the addresses that the gateways use', () => {
    const wanted = configs[0]?.environments.all.map(({ baseUrl }) => baseUrl);
    for (const bank of banks) assert.equal(listAt(bank, 'command')[0], 'bank');
    const offered = banks.map((bank) => {
      const option = (name: string) => listAt(bank, 'command')[listAt(bank, 'command').indexOf(name) + 1];
      const basePath = listAt(bank, 'command').includes('--base-path') ? option('--base-path') : '';
      return `http://${option('--host')}:${option('--port')}${basePath}`;
    });
    assert.deepEqual(offered, wanted);
    for (const service of [...gateways, banks[1]])
      assert.equal(at(service, 'network_mode'), 'service:bank-sandbox');
  });

  test('starts a PostgreSQL with a volume, at the address and with the password that the gateways use', () => {
    const postgres = services.get('postgres');
    assert.match(String(at(postgres, 'image')), /^postgres:\d+\.\d+-/);
    assert.ok(at(postgres, 'healthcheck', 'test'));
    const [volume = ''] = listAt(postgres, 'volumes').map(String);
    assert.ok(
      entriesAt(compose, 'volumes').some(([name]) => volume.startsWith(`${name}:/var/lib/postgresql/`)),
    );

    const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE } = variablesOf(postgres);
    const [secret] = listAt(postgres, 'secrets').map(String);
    assert.equal(POSTGRES_PASSWORD_FILE, `/run/secrets/${secret}`);
    const password = textOf(String(at(compose, 'secrets', String(secret), 'file')));
    const url = `postgres://${POSTGRES_USER}:${password}@postgres:5432/${POSTGRES_DB}`;
    for (const config of configs) assert.equal(config.state.postgres, url);
  });

  test('creates the tables before the gateways start, in the database that they use', () => {
    const migration = services.get('migrate');
    assert.deepEqual(listAt(migration, 'command'), ['migrate']);
    assert.equal(at(migration, 'restart'), 'no');
    assert.equal(at(migration, 'depends_on', 'postgres', 'condition'), 'service_healthy');
    for (const gateway of gateways) {
      assert.equal(at(gateway, 'depends_on', 'migrate', 'condition'), 'service_completed_successfully');
      assert.equal(
        variablesOf(migration).PENSTOCK_STATE_POSTGRES,
        variablesOf(gateway).PENSTOCK_STATE_POSTGRES,
      );
    }
    assert.deepEqual(listAt(migration, 'volumes'), listAt(gateways[0], 'volumes'), 'the same configuration');
  });

  test('starts a Redis that evicts nothing, at the address that the gateways use', () => {
    const command = listAt(services.get('redis'), 'command').join(' ');
    assert.match(command, /--maxmemory-policy noeviction/);
    assert.deepEqual(configs[0]?.state.redis, { kind: 'single', url: 'redis://redis:6379/0' });
  });

  test('publishes each listening port once, and on the loopback interface only', () => {
    const published = [...services.values()].flatMap((service) => listAt(service, 'ports').map(String));
    const outside = published.map(
      (port) => /^127\.0\.0\.1:(\d+):(\d+)$/.exec(port)?.slice(1).map(Number) ?? [],
    );
    assert.equal(new Set(outside.map(([port]) => port)).size, published.length);
    const inside = listAt(services.get('bank-sandbox'), 'ports').map((port) =>
      Number(String(port).split(':')[2]),
    );
    assert.deepEqual(inside, [8080, ...configs.map(({ admin }) => admin.port)]);
  });

  test('mounts only files that exist', () => {
    for (const [name, service] of services)
      for (const mount of listAt(service, 'volumes')
        .map(String)
        .filter((one) => one.startsWith('./')))
        assert.ok(existsSync(join(root, mount.split(':')[0] ?? '')), `${name}: ${mount}`);
  });

  test('lets Prometheus scrape both admin ports under a name that resolves', () => {
    const [prometheus] = documentsIn('deploy/prometheus/prometheus.yaml');
    const targets = listAt(prometheus, 'scrape_configs', 0, 'static_configs', 0, 'targets');
    assert.deepEqual(
      targets,
      configs.map(({ admin }) => `penstock:${admin.port}`),
    );
    assert.deepEqual(at(services.get('bank-sandbox'), 'networks', 'default', 'aliases'), ['penstock']);
    const [datasources] = documentsIn('deploy/grafana/datasource.yaml');
    assert.equal(at(datasources, 'datasources', 0, 'url'), 'http://prometheus:9090');
  });

  test('gives each operator and the client a secret of their own, which a comment states', () => {
    const lines = textOf('deploy/compose/penstock.yaml').split('\n');
    const tokens = lines.flatMap((line) => /# token: (\S+)$/.exec(line)?.[1] ?? []);
    const hashes = tokens.map((token) => createHash('sha256').update(token).digest('hex'));
    for (const { admin } of configs)
      assert.deepEqual(
        admin.operators.map(({ tokenSha256 }) => tokenSha256),
        hashes,
      );
    assert.equal(new Set(tokens).size, 2);
    const [key = ''] = lines.flatMap((line) => /# X-API-Key: (\S+)$/.exec(line)?.[1] ?? []);
    for (const { clients } of configs)
      assert.deepEqual(
        clients.map(({ apiKeySha256 }) => apiKeySha256),
        [createHash('sha256').update(key).digest('hex')],
      );
    for (const gateway of gateways) assert.equal(variablesOf(gateway).PENSTOCK_ADMIN_TOKEN, undefined);
  });

  test('runs the gateways, the migration and the banks with a read-only file system', () => {
    for (const service of [...gateways, ...banks, services.get('migrate')]) {
      assert.equal(at(service, 'read_only'), true);
      assert.deepEqual(at(service, 'cap_drop'), ['ALL']);
    }
  });
});

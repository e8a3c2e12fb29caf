/** Redis with a password, restricted rights, or TLS. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { call, jsonOf } from '../kit/call.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { createAuthority } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { assertUnavailable, createWatchedState, openRedisState } from '../kit/redis-outage.ts';
import { startRedisProcess } from '../kit/redis-process.ts';
import { initiation } from '../kit/request.ts';
import { outcomeOf } from '../kit/writes.ts';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';

describe('access to Redis', { skip: skipWithoutRedisServer }, () => {
  test('uses the user and the database of the address', async (t) => {
    const redis = await startRedis(t);
    await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>p@ss/word', '~test:*', '&test:*', '+@all');
    const url = redis.url.replace('//', '//gateway:p%40ss%2Fword@').concat('/3');
    const { keyValues, pubsub } = await openRedisState(t, { kind: 'single', url });
    await keyValues.write('key', 'value');
    await pubsub.publish('channel', 'message');
    assert.match(String(await redis.command('INFO', 'keyspace')), /^db3:keys=1/m);
  });

  test('reports a wrong password as the problem, without the password', async (t) => {
    const redis = await startRedis(t, ['--requirepass', 'right-word']);
    const url = redis.url.replace('//', '//:wrong-word@');
    const state = createWatchedState(t, { kind: 'single', url });
    await state.open();
    assert.match(state.problem() ?? '', /WRONGPASS/);
    assert.doesNotMatch(state.problem() ?? '', /wrong-word/);
    await assertUnavailable(() => state.keyValues.read('key'));
  });

  test('fails to open if the user lacks the permission for INFO', async (t) => {
    const printed = t.mock.method(console, 'warn', () => {});
    const redis = await startRedis(t);
    await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>word', '~*', '&*', '+@all', '-info');
    const url = redis.url.replace('//', '//gateway:word@');
    await assert.rejects(
      createWatchedState(t, { kind: 'single', url }).open(),
      /lacks the permission for INFO.*\+info/,
    );
    assert.ok(printed.mock.callCount() <= 1, 'ioredis prints a warning of its own');
  });

  test('works over TLS only if the certificate is trusted', async (t) => {
    const tlsPort = await freePort();
    await startRedisProcess(t, (_port, folder) => {
      const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
      writeFileSync(certFile, certificate);
      writeFileSync(keyFile, key, { mode: 0o600 });
      const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile];
      return ['--save', '', '--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...files];
    });
    const settings = { kind: 'single' as const, url: `rediss://127.0.0.1:${tlsPort}` };
    const untrusting = createWatchedState(t, settings);
    await untrusting.open();
    assert.match(untrusting.problem() ?? '', /certificate/);

    const trusted = getCACertificates();
    t.after(() => setDefaultCACertificates(trusted));
    setDefaultCACertificates([...trusted, certificate]);
    const { keyValues } = await openRedisState(t, settings);
    await keyValues.write('key', 'value');
    assert.equal(await keyValues.read('key'), 'value');
  });

  test('works with a private authority and a client certificate that Redis demands (state.redisTls)', async (t) => {
    const authority = createAuthority(t);
    const [server, client] = [authority.issue('redis'), authority.issue('gateway')];
    const tlsPort = await freePort();
    await startRedisProcess(t, () => [
      ...['--save', '', '--tls-port', String(tlsPort), '--tls-auth-clients', 'yes'],
      ...['--tls-cert-file', server.certFile, '--tls-key-file', server.keyFile],
      ...['--tls-ca-cert-file', authority.certFile],
    ]);
    const bank = await startBank(t);
    const start = (redisTls: object) =>
      startGateway(t, {
        environments: { sandbox: { baseUrl: bank.baseUrl } },
        state: { redis: `rediss://127.0.0.1:${tlsPort}`, redisTls },
      });
    const { certFile, keyFile } = client;
    const caFile = authority.certFile;
    /** What the gateway says of Redis; every payment is executed nevertheless. */
    const problemWith = async (redisTls: object) => {
      const gateway = await start(redisTls);
      assert.equal(outcomeOf(await call(gateway.url, initiation)), '201');
      const { reasons } = jsonOf(await call(gateway.adminUrl, { method: 'GET', path: '/health/ready' }));
      return (reasons as readonly string[]).find((reason) => /Redis/.test(reason));
    };
    assert.equal(await problemWith({ caFile, certFile, keyFile }), undefined);
    assert.equal(await problemWith({ caFile, certFile, keyFile, serverName: 'localhost' }), undefined);
    for (const refused of [
      { caFile },
      { certFile, keyFile },
      { caFile, certFile, keyFile, serverName: 'another' },
    ])
      assert.match((await problemWith(refused)) ?? '', /Redis/);
  });
});

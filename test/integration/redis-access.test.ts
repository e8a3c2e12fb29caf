/** Redis behind a password, with restricted rights, and over TLS. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { freePort } from '../kit/ports.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { createWatchedState, openRedisState, timeToFail } from '../kit/redis-outage.ts';
import { startRedisProcess } from '../kit/redis-process.ts';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';

describe('Redis', { skip: skipWithoutRedisServer }, () => {
  test('is used as the user and in the database that the address names', async (t) => {
    const redis = await startRedis(t);
    await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>p@ss/word', '~test:*', '&test:*', '+@all');
    const url = redis.url.replace('//', '//gateway:p%40ss%2Fword@').concat('/3');
    const { keyValues, pubsub } = await openRedisState(t, { kind: 'single', url });
    await keyValues.write('key', 'value');
    await pubsub.publish('channel', 'message');
    assert.match(String(await redis.command('INFO', 'keyspace')), /^db3:keys=1/m);
  });

  test('is out of reach with a wrong password, and says why without saying the password', async (t) => {
    const redis = await startRedis(t, ['--requirepass', 'right-word']);
    const url = redis.url.replace('//', '//:wrong-word@');
    const state = createWatchedState(t, { kind: 'single', url });
    await state.open();
    assert.match(state.problem() ?? '', /WRONGPASS/);
    assert.doesNotMatch(state.problem() ?? '', /wrong-word/);
    await timeToFail(() => state.keyValues.read('key'));
  });

  test('is refused if its user may not see whether it evicts', async (t) => {
    const printed = t.mock.method(console, 'warn', () => {});
    const redis = await startRedis(t);
    await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>word', '~*', '&*', '+@all', '-info');
    const url = redis.url.replace('//', '//gateway:word@');
    await assert.rejects(createWatchedState(t, { kind: 'single', url }).open(), /may not run INFO.*\+info/);
    assert.ok(printed.mock.callCount() <= 1, 'the client says by itself that it could not ask');
  });

  test('is reached over TLS, and only if its certificate is trusted', async (t) => {
    const tlsPort = await freePort();
    await startRedisProcess(t, {
      args: (_port, folder) => {
        writeFileSync(join(folder, 'cert.pem'), certificate);
        writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
        const files = [
          '--tls-cert-file',
          join(folder, 'cert.pem'),
          '--tls-key-file',
          join(folder, 'key.pem'),
        ];
        return ['--save', '', '--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...files];
      },
    });
    const settings = { kind: 'single' as const, url: `rediss://127.0.0.1:${tlsPort}` };
    const distrustful = createWatchedState(t, settings);
    await distrustful.open();
    assert.match(distrustful.problem() ?? '', /certificate/);

    const trusted = getCACertificates();
    t.after(() => setDefaultCACertificates(trusted));
    setDefaultCACertificates([...trusted, certificate]);
    const { keyValues } = await openRedisState(t, settings);
    await keyValues.write('key', 'value');
    assert.equal(await keyValues.read('key'), 'value');
  });
});

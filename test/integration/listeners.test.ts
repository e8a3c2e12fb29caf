/** Either both listeners are open or none: a gateway that cannot serve accepts no connections. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assembleGateway } from '../../src/gateway.ts';
import { call, jsonOf } from '../kit/call.ts';
import { adminToken, configOf, startGatewayWithBank } from '../kit/gateway.ts';
import { freePort, isOpen, takenPort } from '../kit/ports.ts';
import { transfersPath } from '../kit/request.ts';

const silent = () => {};

const configFor = (tppPort: number, adminPort: number) =>
  configOf({
    listen: { port: tppPort },
    admin: { port: adminPort },
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
  });

describe('a gateway whose port is in use', () => {
  test('closes the admin listener if the public port is in use', async (t) => {
    const adminPort = await freePort();
    const gateway = assembleGateway(configFor(await takenPort(t), adminPort), silent);
    await assert.rejects(gateway.start(), { code: 'EADDRINUSE' });
    assert.equal(await isOpen(adminPort), false);
  });

  test('closes the public listener if the admin port is in use', async (t) => {
    const tppPort = await freePort();
    const gateway = assembleGateway(configFor(tppPort, await takenPort(t)), silent);
    await assert.rejects(gateway.start(), { code: 'EADDRINUSE' });
    assert.equal(await isOpen(tppPort), false);
  });
});

describe('the admin listener', () => {
  test('reports that the process is live and ready', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const path of ['/health/live', '/health/ready']) {
      const reply = await call(gateway.adminUrl, { method: 'GET', path });
      assert.equal(reply.status, 200, path);
      assert.equal(reply.header('Cache-Control'), 'no-store');
    }
  });

  test('reports ready although the bank is unreachable', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await bank.stop();
    const { status, text } = await call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    assert.equal(status, 200);
    assert.equal(jsonOf({ text }).status, 'ready');
  });

  test('has no routes of the public API, and the public API has no admin routes', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const headers = [['Authorization', `Bearer ${adminToken}`]] as const;
    for (const path of [transfersPath, '/health', '/health/live/', '/HEALTH/live', '/health/ready/x']) {
      const { status } = await call(gateway.adminUrl, { method: 'GET', path, headers });
      assert.equal(status, 404, path);
    }
    for (const path of ['/', '/console.js', '/health/live']) {
      const { status } = await call(gateway.url, { method: 'GET', path });
      assert.equal(status, 404, path);
    }
    assert.equal(bank.requests.length, 0);
  });
});

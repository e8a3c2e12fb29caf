/** Both doors are open, or neither is: nobody reaches a gateway that cannot serve. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createGateway } from '../../src/gateway.ts';
import { call, jsonOf } from '../kit/call.ts';
import { adminToken, configOf, startLine } from '../kit/gateway.ts';
import { freePort, isOpen, takenPort } from '../kit/ports.ts';
import { transfers } from '../kit/request.ts';

const silent = () => {};

const configFor = (tppPort: number, adminPort: number) =>
  configOf({
    listen: { port: tppPort },
    admin: { port: adminPort },
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
  });

describe('when a port is taken', () => {
  test("and it is the TPP systems', the operators' door is closed, too", async (t) => {
    const adminPort = await freePort();
    const gateway = createGateway(configFor(await takenPort(t), adminPort), silent);
    await assert.rejects(gateway.start(), { code: 'EADDRINUSE' });
    assert.equal(await isOpen(adminPort), false);
  });

  test("and it is the operators', the TPP systems' door is closed, too", async (t) => {
    const tppPort = await freePort();
    const gateway = createGateway(configFor(tppPort, await takenPort(t)), silent);
    await assert.rejects(gateway.start(), { code: 'EADDRINUSE' });
    assert.equal(await isOpen(tppPort), false);
  });
});

describe("the operators' door", () => {
  test('says that the process lives and that it can serve', async (t) => {
    const { gateway } = await startLine(t);
    for (const path of ['/health/live', '/health/ready']) {
      const reply = await call(gateway.adminUrl, { method: 'GET', path });
      assert.equal(reply.status, 200, path);
      assert.equal(reply.header('Cache-Control'), 'no-store');
    }
  });

  test('is ready though the bank is not: its health is not the gateway\u2019s', async (t) => {
    const { bank, gateway } = await startLine(t);
    await bank.stop();
    const { status, text } = await call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    assert.equal(status, 200);
    assert.equal(jsonOf({ text }).status, 'ready');
  });

  test('offers nothing of the other door, nor the other way round', async (t) => {
    const { bank, gateway } = await startLine(t);
    const headers = [['Authorization', `Bearer ${adminToken}`]] as const;
    for (const path of [transfers, '/health', '/health/live/', '/HEALTH/live', '/health/ready/x']) {
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

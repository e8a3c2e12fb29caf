/** The library: `createGateway` as a program uses it. test/package runs its example against the packed file. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { stringify } from 'yaml';
import { ConfigurationError, createGateway, type GatewaySettings } from '../../src/library.ts';
import { call } from '../kit/call.ts';
import { writeConfigFile } from '../kit/command.ts';
import { startBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const noVariables = {};
const settingsFor = (baseUrl: string): GatewaySettings => ({
  listen: { port: 0, publicUrl: 'https://gateway.example' },
  admin: { port: 0 },
  environments: { active: 'sandbox', sandbox: { baseUrl } },
});

describe('the library', () => {
  test('uses another configuration after a reload, and names the settings that need a restart', async (t) => {
    const [first, second] = [await startBank(t), await startBank(t)];
    const settings = settingsFor(first.baseUrl);
    const lines: string[] = [];
    const gateway = createGateway({
      config: settings,
      variables: noVariables,
      logTo: { write: (line) => void lines.push(line) },
    });
    t.after(gateway.stop);
    const { tppPort, generatedToken } = await gateway.start();
    assert.match(generatedToken ?? '', /^[\w-]{32}$/);

    const sandbox = { baseUrl: second.baseUrl };
    const changed = { ...settings, environments: { sandbox }, log: { level: 'debug' as const } };
    assert.deepEqual(await gateway.reload(changed), ['log.level']);
    assert.equal((await call(`http://127.0.0.1:${tppPort}`, initiation)).status, 201);
    assert.deepEqual([first.payments.length, second.payments.length], [0, 1]);
    assert.ok(lines.some((line) => line.includes('"initiatePayment"') && line.endsWith('\n')));
  });

  test('serves requests although the destination of its log throws', async (t) => {
    const bank = await startBank(t);
    const config = settingsFor(bank.baseUrl);
    let isDiskFull = false;
    let lost = 0;
    const write = () => {
      if (!isDiskFull) return;
      lost++;
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    };
    const gateway = createGateway({ config, variables: noVariables, logTo: { write } });
    t.after(gateway.stop);
    const { tppPort } = await gateway.start();
    isDiskFull = true;
    for (let count = 0; count < 2; count++)
      assert.equal((await call(`http://127.0.0.1:${tppPort}`, initiation)).status, 201);
    assert.ok(lost >= 2);
  });

  test('keeps its configuration if a reload is refused', async (t) => {
    const bank = await startBank(t);
    const config = writeConfigFile(t, stringify(settingsFor(bank.baseUrl)));
    const gateway = createGateway({ config, variables: noVariables, logTo: { write: () => {} } });
    t.after(gateway.stop);
    const { tppPort } = await gateway.start();
    await assert.rejects(gateway.reload('/nonexistent/penstock.yaml'), ConfigurationError);
    await assert.rejects(gateway.reload({ environments: {} }), ConfigurationError);
    assert.equal((await call(`http://127.0.0.1:${tppPort}`, initiation)).status, 201);
  });

  test('keeps nothing of a stopped gateway in memory', async (t) => {
    const bank = await startBank(t);
    setFlagsFromString('--expose-gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const runGateway = async () => {
      const logTo = { write: () => {} };
      const gateway = createGateway({ config: settingsFor(bank.baseUrl), variables: noVariables, logTo });
      const { tppPort } = await gateway.start();
      assert.equal((await call(`http://127.0.0.1:${tppPort}`, initiation)).status, 201);
      await gateway.stop();
      return new WeakRef(logTo); // every part of the gateway can reach its log
    };
    const log = await runGateway();
    await until(10_000, 'the gateway is freed', () => {
      collectGarbage();
      return log.deref() === undefined;
    });
  });

  test('reports all errors of settings and variables at once', () => {
    const settings = { ...settingsFor('nowhere'), deadlines: { write: '20' } };
    const variables = { PENSTOCK_LISTEN_PORT: 'many', OTHER: 'ignored' };
    assert.throws(
      () => createGateway({ config: settings, variables }),
      (error) => {
        assert.ok(error instanceof ConfigurationError);
        const places = ['environments.sandbox.baseUrl', 'deadlines.write', 'PENSTOCK_LISTEN_PORT'];
        assert.equal(error.errors.length, places.length);
        for (const place of places) assert.ok(error.message.includes(place), error.message);
        return true;
      },
    );
  });

  test('uses the configured operators, and generates no token for them', async (t) => {
    const bank = await startBank(t);
    const operators = [{ name: 'ann', role: 'read' as const, tokenSha256: 'a'.repeat(64) }];
    const config = { ...settingsFor(bank.baseUrl), admin: { port: 0, operators } };
    const gateway = createGateway({ config, variables: noVariables, logTo: { write: () => {} } });
    t.after(gateway.stop);
    assert.equal('generatedToken' in (await gateway.start()), false);
  });
});

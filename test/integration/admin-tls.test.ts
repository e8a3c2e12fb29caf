/** The admin listener with TLS of its own and with names: the console, the commands, and a renewed certificate. */

import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect } from 'node:tls';
import { startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { adminToken, startBank, startGatewayWithBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { copyCertificateFiles, createAuthority, replaceCertificateFiles } from '../kit/openssl.ts';
import { createOperatorBrowser } from '../kit/operator-browser.ts';
import { freePort } from '../kit/ports.ts';
import { sendRawAdminRequest } from '../kit/raw-admin-request.ts';
import { until } from '../kit/within.ts';

const token = `Authorization: Bearer ${adminToken}`;

/** The serial number of the certificate that a new connection gets. */
function serialNumberAt(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca }, () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? '');
      socket.destroy();
    }).on('error', reject);
  });
}

describe('the names of the admin listener', () => {
  test('are those of admin.hosts, which a reload changes; the refusal of another one names the setting', async (t) => {
    const service = 'penstock-operators.payments.svc.cluster.local';
    const { bank, gateway } = await startGatewayWithBank(t, { admin: { hosts: [service] } });
    const statusFor = async (host: string) =>
      (await sendRawAdminRequest(gateway, 'GET /api/environments', [token, `Host: ${host}`])).status;
    assert.deepEqual(
      [
        await statusFor(`${service}:9090`),
        await statusFor(service.toUpperCase()),
        await statusFor('penstock-operators'),
      ],
      [200, 200, 421],
    );
    const refused = await sendRawAdminRequest(gateway, 'GET /', ['Host: penstock-operators']);
    assert.match(JSON.parse(refused.body).error, /add this name to admin\.hosts/);

    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    await gateway.reload({ environments, admin: { hosts: ['penstock-operators'] } });
    assert.deepEqual([await statusFor(service), await statusFor('penstock-operators')], [421, 200]);
  });

  test('work for the commands: penstock --url accepts one', async (t) => {
    const name = hostname();
    const resolves = await lookup(name).then(
      () => true,
      () => false,
    );
    if (!resolves) return t.skip(`this machine cannot resolve its own name, ${name}`);
    const bank = await startBank(t);
    const admin = { host: '0.0.0.0', port: await freePort() };
    const served = await startGatewayProcess(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      admin: { ...admin, hosts: [name] },
    });
    const url = served.adminUrl.replace('127.0.0.1', name);
    const command = startCommand(t, process.execPath, ['src/main.ts', 'environment', '--url', url], {
      PENSTOCK_ADMIN_TOKEN: adminToken,
    });
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.match(command.stdout(), /sandbox/);
  });
});

describe('the admin listener with TLS', () => {
  test('serves the console and the API over TLS only, and uses a renewed certificate', async (t) => {
    const authority = createAuthority(t);
    const [first, second] = [authority.issue('first'), authority.issue('second')];
    const own = copyCertificateFiles(temporaryFolder(t), 'admin', first);
    const { gateway } = await startGatewayWithBank(t, {
      admin: { tls: { certFile: own.certFile, keyFile: own.keyFile } },
    });
    const { port } = new URL(gateway.adminUrl);
    const url = `https://localhost:${port}`;
    const browser = createOperatorBrowser({ ca: authority.cert });
    assert.equal((await browser.send('GET', `${url}/`)).status, 200);
    const headers = { Authorization: `Bearer ${adminToken}` };
    assert.equal((await browser.send('GET', `${url}/api/environments`, { headers })).status, 200);
    await assert.rejects(fetch(`${gateway.adminUrl}/health/live`), 'plain HTTP');
    await assert.rejects(createOperatorBrowser().send('GET', `${url}/`), 'an unknown authority');
    const metrics = await browser.send('GET', `${url}/metrics`);
    assert.match(
      metrics.text,
      /^penstock_certificate_expiry_seconds\{environment="",use="admin-listener"\} \d/m,
    );

    const before = await serialNumberAt(Number(port), authority.cert);
    replaceCertificateFiles(own, second);
    await until(10_000, 'new connections get the new certificate', async () => {
      return (await serialNumberAt(Number(port), authority.cert)) !== before;
    });
    const line = gateway.logLines.find((text) => text.includes('certificate replaced'));
    assert.equal(JSON.parse(line ?? '{}').use, 'admin-listener');
  });

  test('is reached by the commands with --ca-file, and by their configuration alone', async (t) => {
    const authority = createAuthority(t);
    const { certFile, keyFile } = authority.issue('listener');
    const bank = await startBank(t);
    const served = await startGatewayProcess(t, {
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      admin: { port: await freePort(), tls: { certFile, keyFile } },
    });
    const url = served.adminUrl.replace('http:', 'https:');
    const run = (...args: readonly string[]) =>
      startCommand(t, process.execPath, ['src/main.ts', 'environment', '--url', url, ...args], {
        PENSTOCK_ADMIN_TOKEN: adminToken,
      });
    const trusting = run('--ca-file', authority.certFile);
    assert.equal(await trusting.exitCode(), 0, trusting.stderr());
    assert.match(trusting.stdout(), /sandbox/);
    const without = run();
    assert.equal(await without.exitCode(), 69);
    assert.match(without.stderr(), /--ca-file/);
    const missing = run('--ca-file', join(temporaryFolder(t), 'nothing'));
    assert.equal(await missing.exitCode(), 64);
    const configured = served.run('environment', '--ca-file', authority.certFile);
    assert.equal(await configured.exitCode(), 0, configured.stderr());
    const health = served.run('health', '--live'); // as a container asks, with the configuration only
    assert.deepEqual([await health.exitCode(), health.stdout()], [0, 'live\n'], health.stderr());
  });
});

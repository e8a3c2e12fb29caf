/** `penstock demo --traffic` as a process of its own. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { root, startCommand } from '../../kit/command.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

/** Five ports in a row that are free, in the block of this process. */
async function fivePorts(): Promise<number> {
  const first = await freePort();
  for (let next = 1; next < 5; next++) if ((await freePort()) !== first + next) return fivePorts();
  return first;
}

test('the traffic of the demo shows payments of two tenants, a failed webhook and a payment in doubt', async (t) => {
  const port = await fivePorts();
  const args = ['src/main.ts', 'demo', '--traffic', '--port', String(port)];
  const demo = startCommand(t, process.execPath, args, {}, root);
  await demo.waitForOutput('Press Ctrl-C');
  const read = async (path: string) => {
    const headers = { Authorization: 'Bearer demo' };
    return (await fetch(`http://127.0.0.1:${port + 1}${path}`, { headers })).text();
  };
  await until(40_000, 'payments of both tenants and one in doubt are listed', async () => {
    const [payments, inDoubt] = [await read('/api/payments'), await read('/api/in-doubt')];
    return /"tenant":"shop"/.test(payments) && /"tenant":"market"/.test(payments) && inDoubt !== '[]';
  });
  await until(40_000, 'a webhook of market has failed', async () =>
    /"state":"undelivered"[^{]*{[^}]*the endpoint fails/.test(await read('/api/notifications')),
  );

  const taken = startCommand(t, process.execPath, args, {}, root);
  assert.equal(await taken.exitCode(), 1);
  assert.match(taken.stderr(), /in use; .*--port/);

  demo.kill('SIGINT');
  assert.equal(await demo.exitCode(), 0, demo.stderr());
  assert.equal(demo.stderr(), '');
});

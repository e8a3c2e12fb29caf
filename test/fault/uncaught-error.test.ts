import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusRead } from '../kit/attack.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw } from '../kit/raw-connection.ts';

/** Bugs, triggered by a signal. */
const bugs: Readonly<Record<string, string>> = {
  'an uncaught error': "throw new Error('can' + 'ary')",
  'an unhandled rejection': "Promise.reject(new Error('can' + 'ary'))",
};

const variablesWith = (bug: string) => {
  const text = `process.on('SIGUSR2', () => { ${bug}; })`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(text)}` };
};

describe('a bug in the gateway', () => {
  for (const [name, bug] of Object.entries(bugs)) {
    test(`H3: running requests are answered after ${name}, and the process exits with 70`, async (t) => {
      const bank = await startBank(t);
      bank.injectFault({ name: 'latency', ms: 500 });
      const environments = { sandbox: { baseUrl: bank.baseUrl } };
      const served = await startGatewayProcess(t, { environments }, { variables: variablesWith(bug) });
      const connection = await connectRaw(served.port);
      t.after(connection.destroy);
      connection.send(statusRead());
      await bank.waitUntil(() => bank.requests.length === 1);

      served.command.kill('SIGUSR2');

      await served.command.waitForOutput('stopping: uncaught error');
      assert.equal((await connection.answer()).headers.get('connection'), 'close');
      assert.equal(await served.command.exitCode(), 70);
      assert.match(served.command.stdout(), /"stack":"Error\\n {4}at /);
      assert.doesNotMatch(served.command.stdout() + served.command.stderr(), /canary/);
    });
  }
});

/** The examples for callers in Python and for curl pay once, although the bank has not accepted the first call, and cancel. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { startCommand } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onPath } from '../kit/on-path.ts';
import { within } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];

describe('the example for callers', { concurrency: true }, () => {
  for (const [program, file, said] of [
    [
      'python3',
      'pay.py',
      /not known yet: 429[\s\S]*paid: (\S+)\npaid before: \1\nstatus: RCVD\ncancelled: 204\n$/,
    ],
    ['sh', 'pay.sh', /not known yet: 429[\s\S]*paid: \S+\n\{"transactionStatus":"RCVD"\}\ncancelled: 204\n$/],
  ] as const)
    test(`${file} pays once, waits for the status and cancels`, {
      skip: onPath(program) === undefined && `${program} is not installed`,
    }, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t, { clients });
      bank.injectFault({ name: 'status', status: 429 }, { times: 1 });
      const url = `${gateway.url}/berlingroup/v1`;
      const example = startCommand(t, program, [`examples/callers/${file}`, url, apiKey]);
      assert.equal(await within(60_000, 'the example ends', example.exitCode()), 0, example.stderr());
      assert.match(example.stdout(), said);
      assert.equal(bank.payments.length, 1);
      assert.equal(bank.requests.filter(({ method }) => method === 'DELETE').length, 1);
    });
});

/** One of two instances is told to end under load: whoever goes to the other when it is gone loses nothing. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Call, call, type Reply, repeatWhile } from '../kit/call.ts';
import { type Instance, startFleet } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { exchange, failuresIn, startLoad } from '../kit/load.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { transfers } from '../kit/request.ts';
import { apiKeyOf } from '../kit/two-environments.ts';
import { mixed } from './mixed.ts';

/** How a TPP system sends a call to an instance. */
type Way = (instance: Instance, call: Call) => Promise<Reply>;

const ways: Readonly<Record<string, Way>> = {
  'on connections that are kept': (instance, one) => instance.ask('shop', one),
  'on a new connection each': ({ url }, { headers = [], ...rest }) =>
    call(url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf('shop')]] }),
};

describe('an instance that is told to end under load (H1)', { skip: skipWithoutRedisServer }, () => {
  for (const [name, way] of Object.entries(ways)) {
    test(`ends with 0, and no request fails: ${name}`, async (t) => {
      const { one, other, sandbox } = await startFleet(t, await startSingleRedis(t));
      const ids = await Promise.all(Array.from({ length: 10 }, () => other.pay('shop')));
      sandbox.injectFault({ name: 'latency', ms: 300 }, { operation: 'getPayment' });

      const load = startLoad(t, { perSecond: 200 }, (number) => {
        const [first, second] = number % 2 === 0 ? [one, other] : [other, one];
        return exchange(mixed(ids, number), (sent) =>
          repeatWhile('STATE_UNAVAILABLE', () =>
            way(first, sent).catch(elsewhereIfRefused(() => way(second, sent))),
          ),
        );
      });
      await load.hasSent(250);
      assert.equal(await one.stop(), 0);
      await load.hasSentMore(100);
      const exchanges = await load.stop();

      assert.deepEqual(failuresIn(exchanges), {});
      const initiated = exchanges.filter(({ call: { path } }) => path === transfers);
      assert.equal(sandbox.payments.length, ids.length + initiated.length, 'each payment once');
    });
  }
});

/** A connection that was refused has carried nothing: only then may even a payment be sent elsewhere. */
function elsewhereIfRefused(again: () => Promise<Reply>): (thrown: unknown) => Promise<Reply> {
  return (thrown) => {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ECONNREFUSED') return again();
    throw thrown;
  };
}

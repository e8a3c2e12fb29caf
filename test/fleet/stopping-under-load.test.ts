/** One of two instances is stopped under load: clients that then use the other instance lose nothing. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Call, call, type Reply } from '../kit/call.ts';
import { type Instance, startFleet } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { transfersPath } from '../kit/request.ts';
import { apiKeyOf } from '../kit/two-environments.ts';
import { mixed } from './mixed-load.ts';

/** How a TPP system sends a call to an instance. */
type Way = (instance: Instance, call: Call) => Promise<Reply>;

const ways: Readonly<Record<string, Way>> = {
  'on keep-alive connections': (instance, one) => instance.ask('shop', one),
  'on new connections': ({ url }, { headers = [], ...rest }) =>
    call(url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf('shop')]] }),
};

describe('an instance that is stopped under load (H1)', { skip: skipWithoutRedisServer }, () => {
  for (const [name, way] of Object.entries(ways)) {
    test(`exits with 0 and fails no request ${name}`, async (t) => {
      const { one, other, sandbox } = await startFleet(t, await startSingleRedis(t));
      const ids = await Promise.all(Array.from({ length: 10 }, () => other.pay('shop')));
      sandbox.injectFault({ name: 'latency', ms: 300 }, { operation: 'getPayment' });

      let isStopping = false;
      const load = startLoad(t, { perSecond: 100 }, (number) => {
        const [first, second] = number % 2 === 0 ? [one, other] : [other, one];
        const mayBeReset = isStopping;
        return measureExchange(mixed(ids, number), (sent) =>
          way(first, sent).catch((error: unknown) => {
            const isUnaccepted = isStopping && isFirstOnConnection(error);
            if (isRefused(error) || (isReset(error) && (mayBeReset || isUnaccepted)))
              return way(second, sent);
            throw error;
          }),
        );
      });
      await load.hasSent(150);
      isStopping = true;
      assert.equal(await one.stop(), 0);
      await load.hasSentMore(100);
      const exchanges = await load.stop();

      assert.deepEqual(failuresIn(exchanges), {});
      const initiated = exchanges.filter(({ call: { path } }) => path === transfersPath);
      assert.equal(sandbox.payments.length, ids.length + initiated.length, 'each payment once');
    });
  }
});

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined);

const isFirstOnConnection = (error: unknown) =>
  error instanceof Error && 'isFirstOnConnection' in error && error.isFirstOnConnection === true;

/** The connection carried nothing, so that even a payment may be sent to another instance. */
const isRefused = (error: unknown) => codeOf(error) === 'ECONNREFUSED';

/**
 * The kernel resets connections that the stopping process has not accepted yet (ADR 56): a busy one has not accepted those of the last
 * moments before the stop. A repeat with the same X-Request-ID is safe. On an accepted connection, a request that was sent before the
 * instance was stopped must never be reset.
 */
const isReset = (error: unknown) => codeOf(error) === 'ECONNRESET';

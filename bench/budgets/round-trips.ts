/** Counts the sequential round trips to Redis: how much longer a request takes when each round trip is delayed. */

import { startTcpProxy } from '../../test/kit/tcp-proxy.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import type { Contender } from '../contenders/contender.ts';
import { penstockOnPostgres } from '../contenders/penstock.ts';
import { createRequestSender } from '../measure/request-sender.ts';
import { median } from '../measure/statistics.ts';
import type { Testbed } from '../testbed.ts';
import { budgets, type RequestKind, requestKinds } from './limits.ts';
import { type Cost, sendersFor } from './measure.ts';

/** Commands reach Redis so much later. Large in comparison with the noise, small in comparison with `state.timeout`. */
const delayMs = 100;
const warmUpRequests = 5;
const measuredRequests = 9;

export async function measureRoundTrips(testbed: Testbed, life: TestScope): Promise<readonly Cost[]> {
  const costs: Cost[] = [];
  const contender = penstockOnPostgres;
  const proxy = await startTcpProxy(life, testbed.redisPort);
  await testbed.withContender(through(proxy.port, contender), async ({ port }) => {
    const requests = createRequestSender(port);
    const send = await sendersFor(port, contender, requests);
    const medianMs = async (kind: RequestKind) => {
      const tookMs: number[] = [];
      for (let sent = 0; sent < warmUpRequests + measuredRequests; sent++) tookMs.push(await send(kind));
      return median(tookMs.slice(warmUpRequests));
    };
    const withoutDelayMs = new Map<RequestKind, number>();
    for (const kind of requestKinds) withoutDelayMs.set(kind, await medianMs(kind));
    proxy.delayBy(delayMs);
    for (const kind of requestKinds) {
      const addedMs = (await medianMs(kind)) - (withoutDelayMs.get(kind) ?? 0);
      const budget = budgets[kind].roundTrips;
      const measured = addedMs / delayMs;
      costs.push({ what: 'round trips', kind, contender: contender.name, measured, budget });
    }
    requests.close();
  });
  return costs;
}

/** The contender with its Redis behind this port. */
const through = (redisPort: number, contender: Contender): Contender => ({
  ...contender,
  launches: (surroundings) => contender.launches({ ...surroundings, redisPort }),
});

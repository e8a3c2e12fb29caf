/** Counts the sequential trips to the database and to Redis: how much longer a request takes when each of them is delayed. */

import { startTcpProxy } from '../../test/kit/tcp-proxy.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import type { Contender } from '../contenders/contender.ts';
import { penstockOnPostgres } from '../contenders/penstock.ts';
import { createRequestSender } from '../measure/request-sender.ts';
import { median } from '../measure/statistics.ts';
import type { Testbed } from '../testbed.ts';
import { budgets, type RequestKind, requestKinds } from './limits.ts';
import { type Cost, sendersFor } from './measure.ts';

/** Statements and commands arrive so much later. Large in comparison with the noise, small in comparison with `state.timeout`. */
const delayMs = 100;
const warmUpRequests = 5;
const measuredRequests = 9;

export async function measureRoundTrips(testbed: Testbed, life: TestScope): Promise<readonly Cost[]> {
  const costs: Cost[] = [];
  for (const [what, budgetOf] of [
    ['trips to the database', (kind: RequestKind) => budgets[kind].databaseTrips],
    ['trips to Redis', (kind: RequestKind) => budgets[kind].redisTrips],
  ] as const) {
    const proxied = await throughProxy(life, what === 'trips to Redis' ? 'redis' : 'postgres');
    await testbed.withContender(proxied.contender, async ({ port }) => {
      const requests = createRequestSender(port);
      const send = await sendersFor(port, proxied.contender, requests);
      const medianMs = async (kind: RequestKind) => {
        const tookMs: number[] = [];
        for (let sent = 0; sent < warmUpRequests + measuredRequests; sent++) tookMs.push(await send(kind));
        return median(tookMs.slice(warmUpRequests));
      };
      const withoutDelayMs = new Map<RequestKind, number>();
      for (const kind of requestKinds) withoutDelayMs.set(kind, await medianMs(kind));
      proxied.delayBy(delayMs);
      for (const kind of requestKinds) {
        const addedMs = (await medianMs(kind)) - (withoutDelayMs.get(kind) ?? 0);
        const measured = addedMs / delayMs;
        costs.push({ what, kind, contender: proxied.contender.name, measured, budget: budgetOf(kind) });
      }
      requests.close();
    });
  }
  return costs;
}

/** Penstock with one of its stores behind a proxy, which is started when the port of the store is known. */
async function throughProxy(life: TestScope, store: 'redis' | 'postgres') {
  const base = penstockOnPostgres;
  let proxy: Awaited<ReturnType<typeof startTcpProxy>> | undefined;
  const contender: Contender = {
    ...base,
    async prepare(surroundings) {
      await base.prepare?.(surroundings);
      const { redisPort, postgresUrl } = surroundings;
      proxy = await startTcpProxy(life, store === 'redis' ? redisPort : Number(new URL(postgresUrl).port));
    },
    launches(surroundings) {
      if (!proxy) throw new Error('not prepared');
      if (store === 'redis') return base.launches({ ...surroundings, redisPort: proxy.port });
      const url = new URL(surroundings.postgresUrl);
      url.port = String(proxy.port);
      return base.launches({ ...surroundings, postgresUrl: url.href });
    },
  };
  return { contender, delayBy: (ms: number) => proxy?.delayBy(ms) };
}

/**
 * Measures the bytes that a request promotes: by how much V8's old generation grows while the young one is collected as usual.
 *
 * An object of a request that is promoted is found by a full collection only. A function literal that is assigned to a property of
 * the request, or a long-lived Map, is enough to promote the whole request (ADR 62).
 */

import { penstock, penstockOnPostgres } from '../contenders/penstock.ts';
import { expressProxy } from '../contenders/table.ts';
import { installedContenders } from '../prerequisites.ts';
import type { Testbed } from '../testbed.ts';
import { budgets, requestKinds } from './limits.ts';
import { type Cost, sendMany, withProbedContender } from './measure.ts';

/** As under load: with more requests in progress, more of them are alive in a collection. */
const connections = 32;

/** An old generation that is not collected during a measurement. */
const heapOptions = ['--expose-gc', '--initial-old-space-size=2048', '--max-old-space-size=4096'];

/** @param requests whose promotion is measured; half as many warm up */
export async function measurePromotion(
  testbed: Testbed,
  folder: string,
  requests: number,
): Promise<readonly Cost[]> {
  const costs: Cost[] = [];
  for (const contender of [expressProxy, ...installedContenders([penstock, penstockOnPostgres], console.log)])
    await withProbedContender(
      testbed,
      contender,
      { folder, connections, heapOptions },
      async ({ probe, send }) => {
        for (const kind of requestKinds.filter(
          (kind) => budgets[kind].baseline === 'proxy' || contender !== expressProxy,
        )) {
          await sendMany(send, kind, requests / 2, connections);
          await probe.collectGarbage();
          const before = await probe.memoryUse();
          await sendMany(send, kind, requests, connections);
          const after = await probe.memoryUse();
          if (after.fullCollections !== before.fullCollections)
            throw new Error(`the old generation was collected during ${requests} requests; use fewer`);
          costs.push({
            what: 'KiB promoted',
            kind,
            contender: contender.name,
            measured: (after.oldBytes - before.oldBytes) / requests / 1024,
            budget: contender === expressProxy ? undefined : budgets[kind].promotedKiB,
          });
        }
      },
    );
  return costs;
}

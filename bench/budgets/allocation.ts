/** Measures the bytes that a request allocates: by how much the memory grows while nothing is collected. */

import type { Contender } from '../contenders/contender.ts';
import { penstock, penstockOnPostgres } from '../contenders/penstock.ts';
import { bareExpress, expressProxy } from '../contenders/table.ts';
import { installedContenders } from '../prerequisites.ts';
import type { Testbed } from '../testbed.ts';
import { type Budget, budgets, type RequestKind, requestKinds } from './limits.ts';
import { type Cost, type ProbedContender, sendMany, withProbedContender } from './measure.ts';

const maxRounds = 3;
/** A few at a time, because on a busy machine a single request mostly waits for a processor. */
const connections = 8;

/** @param requests whose allocation is measured; half as many warm up */
export async function measureAllocation(
  testbed: Testbed,
  folder: string,
  requests: number,
): Promise<readonly Cost[]> {
  const baselines: Readonly<Record<Budget['baseline'], Contender>> = {
    proxy: expressProxy,
    answer: bareExpress,
  };
  const costs: Cost[] = [];
  const measure = async (contender: Contender, kinds: readonly RequestKind[]) =>
    withProbedContender(testbed, contender, { folder, connections }, async (probed) => {
      for (const kind of kinds) {
        const measured = (await bytesPerRequest(probed, kind, requests)) / 1024;
        costs.push({
          what: 'KiB',
          kind,
          contender: contender.name,
          measured,
          budget: budgetOf(contender, kind),
        });
      }
    });
  const budgetOf = (contender: Contender, kind: RequestKind) => {
    const { baseline, extraKiB } = budgets[kind];
    const base = costs.find((cost) => cost.contender === baselines[baseline].name && cost.kind === kind);
    return base && base.contender !== contender.name ? base.measured + extraKiB : undefined;
  };

  for (const [baseline, contender] of Object.entries(baselines))
    await measure(
      contender,
      requestKinds.filter((kind) => budgets[kind].baseline === baseline),
    );
  for (const contender of installedContenders([penstock, penstockOnPostgres], console.log))
    await measure(contender, requestKinds);
  return costs;
}

/** @throws Error if garbage was collected during every round */
async function bytesPerRequest(
  { probe, send }: ProbedContender,
  kind: RequestKind,
  requests: number,
): Promise<number> {
  const sendAll = (count: number) => sendMany(send, kind, count, connections);
  await sendAll(requests / 2); // later rounds differ by less than 5 %
  for (let round = 0; round < maxRounds; round++) {
    await probe.collectGarbage();
    const before = await probe.memoryUse();
    await sendAll(requests);
    const after = await probe.memoryUse();
    if (after.collections === before.collections) return (after.bytes - before.bytes) / requests;
  }
  throw new Error(`garbage was collected during ${requests} requests; use fewer`);
}

/** The worker thread of the contract guard: checks large messages, one after the other. Started by check-worker.ts. */

import { isMainThread, parentPort } from 'node:worker_threads';
import { type Contract, prepareContract } from '../contract/contract.ts';
import { checkMessage } from './check-message.ts';
import type { ThreadReply, ThreadRequest } from './check-worker.ts';

/** Compiled contracts, by hash. Limited, because each reload with another profile adds one. */
const contracts = new Map<string, Contract>();
const maxContracts = 16;

if (!isMainThread) parentPort?.on('message', (request: ThreadRequest) => void reply(request));

async function reply({ id, judges, message }: ThreadRequest): Promise<void> {
  const prepared = await prepare(judges); // if it fails, the thread ends, and the thread of the next message tries again
  let deviations: ThreadReply['deviations'];
  try {
    deviations = checkMessage(message, prepared);
  } catch {
    // The text of the error may quote the message.
  }
  parentPort?.postMessage({ id, deviations } satisfies ThreadReply);
}

async function prepare(judges: ThreadRequest['judges']) {
  const prepared: { readonly contract: Contract }[] = [];
  for (const { hash, options } of judges) {
    const known = contracts.get(hash);
    const contract = known ?? (await prepareContract(options));
    prepared.push({ contract });
    if (known) continue;
    if (contracts.size >= maxContracts) contracts.clear();
    contracts.set(hash, contract);
  }
  return prepared;
}

/** Writes that stand at the steps of their entries, at a gateway that is about to be killed or to stand still. */

import assert from 'node:assert/strict';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import type { BreakpointGateway } from './breakpoint-gateway.ts';
import type { Breakpoint } from './breakpoint-state.ts';
import { call, jsonOf, type Reply } from './call.ts';
import { newWrite, outcomeOf, type Write, type WriteName, writeNames } from './writes.ts';

/** How far a write has come; `at the bank` it waits for the bank's answer, at the others the gateway holds it. */
export type WriteStage = Breakpoint | 'at the bank';

export const writeStages: readonly WriteStage[] = [
  ...(['before the claim', 'claimed', 'sending'] as const),
  ...(['at the bank', 'answered', 'stored'] as const),
];

/** One of each kind of write for each moment, all ready to be sent. */
export interface StagedWrite {
  readonly moment: WriteStage;
  readonly write: Write;
}

export async function newWrites(
  bank: SimulatedBank,
  at: readonly WriteStage[] = writeStages,
  names: readonly WriteName[] = writeNames,
): Promise<readonly StagedWrite[]> {
  const pairs = at.flatMap((moment) => names.map((name) => ({ moment, name })));
  return Promise.all(pairs.map(async ({ moment, name }) => ({ moment, write: await newWrite(bank, name) })));
}

/** Where a gateway is to hold these writes. */
export const breakpointsOf = (writes: readonly StagedWrite[]): Readonly<Record<string, Breakpoint>> =>
  Object.fromEntries(
    writes.flatMap(({ moment, write }) => (moment === 'at the bank' ? [] : [[write.requestId, moment]])),
  );

/** What a TPP is told: `proper` for the bank's own success, `replayed` for that again, `lost` if the connection breaks. */
export type WriteOutcome = string;

/**
 * Sends writes, and comes back when each stands where it is to.
 *
 * @param hold what keeps the bank from answering those that wait for it
 * @returns what is said to each in the end, in the order of the writes
 */
export async function sendToStages(
  gateway: BreakpointGateway,
  bank: SimulatedBank,
  writes: readonly StagedWrite[],
  hold: Fault,
): Promise<readonly Promise<WriteOutcome>[]> {
  const atBank = writes.filter(({ moment }) => moment === 'at the bank');
  const others = writes.filter(({ moment }) => moment !== 'at the bank');
  const said = new Map<Write, Promise<WriteOutcome>>();
  const send = ({ write }: StagedWrite) => said.set(write, sendWrite(gateway, bank, write));

  others.forEach(send);
  await gateway.reached(others.map(({ write }) => write.requestId));
  bank.injectFault(hold, { times: atBank.length });
  atBank.forEach(send);
  await bank.waitUntil(
    () => atBank.every(({ write }) => write.timesReceived() === 1 && write.effectCount() !== 0),
    10_000,
  );
  return writes.map(({ write }) => said.get(write) ?? assert.fail());
}

/** Sends a write. Whoever is told that a payment was made is told of one that exists. */
export async function sendWrite(
  gateway: { readonly url: string },
  bank: SimulatedBank,
  write: Write,
): Promise<WriteOutcome> {
  const reply = await call(gateway.url, write.call).catch(() => undefined);
  if (!reply) return 'lost';
  if (reply.status === 201 && write.name === 'initiation') {
    const known = bank.payments.map(({ paymentId }) => paymentId);
    assert.ok(known.includes(String(jsonOf(reply).paymentId)));
  }
  return describeOutcome(reply, write);
}

const proper = { initiation: '201', cancellation: '202', authorisation: '201' } as const;

function describeOutcome(reply: Reply, { name }: Write): WriteOutcome {
  const said = outcomeOf(reply);
  if (said === proper[name]) return 'proper';
  return said === `${proper[name]} replayed` ? 'replayed' : said;
}

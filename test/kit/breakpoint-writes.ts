/** Sends writes up to chosen steps of their ledger entries, to a gateway that is then killed or frozen. */

import assert from 'node:assert/strict';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import type { BreakpointGateway } from './breakpoint-gateway.ts';
import type { Breakpoint } from './breakpoint-state.ts';
import { call, jsonOf, type Reply } from './call.ts';
import { newWrite, outcomeOf, successStatus, type Write, type WriteName, writeNames } from './writes.ts';

/** How far a write has come: at a breakpoint of the gateway, or waiting for the answer of the bank. */
export type WriteStage = Breakpoint | 'at the bank';

export const writeStages: readonly WriteStage[] = [
  ...(['before the claim', 'claimed', 'sending'] as const),
  ...(['at the bank', 'answered', 'stored'] as const),
];

export interface StagedWrite {
  readonly stage: WriteStage;
  readonly write: Write;
}

/** One write of each kind for each stage, not sent yet. */
export async function newWrites(
  bank: SimulatedBank,
  stages: readonly WriteStage[] = writeStages,
  names: readonly WriteName[] = writeNames,
): Promise<readonly StagedWrite[]> {
  const pairs = stages.flatMap((stage) => names.map((name) => ({ stage, name })));
  return Promise.all(pairs.map(async ({ stage, name }) => ({ stage, write: await newWrite(bank, name) })));
}

/** The breakpoints for `startBreakpointGateway`. */
export const breakpointsOf = (writes: readonly StagedWrite[]): Readonly<Record<string, Breakpoint>> =>
  Object.fromEntries(
    writes.flatMap(({ stage, write }) => (stage === 'at the bank' ? [] : [[write.requestId, stage]])),
  );

/** `succeeded` if the bank's success is returned, `replayed` if the ledger replays it, `lost` if the connection breaks, or an error. */
export type WriteOutcome = string;

/**
 * Sends writes, and returns when each has reached its stage.
 *
 * @param hold the fault that delays the answer of the bank to those that wait for it
 * @returns the outcome of each write, in their order
 */
export async function sendToStages(
  gateway: BreakpointGateway,
  bank: SimulatedBank,
  writes: readonly StagedWrite[],
  hold: Fault,
): Promise<readonly Promise<WriteOutcome>[]> {
  const atBank = writes.filter(({ stage }) => stage === 'at the bank');
  const others = writes.filter(({ stage }) => stage !== 'at the bank');
  const outcomes = new Map<Write, Promise<WriteOutcome>>();
  let haveReached = false;
  // On a busy machine, a statement may take too long: the write is then refused before its stage.
  const sendUntilReached = async (write: Write): Promise<WriteOutcome> => {
    const outcome = await sendWrite(gateway, bank, write);
    return outcome === '503 STATE_UNAVAILABLE' && !haveReached ? sendUntilReached(write) : outcome;
  };
  const send = ({ write }: StagedWrite) => outcomes.set(write, sendUntilReached(write));

  others.forEach(send);
  await gateway.reached(others.map(({ write }) => write.requestId));
  haveReached = true;
  bank.injectFault(hold, { times: atBank.length });
  atBank.forEach(send);
  await bank.waitUntil(
    () => atBank.every(({ write }) => write.timesReceived() === 1 && write.effectCount() !== 0),
    10_000,
  );
  return writes.map(({ write }) => outcomes.get(write) ?? assert.fail());
}

/** Sends a write. Asserts that a payment in a successful response exists at the bank. */
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

function describeOutcome(reply: Reply, { name }: Write): WriteOutcome {
  const outcome = outcomeOf(reply);
  if (outcome === successStatus[name]) return 'succeeded';
  return outcome === `${successStatus[name]} replayed` ? 'replayed' : outcome;
}

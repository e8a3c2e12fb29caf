/** Writes that stand at the steps of their entries, at a gateway that is about to be killed or to stand still. */

import assert from 'node:assert/strict';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { call, jsonOf, type Reply } from './call.ts';
import type { SteppingGateway } from './stepping.ts';
import type { Step } from './stepping-state.ts';
import { newWrite, saidBy, type Write, type WriteName, writeNames } from './writes.ts';

/** How far a write has come; `at the bank` it waits for the bank's answer, at the others the gateway holds it. */
export type Moment = Step | 'at the bank';

export const moments: readonly Moment[] = [
  ...(['before the claim', 'claimed', 'sending'] as const),
  ...(['at the bank', 'answered', 'stored'] as const),
];

/** One of each kind of write for each moment, all ready to be sent. */
export interface MomentOfWrite {
  readonly moment: Moment;
  readonly write: Write;
}

export async function newWrites(
  bank: SimulatedBank,
  at: readonly Moment[] = moments,
  names: readonly WriteName[] = writeNames,
): Promise<readonly MomentOfWrite[]> {
  const pairs = at.flatMap((moment) => names.map((name) => ({ moment, name })));
  return Promise.all(pairs.map(async ({ moment, name }) => ({ moment, write: await newWrite(bank, name) })));
}

/** Where a gateway is to hold these writes. */
export const stepsOf = (writes: readonly MomentOfWrite[]): Readonly<Record<string, Step>> =>
  Object.fromEntries(
    writes.flatMap(({ moment, write }) => (moment === 'at the bank' ? [] : [[write.requestId, moment]])),
  );

/** What a TPP is told: `proper` for the bank's own success, `replayed` for that again, `lost` if the connection breaks. */
export type Said = string;

/**
 * Sends writes, and comes back when each stands where it is to.
 *
 * @param hold what keeps the bank from answering those that wait for it
 * @returns what is said to each in the end, in the order of the writes
 */
export async function sendUpTo(
  gateway: SteppingGateway,
  bank: SimulatedBank,
  writes: readonly MomentOfWrite[],
  hold: Fault,
): Promise<readonly Promise<Said>[]> {
  const atBank = writes.filter(({ moment }) => moment === 'at the bank');
  const others = writes.filter(({ moment }) => moment !== 'at the bank');
  const said = new Map<Write, Promise<Said>>();
  const send = ({ write }: MomentOfWrite) => said.set(write, sent(gateway, bank, write));

  others.forEach(send);
  await gateway.reached(others.map(({ write }) => write.requestId));
  bank.injectFault(hold, { times: atBank.length });
  atBank.forEach(send);
  await bank.waitUntil(
    () => atBank.every(({ write }) => write.sent() === 1 && write.effects() !== 0),
    10_000,
  );
  return writes.map(({ write }) => said.get(write) ?? assert.fail());
}

/** Sends a write. Whoever is told that a payment was made is told of one that exists. */
export async function sent(
  gateway: { readonly url: string },
  bank: SimulatedBank,
  write: Write,
): Promise<Said> {
  const reply = await call(gateway.url, write.call).catch(() => undefined);
  if (!reply) return 'lost';
  if (reply.status === 201 && write.name === 'initiation') {
    const known = bank.payments.map(({ paymentId }) => paymentId);
    assert.ok(known.includes(String(jsonOf(reply).paymentId)));
  }
  return inWords(reply, write);
}

const proper = { initiation: '201', cancellation: '202', authorisation: '201' } as const;

function inWords(reply: Reply, { name }: Write): Said {
  const said = saidBy(reply);
  if (said === proper[name]) return 'proper';
  return said === `${proper[name]} replayed` ? 'replayed' : said;
}

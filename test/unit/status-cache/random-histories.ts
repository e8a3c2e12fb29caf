/** Random histories of payments whose status changes, with random delays in every call of the state and of the bank. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { GatewayError } from '../../../src/request/errors.ts';
import type { RoutedRequest } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';
import type { KeyValues, State } from '../../../src/state/ports.ts';
import { createStatusOrderChecker, statusCode, statusNumber } from '../../kit/status-order.ts';
import {
  authorisation,
  bankResponse,
  bankStatusResponse,
  type CacheInstance,
  cancellation,
  statusIn,
  statusRead,
} from './cache-instance.ts';

export interface Step {
  readonly what: 'read' | 'refetch' | 'signed read' | 'cancel' | 'authorise' | 'change status';
  readonly instance: number;
  readonly tpp: string;
  readonly token: string;
  readonly payment: string;
}

/** Several workers, each with a sequence of steps. */
export const randomHistories = (instances: number) =>
  fc.array(
    fc.array(
      fc.record<Step>({
        what: fc.constantFrom(
          'read',
          'read',
          'read',
          'refetch',
          'signed read',
          'cancel',
          'authorise',
          'change status',
        ),
        instance: fc.nat(instances - 1),
        tpp: fc.constantFrom('shop', 'rival'),
        token: fc.constantFrom('one', 'two'),
        payment: fc.constantFrom('p', 'q'),
      }),
      { minLength: 1, maxLength: 6 },
    ),
    { minLength: 2, maxLength: 5 },
  );

/** A bank with random delays before and after it decides a response. */
export function createScheduledBank(scheduler: fc.Scheduler) {
  const counts = new Map<string, number>();
  const count = (payment: string) => counts.get(payment) ?? 0;
  const changeStatus = (payment: string) => void counts.set(payment, count(payment) + 1);
  const bank: Handler<RoutedRequest> = async ({
    operation: { readsStatus, changesStatus, paymentId = '' },
  }) => {
    await scheduler.schedule(Promise.resolve(), 'to the bank');
    if (changesStatus) changeStatus(paymentId);
    const decided = bankStatusResponse(statusCode(count(paymentId)));
    await scheduler.schedule(Promise.resolve(), 'from the bank');
    return readsStatus ? decided : bankResponse(202, [['Status', statusIn(decided)]]);
  };
  return { bank, changeStatus };
}

/** Wraps a state with random delays, and with failures before or after an operation takes effect, as `fails` returns. */
export function withScheduledState(
  state: State,
  scheduler: fc.Scheduler,
  fails: () => 'not' | 'before' | 'after',
): State {
  const delayed = <Arguments extends readonly unknown[], Value>(
    operation: (...all: Arguments) => Promise<Value>,
  ) => {
    return async (...all: Arguments): Promise<Value> => {
      const failure = fails();
      await scheduler.schedule(Promise.resolve(), 'to the state');
      if (failure === 'before') throw new GatewayError('STATE_UNAVAILABLE', 'not done');
      const value = await operation(...all);
      await scheduler.schedule(Promise.resolve(), 'from the state');
      if (failure === 'after') throw new GatewayError('STATE_UNAVAILABLE', 'done, but not confirmed');
      return value;
    };
  };
  const { read, write, writeIfAbsent, replace, remove, removeIf } = state.keyValues;
  const keyValues: KeyValues = {
    read: delayed(read),
    write: delayed(write),
    writeIfAbsent: delayed(writeIfAbsent),
    replace: delayed(replace),
    remove: delayed(remove),
    removeIf: delayed(removeIf),
  };
  return { ...state, keyValues };
}

/** Runs the workers in an order that the scheduler chooses, and checks the order of the statuses that each TPP gets. */
export async function runHistory(
  scheduler: fc.Scheduler,
  instances: readonly CacheInstance[],
  changeStatus: (payment: string) => void,
  workers: readonly (readonly Step[])[],
): Promise<void> {
  const checker = createStatusOrderChecker();

  async function run({ what, instance, tpp, token, payment }: Step): Promise<void> {
    await scheduler.schedule(Promise.resolve(), what);
    if (what === 'change status') return changeStatus(payment);
    const { send } = instances[instance] ?? instances[0] ?? assert.fail();
    const caller = { tenant: tpp, payment, withinMs: 60_000 };
    const headers = [['Authorization', token], ...fieldsOf(what)] as const;
    const lastSeen = checker.lastSeen(tpp, payment);
    if (what !== 'cancel' && what !== 'authorise') {
      const response = await send(statusRead({ ...caller, headers }));
      return checker.onRead(tpp, payment, lastSeen, statusNumber(statusIn(response)));
    }
    const response = await send(what === 'cancel' ? cancellation(caller) : authorisation(caller));
    checker.onWrite(tpp, payment, statusNumber(response.headers[0]?.[1] ?? ''));
  }

  const all = workers.map(async (steps) => {
    for (const step of steps) await run(step);
  });
  await scheduler.waitFor(Promise.all(all));
}

const fieldsOf = (what: Step['what']) => {
  if (what === 'signed read') return [['Signature', 'keyId="1"']] as const;
  return what === 'refetch' ? ([['Cache-Control', 'no-cache']] as const) : [];
};

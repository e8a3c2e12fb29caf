/** Random histories of payments whose status moves on, in which every step of the state and of the bank may be slow. */

import fc from 'fast-check';
import { GatewayError } from '../../../src/request/errors.ts';
import type { RoutedRequest } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';
import type { KeyValues, State } from '../../../src/state/ports.ts';
import { createStatusOrderChecker, statusCode, statusNumber } from '../../kit/status-order.ts';
import {
  authorisation,
  bankResponse,
  type CacheInstance,
  cancellation,
  statusIn,
  statusRead,
  statusResponse,
} from './cache-instance.ts';

/** One thing that happens. */
export interface Step {
  readonly what: 'read' | 'ask the bank' | 'sign' | 'cancel' | 'authorise' | 'move on';
  readonly instance: number;
  readonly tpp: string;
  readonly token: string;
  readonly payment: string;
}

/** Several workers, each of which does one thing after the other. */
export const randomHistories = (instances: number) =>
  fc.array(
    fc.array(
      fc.record<Step>({
        what: fc.constantFrom(
          'read',
          'read',
          'read',
          'ask the bank',
          'sign',
          'cancel',
          'authorise',
          'move on',
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

/** The bank, each of whose answers is decided some time after it was asked and some time before it arrives. */
export function createScheduledBank(scheduler: fc.Scheduler) {
  const counts = new Map<string, number>();
  const count = (payment: string) => counts.get(payment) ?? 0;
  const moveOn = (payment: string) => void counts.set(payment, count(payment) + 1);
  const bank: Handler<RoutedRequest> = async ({
    operation: { readsStatus, changesStatus, paymentId = '' },
  }) => {
    await scheduler.schedule(Promise.resolve(), 'to the bank');
    if (changesStatus) moveOn(paymentId);
    const decided = statusResponse(statusCode(count(paymentId)));
    await scheduler.schedule(Promise.resolve(), 'from the bank');
    return readsStatus ? decided : bankResponse(202, [['Status', statusIn(decided)]]);
  };
  return { bank, moveOn };
}

/** A way to a state on which every step takes its time, and fails as often as `fails` says. */
export function withScheduledState(
  state: State,
  scheduler: fc.Scheduler,
  fails: () => 'not' | 'before' | 'after',
): State {
  const slowly = <Arguments extends readonly unknown[], Value>(
    act: (...all: Arguments) => Promise<Value>,
  ) => {
    return async (...all: Arguments): Promise<Value> => {
      const failure = fails();
      await scheduler.schedule(Promise.resolve(), 'to the state');
      if (failure === 'before') throw new GatewayError('STATE_UNAVAILABLE', 'not done');
      const value = await act(...all);
      await scheduler.schedule(Promise.resolve(), 'from the state');
      if (failure === 'after') throw new GatewayError('STATE_UNAVAILABLE', 'done, and not told');
      return value;
    };
  };
  const { read, write, writeIfAbsent, replace, remove } = state.keyValues;
  const keyValues: KeyValues = {
    read: slowly(read),
    write: slowly(write),
    writeIfAbsent: slowly(writeIfAbsent),
    replace: slowly(replace),
    remove: slowly(remove),
  };
  return { ...state, keyValues };
}

/** Has the workers do all of it, in an order that the scheduler chooses, and watches what the TPPs are shown. */
export async function runHistory(
  scheduler: fc.Scheduler,
  instances: readonly CacheInstance[],
  moveOn: (payment: string) => void,
  workers: readonly (readonly Step[])[],
): Promise<void> {
  const witness = createStatusOrderChecker();

  async function take({ what, instance, tpp, token, payment }: Step): Promise<void> {
    await scheduler.schedule(Promise.resolve(), what);
    if (what === 'move on') return moveOn(payment);
    const { send } = instances[instance] ?? instances[0] ?? unthinkable();
    const who = { tenant: tpp, payment, withinMs: 60_000 };
    const headers = [['Authorization', token], ...fieldsOf(what)] as const;
    const known = witness.lastSeen(tpp, payment);
    if (what !== 'cancel' && what !== 'authorise') {
      const answer = await send(statusRead({ ...who, headers }));
      return witness.onRead(tpp, payment, known, statusNumber(statusIn(answer)));
    }
    const answer = await send(what === 'cancel' ? cancellation(who) : authorisation(who)).catch(unsent);
    if (answer) witness.onWrite(tpp, payment, statusNumber(answer.headers[0]?.[1] ?? ''));
  }

  const all = workers.map(async (steps) => {
    for (const step of steps) await take(step);
  });
  await scheduler.waitFor(Promise.all(all));
}

const fieldsOf = (what: Step['what']) => {
  if (what === 'sign') return [['Signature', 'keyId="1"']] as const;
  return what === 'ask the bank' ? ([['Cache-Control', 'no-cache']] as const) : [];
};

/** A write that was refused has not happened. */
function unsent(thrown: unknown): undefined {
  if (!(thrown instanceof GatewayError && thrown.code === 'STATE_UNAVAILABLE')) throw thrown;
}

function unthinkable(): never {
  throw new Error('there is no instance');
}

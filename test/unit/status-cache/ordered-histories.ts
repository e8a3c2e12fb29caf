/**
 * Random histories of one payment whose status goes forward and back, on several instances: the bank answers any of two
 * statuses. The check: no read is answered
 * without the bank if the bank request behind that answer began before one whose different answer a TPP has received.
 */

import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';
import type { State } from '../../../src/state/ports.ts';
import {
  authorisationRead,
  bankResponse,
  bankStatusResponse,
  type CacheInstance,
  cancellation,
  createCacheInstance,
  paymentRead,
  statusRead,
} from './cache-instance.ts';

const requestKinds = [
  ...(['read', 'read', 'read', 'read', 'read', 'refetch', 'signed read', 'only-if-cached'] as const),
  ...(['get payment', 'get payment', 'get payment', 'get authorisation', 'cancel'] as const),
];
const events = [
  ...(['end the authorisation', 'wait', 'wait', 'wait', 'bank fails', 'bank recovers'] as const),
];

type Step =
  | {
      readonly kind: 'request';
      readonly what: (typeof requestKinds)[number];
      readonly instance: number;
      readonly token: string;
    }
  | { readonly kind: 'event'; readonly what: (typeof events)[number] };

/** Several workers, each with a sequence of steps. */
export const orderedHistories = (instances: number) =>
  fc.array(
    fc.array(
      fc.oneof(
        {
          weight: 6,
          arbitrary: fc.record({
            kind: fc.constant('request' as const),
            what: fc.constantFrom(...requestKinds),
            instance: fc.nat(instances - 1),
            token: fc.constantFrom('one', 'one', 'two'),
          }),
        },
        {
          weight: 1,
          arbitrary: fc.record({ kind: fc.constant('event' as const), what: fc.constantFrom(...events) }),
        },
      ),
      { minLength: 1, maxLength: 6 },
    ),
    { minLength: 3, maxLength: 5 },
  );

/** A request to the bank. `began` and `decided` are numbers of one sequence. */
interface BankRequest {
  readonly began: number;
  decided: number;
  /** The status that the bank answers; `ended`: that the authorisation has ended; `write`: that it has changed something. */
  says: string;
}

/** The statuses that the bank answers, one after the other, and how long each answer is on its way: in steps of others. */
export const bankAnswers = fc.infiniteStream(
  fc.record({ status: fc.constantFrom('ACTC', 'ACTC', 'ACSC'), steps: fc.constantFrom(1, 1, 15) }),
);

export interface HistoryOptions {
  readonly answers: fc.Stream<{ readonly status: string; readonly steps: number }>;
  readonly scheduler: fc.Scheduler;
  readonly instances: number;
  /** The state as this instance reaches it. */
  readonly stateOf: (shared: State) => State;
  readonly createState: (now: () => number) => State;
}

/** Runs the workers in an order that the scheduler chooses, with simulated timers. Fails if an answer is behind what a TPP has received. */
export async function runOrderedHistory(
  { answers, scheduler, instances, stateOf, createState }: HistoryOptions,
  workers: readonly (readonly Step[])[],
): Promise<void> {
  let nowMs = 1_000_000;
  let sequence = 0;
  let bankFails = false;
  let authorisationEnded = false;
  const bankRequests: BankRequest[] = [];
  const received: BankRequest[] = [];

  const bank: Handler<RoutedRequest> = async ({ operation, onSent }) => {
    if (bankFails) throw new GatewayError('CIRCUIT_OPEN', 'the bank fails');
    const request = { began: ++sequence, decided: 0, says: '' };
    const id = bankRequests.push(request) - 1;
    onSent?.();
    await scheduler.schedule(Promise.resolve(), 'to the bank');
    const { status, steps } = answers.next().value;
    request.decided = ++sequence;
    request.says = answerTo(operation, status);
    const response = responseTo(operation, request.says, id);
    for (let step = 0; step < steps; step++) await scheduler.schedule(Promise.resolve(), 'from the bank');
    return response;
  };
  const shared = createState(() => nowMs);
  const gateways = Array.from({ length: instances }, (_, index) =>
    createCacheInstance(
      stateOf(shared),
      bank,
      {},
      () => nowMs + index * 100,
      () => scheduler.schedule(Promise.resolve(), 'read the affinity'),
    ),
  );

  async function run(step: Step): Promise<void> {
    await scheduler.schedule(Promise.resolve(), step.what);
    if (step.kind === 'event') return happen(step.what);
    const known = [...received];
    const response = await send(gateways[step.instance] ?? assert.fail(), step).catch(refused);
    if (!response || response.status > 299) return;
    const request = bankRequests[requestIdIn(response)] ?? assert.fail();
    if (response.servedFrom !== 'bank') {
      for (const newer of known) assertNotBehind(request, newer, step.what);
    }
    received.push(request);
  }

  async function send(gateway: CacheInstance, { what, token }: Step & { kind: 'request' }) {
    const headers = [['Authorization', token]] as const;
    const options = { headers, withinMs: 60_000 };
    switch (what) {
      case 'read':
        return gateway.send(statusRead(options));
      case 'refetch':
        return gateway.send(statusRead({ ...options, headers: [...headers, ['Cache-Control', 'no-cache']] }));
      case 'only-if-cached':
        return gateway.send(
          statusRead({ ...options, headers: [...headers, ['Cache-Control', 'only-if-cached']] }),
        );
      case 'signed read':
        return gateway.send(statusRead({ ...options, headers: [...headers, ['Signature', 'keyId="1"']] }));
      case 'get payment':
        return gateway.send(paymentRead(options));
      case 'get authorisation':
        return gateway.send(authorisationRead(options));
      case 'cancel':
        return gateway.send(cancellation(options));
    }
  }

  function answerTo({ changesStatus, showsStatus }: RoutedRequest['operation'], status: string): string {
    if (changesStatus) return 'write';
    if (showsStatus === 'scaStatus') return authorisationEnded ? 'ended' : 'not ended';
    return status;
  }

  function happen(event: (typeof events)[number]): void {
    switch (event) {
      case 'end the authorisation':
        authorisationEnded = true;
        return;
      case 'wait':
        nowMs += 1_500; // longer than `pendingTtl`
        return;
      case 'bank fails':
      case 'bank recovers':
        bankFails = event === 'bank fails';
    }
  }

  function assertNotBehind(answer: BankRequest, newer: BankRequest, what: string): void {
    if (answer.began > newer.began || answer.says === newer.says) return;
    // The bank had said so before: the answer takes it into account.
    const wasKnown = (one: BankRequest) => one.says === 'ended' && one.decided < answer.began;
    if (newer.says === 'ended' && bankRequests.some(wasKnown)) return;
    if (newer.says === 'not ended') return; // says nothing about the payment
    const text = `request ${answer.began} (${answer.says}) was served to a ${what} after request ${newer.began} (${newer.says})`;
    assert.fail(text);
  }

  const all = workers.map(async (steps) => {
    for (const step of steps) await run(step);
  });
  const done = new AbortController();
  const ticking = tickWhileIdle(done.signal);
  await scheduler.waitFor(Promise.all(all)).finally(() => done.abort());
  await ticking;

  /** An instance that waits for another one looks again after some time. */
  async function tickWhileIdle(signal: AbortSignal): Promise<void> {
    for (; !signal.aborted; await setImmediate()) if (scheduler.count() === 0) mock.timers.tick(200);
  }
}

function responseTo({ changesStatus, showsStatus }: RoutedRequest['operation'], says: string, id: number) {
  const more = { request: id };
  if (changesStatus) return bankResponse(202, [], JSON.stringify(more));
  if (showsStatus !== 'scaStatus') return bankStatusResponse(says, [], more);
  const body = JSON.stringify({ scaStatus: says === 'ended' ? 'finalised' : 'started', ...more });
  return bankResponse(200, [['Content-Type', 'application/json']], body);
}

const requestIdIn = ({ body }: PisResponse): number => Number(JSON.parse(body.toString()).request);

/** Other errors fail the test. */
function refused(thrown: unknown): undefined {
  const expected = ['CIRCUIT_OPEN', 'NOT_CACHED', 'STATE_UNAVAILABLE'];
  if (!(thrown instanceof GatewayError && expected.includes(thrown.code))) throw thrown;
}

/** The part of the contract guard that outlives a reload of the configuration: the queue of checks, their thread, and the report. */

import type { Contract } from '../contract/contract.ts';
import type { Deviation } from '../contract/deviation.ts';
import type { JudgedRequest } from '../contract/judge-request.ts';
import { decodeBody, isEncoded } from '../request/content-coding.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { ContractReportTable } from '../store/contract-report.ts';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import { safeStack } from '../telemetry/log.ts';
import type { Timeline } from '../telemetry/timeline.ts';
import { type CheckableMessage, checkMessage } from './check-message.ts';
import { type CheckQueue, createCheckQueue, type QueuedCheck } from './check-queue.ts';
import { type CheckWorker, createCheckWorker } from './check-worker.ts';
import { createCheckReporter } from './count-checks.ts';
import { createDeviationCounts } from './deviation-counts.ts';
import type { GuardedEnvironment, Judge } from './guarded-environments.ts';
import { createReportReader, type ReportReader } from './read-report.ts';
import { createReportWriter } from './write-report.ts';

export interface ContractGuard extends Pick<CheckQueue, 'addRequest' | 'addResponse' | 'start' | 'stop'> {
  /**
   * Checks a request against the contract of its environment now, and counts the result.
   *
   * @returns the deviations; `undefined` if it cannot be checked in time
   */
  checkNow(request: RoutedRequest, environment: GuardedEnvironment): Deviations | Promise<Deviations>;
  /** Counts a response that the sample leaves out. */
  skipResponse(environment: GuardedEnvironment): void;
  readonly report: ReportReader;
  /** Writes what was counted to the shared report. Never rejects. */
  flush(): Promise<unknown>;
  /** Deletes the days that are older than `contract.keepFor`. @throws DatabaseError */
  deleteExpired(): Promise<void>;
  /** Checks queued messages, writes the last counts, and ends the thread. Never rejects. */
  close(): Promise<void>;
}

type Deviations = readonly Deviation[] | undefined;

interface ContractGuardDependencies {
  readonly table: ContractReportTable;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'log'>;
  readonly timeline: Pick<Timeline, 'record'>;
  /** Service and product of the initiation of a request's payment, if they are known. */
  readonly initiationOf: (request: PisRequest) => JudgedRequest['initiatedAs'];
  /** The name of this instance; new after every start. */
  readonly instance: string;
  /** `contract.keepFor` in milliseconds. */
  readonly keepFor: () => number;
  /** Whether to skip work that can wait. */
  readonly isBusy: () => boolean;
  readonly worker?: CheckWorker;
}

/** Bodies with more bytes are checked in the thread. */
const maxInlineBytes = 64 * 1024;
/** How long a request waits for its check. Milliseconds. */
const maxWaitMs = 2_000;
/** How many responses with a content coding are decoded at the same time. */
const maxDecoding = 8;

export function createContractGuard({
  table,
  telemetry,
  timeline,
  initiationOf,
  instance,
  keepFor,
  isBusy,
  worker = createCheckWorker(),
}: ContractGuardDependencies): ContractGuard {
  const counts = createDeviationCounts();
  const reporter = createCheckReporter({ ...telemetry, timeline });
  const writer = createReportWriter({
    table,
    instance,
    onChange: reporter.onChange,
    onRefused: (thrown) =>
      telemetry.log('error', 'a row of the contract report is not stored', { stack: safeStack(thrown) }),
    take() {
      const counted = counts.take();
      if (counted) reporter.count(counted);
      return counted;
    },
  });
  const queue = createCheckQueue({ check, skip: counts.skip, isBusy });
  let decoding = 0;

  /** Called by the queue. */
  function check(
    { environment, request, body, response, ownDeviations }: QueuedCheck,
    receivedAtMs: number,
  ): boolean {
    const judges = judgesOf(environment, response !== undefined, ownDeviations !== undefined);
    if (!isPrepared(judges)) {
      if (!environment.isUnusable()) {
        void environment.prepare();
        return false;
      }
      counts.skip(environment.name, response ? 'response' : 'request', 'failed');
    } else if (!response) {
      const message = requestMessage(environment, request, body, receivedAtMs);
      void checkAndCount(environment, request, message, judges, ownDeviations);
    } else if (!isEncoded(response)) {
      void checkAndCount(environment, request, responseMessage(request, response), judges);
    } else if (decoding < maxDecoding) {
      void checkDecoded(environment, request, response, judges);
    } else {
      counts.skip(environment.name, 'response', 'shed');
    }
    return true;
  }

  function requestMessage(
    environment: GuardedEnvironment,
    request: PisRequest,
    body: Buffer,
    receivedAtMs: number,
  ): CheckableMessage {
    const { operation, client, headers, tppHeaders = headers } = request;
    const { name, paymentService, paymentProduct } = operation;
    return {
      direction: 'request',
      content: {
        operation: name,
        paymentService,
        paymentProduct,
        headers: tppHeaders,
        consumedHeaders: environment.consumedHeadersOf(client.name),
        body,
        receivedAtMs,
        initiatedAs: initiationOf(request),
      },
    };
  }

  async function checkDecoded(
    environment: GuardedEnvironment,
    request: PisRequest,
    response: PisResponse,
    judges: readonly PreparedJudge[],
  ): Promise<void> {
    decoding += 1;
    const body = await decodeBody(response).catch(() => undefined);
    decoding -= 1;
    // If the body cannot be decoded, the check reports `content-encoding` as not judged.
    const headers = response.headers.filter(([name]) => name.toLowerCase() !== 'content-encoding');
    const decoded = body ? { ...response, body, headers } : response;
    await checkAndCount(environment, request, responseMessage(request, decoded), judges);
  }

  /**
   * Checks a message, in the worker thread if it is large, and counts the result. Never rejects.
   *
   * @param awaitedUntilMs until when the request waits for the result: milliseconds of `performance.now()`
   */
  function checkAndCount(
    environment: GuardedEnvironment,
    request: PisRequest,
    message: CheckableMessage,
    judges: readonly PreparedJudge[],
    ownDeviations?: readonly Deviation[],
    awaitedUntilMs?: number,
  ): Deviations | Promise<Deviations> {
    const { direction, content } = message;
    if (content.body.length > maxInlineBytes) {
      const { tenant } = request.client;
      return worker.check(message, judges, { tenant, awaitedUntilMs }).then((results) => {
        if (!results) counts.skip(environment.name, direction, 'shed');
        return results && countResults(environment, request, message, judges, results, ownDeviations);
      });
    }
    try {
      return countResults(
        environment,
        request,
        message,
        judges,
        checkMessage(message, judges, environment.satisfiesAll),
        ownDeviations,
      );
    } catch {
      // The text of the error may quote the message.
      counts.skip(environment.name, direction, 'failed');
      return undefined;
    }
  }

  /**
   * @param ownDeviations from the contract of the environment, if that is not the first contract
   * @returns the deviations from the first contract
   */
  function countResults(
    environment: GuardedEnvironment,
    { client, requestId, operation, recordEvent }: PisRequest,
    { direction, content }: CheckableMessage,
    judges: readonly Judge[],
    results: readonly (readonly Deviation[])[],
    ownDeviations = results[0],
  ): Deviations {
    const atMs = 'receivedAtMs' in content ? Math.floor(content.receivedAtMs) : Date.now();
    const checked = { operation: operation.name, client: client.name, requestId, atMs };
    const isRefusedByOwn = isRefused(ownDeviations);
    judges.forEach(({ scopes }, at) => {
      const scope = scopes[direction];
      const deviations = results[at] ?? [];
      if (scope.isOwn && recordEvent) recordDeviations(deviations, direction, recordEvent);
      const isInBoth = isRefusedByOwn && !scope.isOwn && isRefused(deviations);
      counts.add(scope, isInBoth ? { ...checked, alsoRefusedBy: environment.own.hash } : checked, deviations);
    });
    return results[0];
  }

  function checkNow(
    request: RoutedRequest,
    environment: GuardedEnvironment,
  ): Deviations | Promise<Deviations> {
    const judges: readonly Judge[] = [environment.own];
    if (isPrepared(judges)) {
      const receivedAtMs = Date.now() - (performance.now() - request.arrivedAtMs);
      const message = requestMessage(environment, request, request.body, receivedAtMs);
      const waitMs = waitMsOf(request);
      const awaitedUntilMs = performance.now() + waitMs;
      const deviations = checkAndCount(environment, request, message, judges, undefined, awaitedUntilMs);
      return deviations instanceof Promise ? within(deviations, waitMs) : deviations;
    }
    return within(
      environment.prepare().then(() => {
        if (isPrepared(judges)) return checkNow(request, environment);
        counts.skip(environment.name, 'request', 'failed');
        return undefined;
      }),
      waitMsOf(request),
    );
  }

  return {
    addRequest: queue.addRequest,
    addResponse: queue.addResponse,
    start: queue.start,
    stop: queue.stop,
    checkNow,
    skipResponse: ({ name }) => counts.skip(name, 'response', 'sampled-out'),
    report: createReportReader({ table, flush: writer.flush, keepFor }),
    flush: writer.flush,
    async deleteExpired() {
      await deleteInBatches((limit, from) => table.deleteDeviations(keepFor(), limit, from));
      await deleteInBatches((limit, from) => table.deleteChecks(keepFor(), limit, from));
      await table.deleteOthers(keepFor());
    },
    async close() {
      queue.stop();
      while (queue.drain() === 'more');
      queue.shedAll();
      await worker.stop(); // counts what it skips
      await writer.flush();
    },
  };
}

type PreparedJudge = Judge & { readonly contract: Contract };

const isPrepared = (judges: readonly Judge[]): judges is readonly PreparedJudge[] =>
  judges.every(({ contract }) => contract !== undefined);

/** Of one message, in the record of its request. */
const maxRecorded = 5;

function recordDeviations(
  deviations: readonly Deviation[],
  of: CheckableMessage['direction'],
  recordEvent: RecordEvent,
): void {
  const notable = deviations.filter(({ level }) => level !== 'usual');
  for (const { path, rule, level } of notable.slice(0, maxRecorded))
    recordEvent({ what: 'deviation', of, path, rule, level });
}

/** Whether an environment with this contract refuses the request. */
const isRefused = (deviations: readonly Deviation[] = []) =>
  deviations.some(({ level, effect }) => level === 'harmful' && effect === 'refused');

function judgesOf(
  { own, judges }: GuardedEnvironment,
  isResponse: boolean,
  isOwnDone: boolean,
): readonly Judge[] {
  if (isResponse) return [own];
  return isOwnDone ? judges.slice(1) : judges;
}

function responseMessage(
  { operation }: PisRequest,
  { status, headers, body }: PisResponse,
): CheckableMessage {
  const { name, paymentService, paymentProduct } = operation;
  return {
    direction: 'response',
    content: { operation: name, paymentService, paymentProduct, status, headers, body },
  };
}

const waitMsOf = ({ deadlineAtMs }: PisRequest) =>
  Math.max(0, Math.min(maxWaitMs, deadlineAtMs - performance.now()));

/** The value, or `undefined` after this time. The promise must not reject. */
function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    void promise.then((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}

/**
 * One attempt to execute a write: from its claim to the record of its outcome.
 *
 * The outcome is recorded before the TPP gets a response. At the deadline the TPP gets OUTCOME_UNKNOWN if the request was sent; the call
 * continues, and a later response of the bank is recorded for repeats. While the database does not accept an outcome, this process keeps
 * it, and tries again every second.
 */

import {
  asGatewayError,
  errorTable,
  GatewayError,
  outcomeUnknown,
  stateUnavailable,
} from '../request/errors.ts';
import { type Identities, identitiesOf } from '../request/identities.ts';
import type {
  NamedPayment,
  PisRequest,
  PisResponse,
  SendWindow,
  WriteAheadMark,
} from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import { noAnswerBeforeDeadline } from '../store/before-deadline.ts';
import { DatabaseError } from '../store/database.ts';
import type {
  Doubt,
  LedgerAnswer,
  LedgerTable,
  NewClaim,
  RecordOutcome,
  SentWrite,
} from '../store/ledger.ts';
import { logInDoubt } from './in-doubt.ts';
import type { LedgerServices } from './ledger-services.ts';
import type { RecentWrite } from './recent-writes.ts';
import { shortenResponse, storedBytesOf } from './shorten-response.ts';

export interface AttemptSettings {
  /** How long an answer waits for that to another tenant with the same X-Request-ID, in milliseconds. */
  readonly waitMs: number;
  /** How long after the deadline a late response is recorded, in milliseconds. */
  readonly lateAnswerMs: number;
  /** Of a longer response, only a part is stored. Bytes of headers and body. */
  readonly maxStoredBytes: number;
}

/** The first byte must leave within this time after the mark began, in milliseconds: later, an operator may have resolved the write. */
const sendWithinMs = 1_000;

/** For how long after the deadline the answer still waits until its outcome is stored, so that a repeat finds it. Milliseconds. */
const storeWithinMs = 250;

/** What the database is asked to store at the end of an attempt. */
type Write = () => Promise<RecordOutcome>;

/** A class, because a factory would create a dozen functions for each payment. */
export class Attempt implements WriteAheadMark {
  readonly lateAnswerMs: number;
  readonly followsReleasedAttempt: boolean;
  readonly #services: LedgerServices;
  readonly #settings: AttemptSettings;
  readonly #claim: NewClaim;
  readonly #client: string;
  readonly #tenant: string;
  #identities: Identities;
  readonly #recordEvent: RecordEvent | undefined;
  /** For how long after the mark an answer is awaited. Milliseconds. */
  readonly #listenMs: number;
  readonly #response = Promise.withResolvers<PisResponse>();
  #clearDeadline = () => {};
  #sent: SentWrite | undefined = undefined;
  #mayBeMarked = false;
  #named: NamedPayment | undefined = undefined;
  #hasEnded = false;
  #isLate = false;
  #isDoubtLogged = false;
  /** The newest outcome that is not stored yet. */
  #unstored: Write | undefined = undefined;
  /** Ends with the last write of an outcome; never rejects. */
  #storing: Promise<unknown> = Promise.resolve();

  constructor(
    services: LedgerServices,
    settings: AttemptSettings,
    request: PisRequest,
    { claim, followsReleased }: { readonly claim: NewClaim; readonly followsReleased: boolean },
  ) {
    this.lateAnswerMs = settings.lateAnswerMs;
    this.followsReleasedAttempt = followsReleased;
    this.#services = services;
    this.#settings = settings;
    this.#claim = claim;
    this.#client = request.client.name;
    this.#tenant = request.client.tenant;
    this.#identities = identitiesOf(request);
    this.#recordEvent = request.recordEvent;
    this.#listenMs = Math.ceil(Math.max(0, request.deadlineAtMs - performance.now()) + settings.lateAnswerMs);
  }

  run(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse> {
    request.writeAheadMark = this;
    this.#answerBy(request.deadlineAtMs, () => {
      if (this.#sent) return outcomeUnknown(); // its call has a deadline of its own, which is not later
      this.#hasEnded = true; // it is never sent
      return noAnswerBeforeDeadline();
    });
    try {
      this.#services.storageBudget.check(this.#tenant);
      next(request).then(
        (response) => this.#onResponse(response, request.deadlineAtMs),
        (thrown: unknown) => this.#onFailure(thrown, request.deadlineAtMs),
      );
    } catch (thrown) {
      this.#onFailure(thrown, request.deadlineAtMs);
    }
    return this.#response.promise.finally(() => this.#clearDeadline());
  }

  async markSending(environment: string): Promise<SendWindow> {
    const { storageBudget, table } = this.#services;
    storageBudget.check(this.#tenant); // again: other writes of the tenant were stored while this one waited in the queue
    const addressRecorded = this.#identities.fixAddress(environment);
    if (addressRecorded) await addressRecorded;
    if (this.#hasEnded) throw stateUnavailable(); // the deadline has passed, and the claim is released
    // From now on: the row may say so as soon as the statement is executed.
    const window = { untilMs: performance.now() + sendWithinMs, untilWallMs: Date.now() + sendWithinMs };
    const sent = {
      ...this.#claim,
      environment: this.#identities.environmentIdOf(environment),
      listenMs: this.#listenMs,
      markedAtMs: performance.now(),
    };
    this.#mayBeMarked = true;
    const mark = () => table.mark({ ...sent, identityRevision: this.#identities.revision });
    let isMarked = await mark();
    if (!isMarked && (await this.#renewIdentities())) isMarked = await mark();
    if (!isMarked) throw takenOverError();
    if (this.#hasEnded) throw stateUnavailable(); // the deadline has passed during the mark: nothing may be sent
    this.#sent = sent;
    this.#remember('sending', again.mark(table, sent));
    return window;
  }

  /**
   * Whether the tenants of credentials have changed since the request was identified, and the request may go on.
   *
   * @throws GatewayError STATE_UNAVAILABLE if it is not one of the same tenant any more
   */
  async #renewIdentities(): Promise<boolean> {
    const former = this.#identities;
    this.#identities = await former.renew();
    if (this.#identities.revision === former.revision) return false;
    const isSame = this.#identities.tenantIdOf(this.#tenant) === this.#claim.tenant;
    if (!isSame || this.#identities.movedClients.has(this.#client)) throw stateUnavailable();
    return true;
  }

  namePayment(named: NamedPayment): void {
    this.#named = named;
  }

  onDeadline(): void {
    const sent = this.#sent;
    if (!sent || this.#hasEnded) return; // an unsent request fails by itself at the deadline
    const error = outcomeUnknown(this.#identities.environmentNameOf(sent.environment));
    this.#answerBy(performance.now(), () => error);
    this.#isLate = true;
    this.#recordEvent?.({ what: 'recorded', as: 'in-doubt' });
    const reject = () => this.#response.reject(error);
    this.#storeDoubt(sent, reasonText(error)).then(reject, reject);
  }

  /** Nothing was sent, or the bank has not processed the request: a repeat is executed as a new request. */
  release(): Promise<void> {
    this.#hasEnded = true;
    const { table, storageBudget } = this.#services;
    // A row that was marked stays.
    if (this.#mayBeMarked && this.#claim.operation === 'initiatePayment')
      storageBudget.countEntry(this.#tenant, 0);
    return this.#store(async () => {
      // Before its row is free: a repeat that claims it must not take it for one that a failover has lost.
      if (this.#mayBeMarked) this.#remember('released', again.release(table, this.#claim));
      await table.release(this.#claim);
      return 'recorded';
    }).then(() => {});
  }

  /** What this instance writes again if a failover loses it. @param bytes of the answer */
  #remember(
    step: RecentWrite['step'],
    writeAgain: RecentWrite['writeAgain'],
    {
      bytes = 0,
      isDoubt = step === 'in-doubt',
    }: { readonly bytes?: number; readonly isDoubt?: boolean } = {},
  ): void {
    const key = this.#claim;
    const { markedAtMs, listenMs } = this.#sent ?? { markedAtMs: Number.POSITIVE_INFINITY, listenMs: 0 };
    const resolvableAtMs = isDoubt ? markedAtMs + listenMs : Number.POSITIVE_INFINITY;
    this.#services.recentWrites.keep({
      ...{ key, attempt: key.attempt, step },
      ...{ bytes, resolvableAtMs, writeAgain },
    });
  }

  /**
   * Rejects the response 250 ms (`storeWithinMs`) after this deadline, if the database has not answered by then.
   *
   * @param deadlineAtMs may be earlier than that of the claim: the environment is known later
   */
  #answerBy(deadlineAtMs: number, errorOf: () => unknown): void {
    if (this.#isLate) return; // the TPP has its answer
    this.#clearDeadline();
    this.#clearDeadline = this.#services.setDeadline(deadlineAtMs + storeWithinMs, () =>
      this.#response.reject(errorOf()),
    );
  }

  #onResponse(response: PisResponse, deadlineAtMs: number): void {
    const sent = this.#sent;
    if (!sent) {
      this.#onFailure(new Error('an answer to a write that was not marked as sending'), deadlineAtMs);
      return;
    }
    this.#answerBy(deadlineAtMs, notStoredError);
    this.#record(sent, response).then(
      () => this.#onRecorded(response),
      (thrown: unknown) => this.#response.reject(thrown),
    );
  }

  /** @throws GatewayError if the TPP must not get the response */
  async #record(sent: SentWrite, response: PisResponse): Promise<void> {
    const { meaning } = response;
    if (meaning?.outcome === 'released') {
      this.#recordEvent?.({ what: 'recorded', as: 'released' });
      await this.release().catch(() => {}); // stored later: the answer is final
      return;
    }
    this.#hasEnded = true;
    if (meaning?.outcome === 'in-doubt') {
      this.#recordEvent?.({ what: 'recorded', as: 'in-doubt' });
      const isWithheld = this.#named
        ? await this.#services.table.followsOther(sent).catch(() => true)
        : false;
      await this.#storeDoubt(sent, meaning.why ?? '', meaning.outcome).catch(throwNotStored);
      if (isWithheld) throw this.#withheld();
      return;
    }
    this.#recordEvent?.({ what: 'recorded', as: 'answered' });
    const outcome = await this.#storeAnswer(sent, await this.#shortened(response)).catch(throwNotStored);
    if (outcome !== 'recorded') throw this.#withheld();
    this.#named?.onStored?.();
  }

  async #shortened(response: PisResponse): Promise<PisResponse> {
    const isLong = storedBytesOf(response) > this.#settings.maxStoredBytes;
    return isLong ? shortenResponse(response) : response;
  }

  #storeAnswer(sent: SentWrite, response: PisResponse): Promise<RecordOutcome> {
    const { table, responses, storageBudget, log } = this.#services;
    const { meaning } = response;
    const stored = responses.write(sent.attempt, response);
    const why = meaning?.why;
    const answer = { ...stored, outcome: meaning?.outcome, why, created: this.#named?.created };
    let waitMs = this.#settings.waitMs;
    return this.#store(async () => {
      const outcome = await table.recordAnswer(sent, answer, waitMs);
      waitMs = 0;
      const bytes = stored.headers.length + stored.body.length;
      if (outcome === 'in-doubt') this.#remember('in-doubt', again.doubt(table, sent, withheldDoubt));
      else
        this.#remember('answered', again.record(table, sent, answer), { bytes, isDoubt: why !== undefined });
      storageBudget.countEntry(this.#tenant, bytes);
      if (outcome === 'in-doubt') logInDoubt(log, sent, 'the answer of the bank is not stored');
      else if (why !== undefined) logInDoubt(log, sent, why);
      return outcome;
    });
  }

  #storeDoubt(sent: SentWrite, why: string, outcome?: 'in-doubt'): Promise<RecordOutcome> {
    const { table, log } = this.#services;
    if (!this.#isDoubtLogged) logInDoubt(log, sent, why);
    this.#isDoubtLogged = true;
    const doubt = { why, ...(outcome && { outcome }) };
    return this.#store(async () => {
      const stored = await table.markInDoubt(sent, doubt);
      this.#remember('in-doubt', again.doubt(table, sent, doubt));
      return stored;
    });
  }

  /**
   * Stores an outcome in place of an earlier one, and after it: an earlier one that the database executes late might find the row of a later
   * attempt.
   *
   * @throws DatabaseError; it is then tried again until it succeeds
   */
  async #store(write: Write): Promise<RecordOutcome> {
    const { attempt } = this.#claim;
    const { unstored, running, wakeRepeats } = this.#services;
    this.#unstored = write;
    const store = async (): Promise<RecordOutcome> => {
      const outcome = await write();
      if (this.#unstored === write) {
        this.#unstored = undefined;
        unstored.delete(attempt);
        running.delete(attempt);
      }
      wakeRepeats(this.#claim);
      if (outcome === 'two-attempts') this.#onTwoAttempts();
      return outcome;
    };
    try {
      return await this.#afterOthers(store);
    } catch (thrown) {
      if (this.#unstored === write)
        unstored.set(attempt, async () => {
          if (this.#unstored === write) await this.#afterOthers(store);
        });
      throw thrown;
    }
  }

  #afterOthers(store: Write): Promise<RecordOutcome> {
    const stored = this.#storing.then(store);
    this.#storing = stored.catch(() => {});
    return stored;
  }

  #onTwoAttempts(): void {
    const { countDuplicate, log } = this.#services;
    const { requestId, operation, tenant } = this.#claim;
    countDuplicate();
    log('error', 'two attempts with the same X-Request-ID have reached the bank', {
      requestId,
      operation,
      tenant,
    });
  }

  #onRecorded(response: PisResponse): void {
    if (this.#isLate) this.#recordEvent?.({ what: 'late-answer', status: response.status });
    else this.#response.resolve(response);
  }

  #onFailure(thrown: unknown, deadlineAtMs: number): void {
    this.#answerBy(Math.max(deadlineAtMs, performance.now()), () => thrown);
    const error = asGatewayError(thrown);
    const reject = () => this.#response.reject(thrown);
    const sent = this.#sent;
    const mayHaveReached = sent !== undefined && errorTable[error.code].reachedBank === 'maybe';
    this.#recordEvent?.({ what: 'recorded', as: mayHaveReached ? 'in-doubt' : 'released' });
    if (mayHaveReached && this.#isLate) return; // the same doubt is stored already
    const stored = mayHaveReached ? this.#storeDoubt(sent, reasonText(error)) : this.release();
    this.#hasEnded = true;
    stored.then(reject, reject); // what could not be stored is tried again
  }

  #withheld(): GatewayError {
    return this.#named?.withheld() ?? notStoredError();
  }
}

/** What is written again after a failover. Outside the class: a closure in it would keep the whole answer of the bank in memory. */
const again = {
  mark: (table: LedgerTable, sent: SentWrite) => () => table.restoreMark(sent),
  record: (table: LedgerTable, sent: SentWrite, answer: LedgerAnswer) => () =>
    table.restoreAnswer(sent, answer),
  doubt: (table: LedgerTable, sent: SentWrite, doubt: Doubt) => () => table.markInDoubt(sent, doubt),
  release: (table: LedgerTable, claim: NewClaim) => () => table.release(claim),
};

/** After a failover, the row of the other tenant may be missing: the answer, written again, would give its payment away. */
const withheldDoubt = { why: 'the answer of the bank is not stored', outcome: 'in-doubt', replaces: true };

/** The reason shown to operators. */
const reasonText = ({ code, message }: GatewayError) => `${code}: ${message}`;

function notStoredError(cause?: unknown): GatewayError {
  if (cause !== undefined && !(cause instanceof DatabaseError)) return asGatewayError(cause);
  const text = 'The bank has answered, but its answer could not be stored.';
  return new GatewayError('OUTCOME_UNKNOWN', text, { cause });
}

/** The bank has received the request: its TPP must not get an error that says that nothing was sent. */
function throwNotStored(thrown: unknown): never {
  throw notStoredError(thrown);
}

function takenOverError(): GatewayError {
  const text =
    'This instance was suspended, and another instance has taken the request over; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}

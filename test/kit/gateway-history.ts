/**
 * A random history of whole gateways: instances that are killed, paused and replaced, clocks that jump, TPP systems that repeat writes at
 * the same time and later, operators, and a bank, a database and a Redis that fail at any point.
 *
 * Afterwards everything heals, the instances recover what was left, and the TPPs repeat all writes. Checks that the bank has executed each
 * write once, that repeats get the same answer, that no outcome is lost, and that each payment is visible to its tenant only.
 */

import assert from 'node:assert/strict';
import type { Config } from '../../src/config/schema.ts';
import type { Services, Stores } from '../../src/services.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { Database, Row } from '../../src/store/database.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { nameOfStatement } from './database-statements.ts';
import {
  createHistoryBank,
  type EnvironmentName,
  environmentNames,
  keyText,
  type WriteKey,
} from './history-bank.ts';
import {
  createHistoryConfig,
  type HistoryGateway,
  recoveryMs,
  startHistoryGateway,
  tenants,
} from './history-gateway.ts';
import { createHistoryDatabase, createHistoryRedis, type StatementFate } from './history-stores.ts';
import { createHistoryTpps, paymentIn, type Wish } from './history-tpps.ts';
import type { SimulatedProcess, SimulatedProcesses } from './simulated-processes.ts';

/** The database of a history. It is migrated and empty. */
export interface HistoryStore {
  /** For which the instances take it. */
  readonly dialect: Database['dialect'];
  /** For an instance that starts. */
  connect(): Database;
  /** For the test: it does not fail. */
  read(sql: string): Promise<readonly Row[]>;
  /** Before each statement. */
  readonly prepare?: () => Promise<void>;
  /** Sets its clock, unless that is the clock of its instance. @param ms forward, or back if negative */
  jump(ms: number): void;
  /** Faults of the network to it, until `heal`. */
  readonly networkFaults: readonly (() => void)[];
  heal(): void;
  /** Waits until the server has executed what it had received before the network failed. */
  readonly settle?: () => Promise<void>;
}

interface HistoryOptions {
  readonly processes: SimulatedProcesses;
  readonly store: HistoryStore;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** How many instances live at a time. */
  readonly instances: number;
}

const steps = 40;
/** How many instances there are, unless more live at a time: to start one takes longer than all that it does. */
const maxStarted = 3;
/** Longer than any request. Milliseconds. */
const longestWaitMs = 60_000;
const longestJumpMs = 10_000;

let config: Config | undefined;

export async function runGatewayHistory(options: HistoryOptions): Promise<void> {
  const history = createHistory(options);
  try {
    await history.run();
    await history.heal();
    await history.check();
  } finally {
    await history.end();
  }
  assert.deepEqual(history.violations, [], `\n${history.story.join('\n')}\n`);
}

function createHistory({ processes, store, random, instances }: HistoryOptions) {
  config ??= createHistoryConfig();
  const configuration = config;
  const chance = (probability: number) => random() < probability;
  const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(random() * from.length)] as Each; // never empty
  const [killRate, pauseRate, statementRate] = [pick([0, 0.01, 0.04]), pick([0, 0.02]), pick([0, 0.02, 0.1])];
  const clocksJump = chance(0.2);
  const recognisesRepeats = chance(0.3);
  const hasRedis = store.dialect === 'postgres' && chance(0.5);

  const story: string[] = [];
  const violations: string[] = [];
  const beganAtMs = processes.now();
  const tell = (event: string) => void story.push(`${processes.now() - beganAtMs} ms: ${event}`);
  const violate = (what: string) => {
    tell(`VIOLATION: ${what}`);
    violations.push(what);
  };

  let isFailing = true;
  let isDatabaseDown = false;
  let started = 0;
  let gateways: HistoryGateway[] = [];
  /** How probable the end of its pause is, at each step. */
  const resumeRates = new Map<SimulatedProcess, number>();
  /** The X-Request-IDs of which operators have said that the write did not happen: a repeat may reach the bank a second time. */
  const denied = new Set<string>();
  /** By how much clocks were set back: for that long, the dead count as living. */
  let setBackMs = 0;
  /** The environments that were active, and those of switches without an answer, which may have had an effect: in their order. */
  const active: string[] = [environmentNames[0]];
  /** The last one of which that is certain: its index, and its version in the database. */
  let certain = { index: 0, version: 1 };
  const world = processes.start('world');
  const redis = createHistoryRedis(processes, world);
  const bank = createHistoryBank({
    process: world,
    ...{ random, recognisesRepeats, tell, onViolation: violate },
    faultRate: pick([0, 0.2, 0.5]),
    sharesIds: chance(0.5),
    onInitiation(environment, key) {
      const wish = tpps.initiationOf(key);
      const allowed = wish?.environment ? [wish.environment] : active.slice(wish?.activeSince);
      if (!allowed.includes(environment))
        violate(`a new payment is sent to ${environment}, not to ${allowed.join(' or ')}`);
    },
  });
  const tpps = createHistoryTpps({
    process: world,
    ...{ random, bank, tell, onViolation: violate },
    gateways: () => ready(),
    activeIndex: () => certain.index,
  });

  const living = () => gateways.filter(({ process }) => !process.isKilled);
  const ready = () => living().filter(({ running }) => running);
  const isAnyPaused = () => gateways.some(({ process }) => process.isPaused);
  const mayKill = () => isFailing && started < Math.max(maxStarted, instances + 1);

  function startGateway(): void {
    started += 1;
    const process = processes.start(`instance-${started}`);
    process.onKill(() => tell(`${process.name} is killed`));
    const log: Log = (level, message, fields) => {
      if (level === 'error' || level === 'warn')
        tell(`${process.name}: ${message} ${JSON.stringify(fields)}`);
      if (message.startsWith('two attempts') && !denied.has(String(fields?.requestId).toLowerCase()))
        violate(message);
    };
    const gateway = startHistoryGateway({
      config: configuration,
      ...{ process, bank, log, createStores: () => storesOf(process) },
      onRefusal: (thrown) => tell(`${process.name} does not start: ${thrown}`),
    });
    gateways = [...living(), gateway];
    tell(`${process.name} starts`);
  }

  function storesOf(process: SimulatedProcess): Stores {
    const { dialect, prepare } = store;
    const turns = () => Math.floor(random() * 3);
    const connect = () =>
      createHistoryDatabase(observed(store.connect()), {
        processes,
        process,
        dialect,
        fateOf,
        pause: () => pause(process),
        turns,
        prepare,
      });
    const database = connect();
    return {
      database,
      heartbeatDatabase: dialect === 'postgres' ? connect() : database,
      state: hasRedis ? redis.stateOf(process) : createMemoryState(),
    };
  }

  function fateOf(statement: string): StatementFate {
    if (!isFailing) return 'executed';
    if (isDatabaseDown) return 'unreachable';
    const weight = statement.includes('ledger') ? 2 : 0.3; // most others are heartbeats
    const drawn = random();
    if (drawn < killRate * weight && mayKill())
      return drawn < (killRate * weight) / 2 ? 'killed before' : 'killed after';
    if (drawn > 0.5 && drawn < 0.5 + pauseRate * weight)
      return drawn < 0.5 + (pauseRate * weight) / 4 ? 'paused before' : 'paused after';
    if (drawn > 1 - statementRate * weight)
      return pick(['unreachable', 'lost before', 'lost after', 'lost after']);
    return 'executed';
  }

  /** Notes which switches and marks have an effect. */
  const observed = (database: Database): Database => ({
    ...database,
    async batch(statement, input) {
      const result = await database.batch(statement, input);
      if (nameOfStatement(statement) !== 'mark') return result;
      const marked = new Set(result.rows.map(({ attempt }) => attempt));
      for (const row of input as readonly Row[])
        if (marked.has(row.attempt ?? null) && row.operation === 'initiatePayment')
          bank.onMark(String(row.environment), keyOf(row));
      return result;
    },
    async query(sql, values) {
      if (!sql.startsWith('UPDATE active_environment')) return database.query(sql, values);
      active.push(String(values?.[0]));
      const rows = await database.query(sql, values);
      const version = Number(rows[0]?.version ?? 0);
      if (version > certain.version) certain = { index: active.push(String(values?.[0])) - 1, version };
      return rows;
    },
  });

  /** An operator asks the bank about a write in doubt, and says what it answers. */
  async function resolveOne({ ledger, resolve }: Services): Promise<void> {
    const doubts = await ledger.inDoubt.all();
    if (doubts.length === 0) return;
    const { id, entry } = pick(doubts);
    const { tenant, requestId, path } = entry;
    const operation = entry.operation as WriteKey['operation']; // histories have no other writes
    const isInitiation = operation === 'initiatePayment';
    const key = {
      tenant,
      operation,
      requestId,
      paymentId: isInitiation ? '' : (path.split('/').at(-1) ?? ''),
    };
    const [executed] = bank.executionsOf(key);
    // After a jump of the clock, an operator may be allowed to say it before the request is sent.
    if (!executed && clocksJump) return;
    const outcome = executed ? 'happened' : 'did-not-happen';
    if (!executed) denied.add(requestId);
    const onDone = executed ? () => {} : tpps.onDenial(key);
    const paymentId = isInitiation && chance(0.8) ? executed?.paymentId : undefined;
    const { kind } = await resolve({
      id,
      who: 'operator',
      reason: 'the bank says so',
      outcome,
      paymentId,
    }).finally(onDone);
    tell(`an operator says that ${keyText(key)} ${outcome}: ${kind}`);
  }

  /** As long as a pause may be: no answer is awaited any more, operators ask the bank, and TPPs repeat everything. */
  async function resolveAll(): Promise<void> {
    await processes.pass(9_000);
    for (const gateway of ready()) for (let times = 3; times > 0; times--) operate(gateway, resolveOne);
    await processes.pass(10);
    tpps.sendAll(tpps.writes());
    await processes.pass(10);
  }

  async function switchEnvironment({ activeEnvironment }: Services): Promise<void> {
    const environment = pick(environmentNames);
    tell(`an operator switches to ${environment}`);
    await activeEnvironment.switchTo(environment);
  }

  function operate(gateway: HistoryGateway, action: (services: Services) => Promise<void>): void {
    const { running, process } = gateway;
    if (!running) return;
    const onFailure = (thrown: unknown) => tell(`an operator gets ${thrown}`);
    process.run(() => void action(running.services).catch(onFailure));
  }

  function pause(process: SimulatedProcess): void {
    if (process.isPaused || !isFailing) return;
    process.pause(chance(0.5) ? 'runs' : 'stands still');
    resumeRates.set(process, pick([0.2, 0.03]));
    tell(`${process.name} is paused`);
  }

  function jump({ process }: HistoryGateway): void {
    if (!clocksJump) return;
    // The marks of two tenants are compared by their times: a clock that is set back between them reverses their order.
    const ms = Math.round((recognisesRepeats ? random() : 2 * random() - 1) * longestJumpMs);
    const isOfDatabase = chance(0.5);
    setBackMs += Math.max(0, -ms);
    if (isOfDatabase) store.jump(ms);
    else process.jump(ms);
    tell(`the clock of ${isOfDatabase ? 'the database' : process.name} jumps by ${ms} ms`);
  }

  /** Something happens to this gateway, or around it. */
  function interfere(gateway: HistoryGateway): void {
    const what = random();
    if (what < 0.15) {
      if (killRate > 0 && mayKill()) gateway.process.kill();
    } else if (what < 0.15 + 5 * pauseRate) pause(gateway.process);
    else if (what < 0.5) jump(gateway);
    else if (what < 0.6) {
      if (chance(0.5)) redis.lose();
      else redis.vanish();
      tell('Redis is lost');
    } else if (what < 0.68) {
      isDatabaseDown = statementRate > 0;
      if (isDatabaseDown) tell('the database cannot be reached');
    } else if (what < 0.75 && store.networkFaults.length > 0) {
      pick(store.networkFaults)();
      tell('the network to the database fails');
    } else operate(gateway, chance(0.4) ? switchEnvironment : resolveOne);
  }

  async function step(): Promise<void> {
    if (living().length < instances && chance(0.5)) startGateway();
    const what = random();
    if (what < 0.5) tpps.sendSomething();
    else if (what < 0.62) await processes.pass(random() * 300);
    else if (what < 0.7) await processes.pass(random() * 4_000);
    else if (what < 0.72) await processes.pass(6_000 + random() * 4_000);
    else if (what < (isAnyPaused() ? 0.77 : 0.74)) await resolveAll();
    else if (ready().length > 0) interfere(pick(ready()));
    for (const { process } of gateways)
      if (process.isPaused && chance(resumeRates.get(process) ?? 1)) process.resume();
    if (chance(0.3)) redis.return();
    if (chance(0.3)) isDatabaseDown = false;
    if (chance(0.3)) store.heal();
    if (chance(0.6)) await processes.turns(Math.floor(random() * 14));
    else await processes.pass(random() * 10);
  }

  async function outcomesOf(repeated: readonly Wish[]): Promise<ReadonlyMap<Wish, string>> {
    const outcomes = tpps.sendAll(repeated);
    for (let waitedMs = 0; outcomes.size < repeated.length && waitedMs < longestWaitMs; waitedMs += 500)
      await processes.pass(500);
    return outcomes;
  }

  async function checkWrites(): Promise<void> {
    const writes = tpps.writes();
    const outcomes = await outcomesOf(writes);
    const rows = new Map((await store.read('SELECT * FROM ledger')).map((row) => [keyText(keyOf(row)), row]));
    for (const [text, { step }] of rows)
      if (step === 'claimed' || step === 'sending') violate(`${text} is left ${step}`);
    for (const text of bank.executedKeys()) {
      const how = String(rows.get(text)?.step);
      if (!['answered', 'happened', 'in-doubt'].includes(how))
        violate(`the outcome of ${text} is lost: ${how}`);
    }
    for (const write of writes)
      checkWrite(write, outcomes.get(write) ?? 'no answer', rows.get(keyText(write)));
  }

  /** @param outcome of the last repeat @param row of the ledger */
  function checkWrite(write: Wish & WriteKey, outcome: string, row: Row | undefined): void {
    const text = keyText(write);
    // An operator may have said so while the answer was on its way.
    const hasHappened = row?.step === 'happened';
    if (write.isDoubtedAfterAnswer && !hasHappened) violate(`the answer to ${text} was not repeated`);
    if (write.answer !== undefined && write.answer !== outcome && !hasHappened)
      violate(`${text} was answered with ${write.answer}, and at the end with ${outcome}`);
    const isUnknown = /^(DUPLICATE_IN_DOUBT|OUTCOME_UNKNOWN|50)/.test(outcome);
    const isInDoubt = hasHappened || (row !== undefined && row.why !== null);
    const isClear = /^(2|400|404|PAYMENT_UNKNOWN|ENVIRONMENT_MISMATCH)/.test(outcome);
    // The bank answers everything by now: only a payment that may be that of the other tenant is withheld.
    const mayBeWithheld = tpps
      .writes()
      .some(({ tenant, requestId }) => tenant !== write.tenant && requestId === write.requestId);
    if (outcome === 'OUTCOME_UNKNOWN' && !mayBeWithheld) violate(`at the end, ${text} is not answered`);
    if (isUnknown ? !isInDoubt : !isClear)
      violate(`at the end, ${text} gets ${outcome}, and is ${row?.step}`);
  }

  /** Each tenant reads each payment that a TPP knows. */
  async function checkPayments(): Promise<void> {
    const reads = tpps.writes().flatMap((write) => {
      const shown = write.answer?.startsWith('201 ') ? paymentIn(write.answer.slice(4)) : undefined;
      if (!shown) return [];
      const { paymentId } = shown;
      const environment = shown.environment as EnvironmentName; // the bank wrote it
      return tenants.map((tenant) => ({
        ...{ shown, isOwn: tenant === write.tenant },
        wish: { ...write, tenant, operation: 'getPaymentStatus', paymentId, environment } as const,
      }));
    });
    const outcomes = await outcomesOf(reads.map(({ wish }) => wish));
    for (const { wish, shown, isOwn } of reads) {
      const outcome = outcomes.get(wish) ?? 'no answer';
      const read = outcome.startsWith('200 ') ? paymentIn(outcome.slice(4)) : undefined;
      const isShown = read?.paymentId === shown.paymentId && read.environment === shown.environment;
      if (isShown !== isOwn)
        violate(`${wish.tenant} reads ${shown.paymentId} in ${shown.environment}: ${outcome}`);
    }
  }

  return {
    story,
    violations,
    async run() {
      for (let count = instances; count > 0; count--) startGateway();
      await processes.settle();
      for (let count = steps; count > 0; count--) await step();
    },
    async heal() {
      tell('everything heals');
      isFailing = false;
      isDatabaseDown = false;
      bank.heal();
      redis.return();
      store.heal();
      await store.settle?.();
      for (const { process } of gateways) process.resume();
      await processes.settle();
      while (living().length < instances) startGateway();
      await processes.pass(recoveryMs + setBackMs);
    },
    async check() {
      await checkWrites();
      await checkPayments();
    },
    async end() {
      for (const { process } of gateways) process.kill();
      world.kill();
      await processes.settle();
    },
  };
}

const keyOf = ({ tenant, operation, payment, request_id }: Row): WriteKey => ({
  tenant: String(tenant),
  operation: String(operation) as WriteKey['operation'], // histories have no other writes
  paymentId: String(payment),
  requestId: String(request_id),
});

/** The TPP systems of a random history: they send few requests often, also at the same time, and compare what they get. */

import { type Call, callOnce, type Reply } from './call.ts';
import { type EnvironmentName, environmentNames, type HistoryBank, type WriteKey } from './history-bank.ts';
import { type HistoryGateway, tenants } from './history-gateway.ts';
import { initiation, transfersPath } from './request.ts';
import { createSimulatedAgent } from './simulated-connections.ts';
import type { SimulatedProcess } from './simulated-processes.ts';

/** A request that a TPP sends until it has an answer. */
export interface Wish {
  readonly tenant: (typeof tenants)[number];
  readonly operation: WriteKey['operation'] | 'getPaymentStatus';
  /** Empty for an initiation. */
  readonly paymentId: string;
  readonly requestId: string;
  /** `Penstock-Environment`. */
  readonly environment: EnvironmentName | undefined;
  /** Which of the environments that become active one after the other was the active one at its first call. */
  readonly activeSince: number;
  /** The final answer of the bank: status and body. */
  answer: string | undefined;
  answeredAt: number;
  /** Calls that began before this are not compared: an operator has said that the write did not happen, so that it is a new one. */
  renewedAt: number;
  /** How many operators are saying so now. */
  denials: number;
  /** After its answer, it got the error of a write in doubt. */
  isDoubtedAfterAnswer: boolean;
}

export type Write = Wish & WriteKey;

interface HistoryTppsOptions {
  readonly process: SimulatedProcess;
  /** From 0 to below 1. */
  readonly random: () => number;
  readonly bank: HistoryBank;
  /** Those that can be reached. */
  readonly gateways: () => readonly HistoryGateway[];
  readonly activeIndex: () => number;
  readonly tell: (event: string) => void;
  readonly onViolation: (what: string) => void;
}

/** So few that they are used again and again, and by both tenants. */
const requestIds = 3;

export function createHistoryTpps({
  process,
  random,
  bank,
  gateways,
  activeIndex,
  tell,
  onViolation,
}: HistoryTppsOptions) {
  const chance = (probability: number) => random() < probability;
  const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(random() * from.length)] as Each; // never empty
  const ids = Array.from({ length: requestIds }, () => uuidFrom(random));
  const wishes = new Map<string, Wish>();
  /** Numbers calls and answers in their order. */
  let order = 0;

  function newWish(): Wish {
    const known = bank.payments();
    const isNew = known.length === 0 || chance(0.6);
    const wish: Wish = {
      tenant: pick(tenants),
      operation: isNew ? 'initiatePayment' : pick(['cancelPayment', 'getPaymentStatus', 'getPaymentStatus']),
      paymentId: isNew ? '' : pick(known).paymentId,
      requestId: pick(ids),
      environment: chance(isNew ? 0.2 : 0.5) ? pick(environmentNames) : undefined,
      activeSince: activeIndex(),
      answer: undefined,
      answeredAt: 0,
      renewedAt: 0,
      denials: 0,
      isDoubtedAfterAnswer: false,
    };
    const text = wishText(wish);
    const same = wishes.get(text) ?? wish;
    wishes.set(text, same);
    return same;
  }

  async function ask(wish: Wish): Promise<string> {
    const [gateway] = gateways().length > 0 ? [pick(gateways())] : [];
    if (!gateway?.running) return 'no gateway';
    const { server } = gateway.running;
    const startedAt = order++;
    const requestId = chance(0.3) ? wish.requestId.toUpperCase() : wish.requestId;
    const agent = createSimulatedAgent(process, () => server);
    const reply = await process
      .run(() => callOnce('http://gateway.example', callOf(wish, requestId), agent))
      .catch(() => undefined);
    const outcome = reply ? (reply.header('Penstock-Error') ?? `${reply.status} ${reply.text}`) : 'cut off';
    tell(`${gateway.process.name} to ${wishText(wish)}: ${outcome}`);
    if (reply) check(wish, reply, outcome, startedAt);
    return outcome;
  }

  function check(wish: Wish, reply: Reply, outcome: string, startedAt: number): void {
    const error = reply.header('Penstock-Error');
    if (error === 'INTERNAL' || error === 'DUPLICATE_MISMATCH')
      onViolation(`${wishText(wish)} gets ${error}`);
    const shown = error === undefined && reply.status < 300 ? paymentIn(reply.text) : undefined;
    if (shown) {
      const isOwn = bank.onSeen(shown.environment, shown.paymentId, wish.tenant);
      if (!isOwn || (wish.environment ?? shown.environment) !== shown.environment)
        onViolation(`${wish.tenant} sees the payment ${shown.paymentId} in ${shown.environment}`);
    }
    if (!isWrite(wish) || startedAt < wish.renewedAt) return;
    if (error === 'DUPLICATE_IN_DOUBT' && wish.answer !== undefined && startedAt > wish.answeredAt)
      wish.isDoubtedAfterAnswer = true;
    const isFinal = error === undefined && reply.status < 500 && reply.status !== 429;
    if (!isFinal) return;
    if (wish.answer !== undefined && wish.answer !== outcome)
      onViolation(`${wishText(wish)} was answered with ${wish.answer}, and now with ${outcome}`);
    wish.answer ??= outcome;
    wish.answeredAt = order++;
  }

  return {
    /** Sends a new request or one of the earlier ones, perhaps twice at the same time. */
    sendSomething(): void {
      const known = [...wishes.values()];
      const wish = known.length > 0 && chance(0.6) ? pick(known) : newWish();
      for (let times = chance(0.3) ? 2 : 1; times > 0; times--) void ask(wish);
    },
    /** Sends them all at once, as after an outage. @returns their outcomes as they arrive */
    sendAll(repeated: readonly Wish[]): ReadonlyMap<Wish, string> {
      const outcomes = new Map<Wish, string>();
      for (const wish of repeated) void ask(wish).then((outcome) => outcomes.set(wish, outcome));
      return outcomes;
    },
    /** An operator is saying that a write did not happen. @returns to be called when that is done; it may never be */
    onDenial(key: WriteKey): () => void {
      const wish = wishes.get(wishText(key));
      const count = (change: 1 | -1) => {
        if (!wish) return;
        wish.denials += change;
        wish.renewedAt = wish.denials > 0 ? Number.POSITIVE_INFINITY : order++;
        wish.answer = undefined;
        wish.isDoubtedAfterAnswer = false;
      };
      count(1);
      return () => count(-1);
    },
    writes: (): readonly Write[] => [...wishes.values()].filter(isWrite),
    initiationOf: ({ tenant, requestId }: Pick<WriteKey, 'tenant' | 'requestId'>): Wish | undefined =>
      wishes.get(wishText({ tenant, requestId, operation: 'initiatePayment', paymentId: '' })),
  };
}

/** The payment in an answer of the bank; `undefined` if it has no body. */
export function paymentIn(body: string) {
  if (body === '') return undefined;
  const [environment = '', paymentId = ''] = String(JSON.parse(body).psuMessage).split(' ');
  return { environment, paymentId };
}

const isWrite = (wish: Wish): wish is Write => wish.operation !== 'getPaymentStatus';

const wishText = ({
  tenant,
  operation,
  paymentId,
  requestId,
}: { readonly tenant: string } & Pick<Wish, 'operation' | 'paymentId' | 'requestId'>): string =>
  `${tenant} ${operation} ${paymentId} ${requestId}`;

function callOf({ tenant, operation, paymentId, environment }: Wish, requestId: string): Call {
  const headers = [
    ['PSU-User-Agent', tenant],
    ['X-API-Key', `key of ${tenant}`],
    ...(environment ? [['Penstock-Environment', environment] as const] : []),
  ] as const;
  const path = `${transfersPath}/${paymentId}`;
  switch (operation) {
    case 'initiatePayment':
      return { ...initiation, requestId, headers: [...headers, ['Content-Type', 'application/json']] };
    case 'cancelPayment':
      return { method: 'DELETE', path, requestId, headers };
    case 'getPaymentStatus':
      return { method: 'GET', path: `${path}/status`, requestId, headers };
  }
}

function uuidFrom(random: () => number): string {
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('');
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`;
}

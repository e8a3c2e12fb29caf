/** Deviations of messages from a contract: a rule and a schema path, never a value or a key of the message. */

/**
 * `harmful`: the bank refuses the message, or does something else than it asks for. `notable`: a part of the message has no
 * effect, or some banks refuse it. `usual`: every bank has it, or it is a known fault of the published files.
 */
export type Level = 'harmful' | 'notable' | 'usual';

/** What an environment that implements the contract does with the message; for answers, what it means to a client. */
export type Effect =
  | 'refused'
  | 'may-be-refused'
  | 'ignored'
  | 'may-be-ignored'
  /** The bank makes the payment at once, not at the date or on the schedule that the message states. */
  | 'executed-at-once'
  /** The bank makes the payments of a standing order on other days than the message states. */
  | 'executed-differently'
  /** An answer contains a field that an environment with this contract does not return. */
  | 'not-returned'
  /** A client of this version may misread the answer. */
  | 'client-may-fail'
  /** The message cannot be checked: it is encoded, too large or too deep. */
  | 'not-judged'
  | 'none';

export type Rule = (typeof rules)[number];

export const rules = [
  // JSON Schema
  'required',
  'type',
  'pattern',
  'format',
  'enum',
  'max-length',
  'min-items',
  'max-items',
  'unique-items',
  'min-properties',
  'empty',
  'unknown',
  'not-in-version',
  'not-in-service',
  'not-in-standard',
  // known faults
  'leading-zero',
  'text-for-boolean',
  'ipv6',
  'singular-name',
  'white-space',
  // the message
  'repeated',
  'required-with',
  'content-type',
  'charset',
  'accept',
  'no-body',
  'unexpected-body',
  'content-encoding',
  'too-large',
  'too-complex',
  'encoding',
  'byte-order-mark',
  'json',
  'duplicate-key',
  'lone-surrogate',
  'xml',
  'doctype',
  'message-type',
  'message-version',
  'order',
  'boundary',
  'parts',
  'status',
  'path',
  'link',
  // the payment
  'iban',
  'currency',
  'currency-withdrawn',
  'amount-positive',
  'amount-digits',
  'significant-digits',
  'identification',
  'end-before-start',
  'months-and-frequency',
  'date-in-past',
  'several-bodies',
  'several-transfers',
  'transfer-count',
  'control-sum',
  'product',
  // the signature
  'digest',
  'digest-algorithm',
  'signature',
  'signed-headers',
  // of a profile
  'forbidden',
  'ignored',
  'characters',
  'too-many-deviations',
] as const;

export interface Deviation {
  readonly level: Level;
  readonly rule: Rule;
  /** Such as `body/payments/#/creditorName`. Names are from the schema; `*` stands for an unknown key, `#` for an index. */
  readonly path: string;
  readonly effect: Effect;
}

/** How many deviations of one message are kept. Harmful ones have a limit of their own, so that others cannot displace them. */
const maxHarmful = 20;
const maxOthers = 29;
/** After so many deviations, repetitions included, the rest of a harmful message is not checked. */
const maxFound = 1_000;

const noDeviations: readonly Deviation[] = [];

/** Collects the deviations of one message, each rule and path once. */
export class DeviationList {
  #deviations: Deviation[] | undefined;
  #known: Set<string> | undefined;
  #found = 0;
  #harmful = 0;

  add(level: Level, rule: Rule, path: string, effect: Effect): void {
    this.addAll([{ level, rule, path, effect }]);
  }

  addAll(deviations: readonly Deviation[]): void {
    for (const deviation of deviations) {
      this.#found++;
      this.#deviations ??= [];
      this.#known ??= new Set();
      const key = keyOf(deviation);
      if (!this.#known.has(key)) this.#keep(deviation, key, this.#deviations, this.#known);
    }
  }

  #keep(deviation: Deviation, key: string, kept: Deviation[], known: Set<string>): void {
    const isHarmful = deviation.level === 'harmful';
    if (isHarmful ? this.#harmful < maxHarmful : kept.length - this.#harmful < maxOthers) {
      known.add(key);
      kept.push(deviation);
      if (isHarmful) this.#harmful++;
      return;
    }
    if (!known.has(tooManyKey)) kept.push(tooMany);
    known.add(tooManyKey);
  }

  /** Whether the message has a harmful deviation, and so many that the rest of it need not be checked. */
  get isFull(): boolean {
    return this.#found >= maxFound && this.#harmful > 0;
  }

  /** Harmful ones first. */
  sorted(): readonly Deviation[] {
    if (!this.#deviations) return noDeviations;
    return this.#deviations.toSorted((one, other) => rankOf[one.level] - rankOf[other.level]);
  }
}

const tooMany: Deviation = {
  level: 'notable',
  rule: 'too-many-deviations',
  path: 'message',
  effect: 'not-judged',
};

const keyOf = ({ rule, path }: Deviation) => `${rule} ${path}`;
const tooManyKey = keyOf(tooMany);

const rankOf: Readonly<Record<Level, number>> = { harmful: 0, notable: 1, usual: 2 };

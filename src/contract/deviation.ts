/** What is wrong with a message, as a rule and a schema path. Never contains a value or a key of the message. */

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
  /** The bank makes the payment at once, not at the date or in the rhythm that the message states. */
  | 'executed-at-once'
  /** The bank makes the payments of a standing order on other days than the message states. */
  | 'executed-differently'
  /** An answer contains what an environment with this contract does not return. */
  | 'not-returned'
  /** A client of this version may misread the answer. */
  | 'client-may-fail'
  /** The message cannot be checked: it is encoded, too large or too deep. */
  | 'not-judged'
  | 'none';

export type Rule =
  // JSON Schema
  | 'required'
  | 'type'
  | 'pattern'
  | 'format'
  | 'enum'
  | 'max-length'
  | 'min-items'
  | 'max-items'
  | 'unique-items'
  | 'min-properties'
  | 'empty'
  | 'unknown'
  | 'not-in-version'
  | 'not-in-service'
  | 'not-in-standard'
  // known faults
  | 'leading-zero'
  | 'text-for-boolean'
  | 'ipv6'
  | 'singular-name'
  | 'white-space'
  // the message
  | 'repeated'
  | 'required-with'
  | 'content-type'
  | 'charset'
  | 'accept'
  | 'no-body'
  | 'unexpected-body'
  | 'content-encoding'
  | 'too-large'
  | 'too-complex'
  | 'encoding'
  | 'byte-order-mark'
  | 'json'
  | 'duplicate-key'
  | 'lone-surrogate'
  | 'xml'
  | 'doctype'
  | 'message-type'
  | 'boundary'
  | 'parts'
  | 'status'
  | 'path'
  | 'link'
  // the payment
  | 'iban'
  | 'currency'
  | 'currency-withdrawn'
  | 'amount-positive'
  | 'amount-digits'
  | 'significant-digits'
  | 'identification'
  | 'end-before-start'
  | 'months-and-frequency'
  | 'date-in-past'
  | 'several-bodies'
  // the signature
  | 'digest'
  | 'digest-algorithm'
  | 'signature'
  | 'signed-headers'
  // of a profile
  | 'forbidden'
  | 'ignored'
  | 'characters'
  | 'too-many-deviations';

export interface Deviation {
  readonly level: Level;
  readonly rule: Rule;
  /** Such as `body/payments/#/creditorName`: the names are those of the schema, `*` is an unknown key, `#` an index. */
  readonly path: string;
  readonly effect: Effect;
}

/** The most deviations that one message can have in a report. */
export const maxDeviations = 50;

export const noDeviations: readonly Deviation[] = [];

/** Collects the deviations of one message, each rule and path once. */
export class DeviationList {
  #found: Deviation[] | undefined;
  #known: Set<string> | undefined;

  add(level: Level, rule: Rule, path: string, effect: Effect): void {
    this.addAll([{ level, rule, path, effect }]);
  }

  addAll(deviations: readonly Deviation[]): void {
    for (const deviation of deviations) {
      this.#found ??= [];
      this.#known ??= new Set();
      const key = `${deviation.rule} ${deviation.path}`;
      if (this.#known.has(key) || this.isFull) continue;
      this.#known.add(key);
      this.#found.push(deviation);
      if (this.#found.length === maxDeviations - 1) this.#found.push(tooMany);
    }
  }

  /** Whether no further deviation is kept, so that the rest of a large body need not be checked. */
  get isFull(): boolean {
    return this.#found?.length === maxDeviations;
  }

  /** Harmful ones first. */
  sorted(): readonly Deviation[] {
    if (!this.#found) return noDeviations;
    return this.#found.toSorted((one, other) => rankOf[one.level] - rankOf[other.level]);
  }
}

const tooMany: Deviation = {
  level: 'notable',
  rule: 'too-many-deviations',
  path: 'message',
  effect: 'not-judged',
};

const rankOf: Readonly<Record<Level, number>> = { harmful: 0, notable: 1, usual: 2 };

/**
 * The pauses that a bank has asked for, by what they concern (ADR 117). A limit may be that of one payment, of one product of a TPP, or
 * of the whole interface; the answer does not say which. So the narrowest scope pauses first, and a wider one when the bank refuses
 * two different parts of it.
 */

import { hash } from 'node:crypto';
import type { Lane } from '../../pis/operations.ts';

/** What a call belongs to. The probes of the gateway have no product, initiations have no payment. */
export interface ScopedCall {
  readonly lane: Lane;
  readonly tenant: string;
  readonly product?: string | undefined;
  readonly payment?: string | undefined;
  /** In place of `payment`, in what instances tell each other: `paymentKeyOf` it. */
  readonly paymentKey?: string | undefined;
}

/** The fields of a call that a scope has. */
type ScopePath = { readonly [Field in keyof ScopedCall]?: ScopedCall[Field] | undefined };

/** From the widest to the narrowest; each contains the next one. */
const scopeNames = ['environment', 'lane', 'tenant', 'product', 'payment'] as const;
export type ScopeName = (typeof scopeNames)[number];

/** A pause, and what it concerns: `lane` and the following fields are missing in wider scopes. */
export interface Pause extends Omit<ScopePath, 'payment' | 'paymentKey'> {
  readonly scope: ScopeName;
  /** Milliseconds until it ends. */
  readonly pausedMs: number;
}

export interface BankPauses {
  /** The longest pause that concerns a call. */
  of(call: ScopedCall): Pause | undefined;
  /** All pauses, those of the widest scopes first. */
  all(): readonly Pause[];
  /**
   * The bank has refused a call.
   *
   * @param isRemote whether another instance sent the call
   * @returns whether more than a payment pauses
   */
  onRefused(call: ScopedCall, pauseMs: number, isRemote: boolean): boolean;
  /** The bank has answered a call. @returns whether that contradicts a refusal: other instances must know it */
  onAnswered(call: ScopedCall): boolean;
  /** Pauses a scope, as another instance did. */
  pause(scope: ScopePath, pauseMs: number): void;
}

/** Two refusals further apart than this are no evidence together. Milliseconds. */
export const evidenceMs = 10_000;

/** The same pause by two clocks, or after two conversions, differs by less than this. Milliseconds. */
const clockErrorMs = 500;

/** Nodes of payments; a refusal of a further payment pauses nothing. */
const maxPayments = 10_000;

/** A scope with a recent refusal or a pause. */
interface Scope {
  readonly name: ScopeName;
  readonly key: string;
  readonly call: ScopePath;
  readonly parent: Scope | undefined;
  readonly children: Map<string, Scope>;
  refusedAtMs: number;
  /** What the last refused call concerned: a payment, or the product of an initiation, regardless of the lane. */
  refused: string;
  answeredAtMs: number;
  resumesAtMs: number;
}

/** @param now milliseconds of a monotonic clock */
export function createBankPauses(now: () => number): BankPauses {
  const root = createScope('environment', '', undefined, {});
  let payments = 0;
  let prunedAtMs = Number.NEGATIVE_INFINITY;
  /** No refusal and no pause is later: most calls find that there is nothing to look up. */
  let lastResumesAtMs = Number.NEGATIVE_INFINITY;
  let lastRefusedAtMs = Number.NEGATIVE_INFINITY;

  function of(call: ScopedCall): Pause | undefined {
    const nowMs = now();
    if (nowMs >= lastResumesAtMs) return undefined;
    const longest = existingScopes(call).reduce((longest, scope) =>
      scope.resumesAtMs > longest.resumesAtMs ? scope : longest,
    );
    return longest.resumesAtMs > nowMs ? pauseOf(longest, nowMs) : undefined;
  }

  function onRefused(call: ScopedCall, pauseMs: number, isRemote: boolean): boolean {
    const nowMs = now();
    if (nowMs - prunedAtMs > evidenceMs) prune(nowMs);
    const narrowest = scopeOf(call);
    if (!narrowest) return false;
    lastRefusedAtMs = nowMs;
    // The table of payments is that of this instance; the others find out by themselves.
    if (!isRemote || narrowest.name !== 'payment') pauseScope(narrowest, nowMs + pauseMs);
    let isWide = narrowest.name !== 'payment';
    const refused = keysOf(call).slice(1).join('\n');
    narrowest.refusedAtMs = nowMs;
    narrowest.refused = refused;
    for (let child = narrowest, { parent } = child; parent; child = parent, { parent } = child) {
      parent.refusedAtMs = nowMs;
      parent.refused = refused;
      if (refusedChildren(parent, nowMs) < 2) continue;
      pauseScope(parent, nowMs + pauseMs);
      isWide = true;
    }
    return isWide;
  }

  /** In how many children different payments or products were refused since the scope has had an answer. */
  function refusedChildren({ children, answeredAtMs }: Scope, nowMs: number): number {
    const sinceMs = Math.max(nowMs - evidenceMs, answeredAtMs);
    const fresh = Array.from(children.values()).filter(({ refusedAtMs }) => refusedAtMs > sinceMs);
    return new Set(fresh.map(({ refused }) => refused)).size; // one payment may be refused in two lanes
  }

  function onAnswered(call: ScopedCall): boolean {
    const nowMs = now();
    if (nowMs - lastRefusedAtMs > evidenceMs) return false;
    const refuted = existingScopes(call).filter(
      ({ refusedAtMs, answeredAtMs }) => refusedAtMs > answeredAtMs,
    );
    for (const scope of refuted) scope.answeredAtMs = nowMs;
    return refuted.length > 0;
  }

  function pauseScope(scope: Scope, resumesAtMs: number): void {
    scope.resumesAtMs = Math.max(scope.resumesAtMs, resumesAtMs);
    lastResumesAtMs = Math.max(lastResumesAtMs, resumesAtMs);
  }

  /** The scopes of a call that have a node: at least the environment. */
  function existingScopes(call: ScopedCall): readonly Scope[] {
    const scopes = [root];
    let scope: Scope | undefined = root;
    for (const key of keysOf(call)) {
      scope = scope.children.get(key);
      if (!scope) break;
      scopes.push(scope);
    }
    return scopes;
  }

  /** @returns `undefined` if there are too many payments */
  function scopeOf(call: ScopePath): Scope | undefined {
    let scope = root;
    for (const [depth, key] of keysOf(call).entries()) {
      const name = scopeNames[depth + 1] ?? 'payment';
      let child = scope.children.get(key);
      if (!child) {
        if (name === 'payment' && payments >= maxPayments) return undefined;
        if (name === 'payment') payments += 1;
        child = createScope(name, key, scope, call);
        scope.children.set(key, child);
      }
      scope = child;
    }
    return scope;
  }

  /** Removes the scopes that have neither a pause nor evidence. */
  function prune(nowMs: number, scope = root): void {
    prunedAtMs = nowMs;
    for (const child of scope.children.values()) {
      prune(nowMs, child);
      const isOver = child.resumesAtMs <= nowMs && child.refusedAtMs <= nowMs - evidenceMs;
      if (!isOver || child.children.size > 0) continue;
      scope.children.delete(child.key);
      if (child.name === 'payment') payments -= 1;
    }
  }

  function all(): readonly Pause[] {
    const nowMs = now();
    const found: Pause[] = [];
    for (let level: readonly Scope[] = [root]; level.length > 0; level = level.flatMap(childrenOf))
      found.push(
        ...level.filter(({ resumesAtMs }) => resumesAtMs > nowMs).map((scope) => pauseOf(scope, nowMs)),
      );
    return found;
  }

  return {
    of,
    all,
    onRefused,
    onAnswered,
    pause(call, pauseMs) {
      const scope = scopeOf(call);
      const resumesAtMs = now() + pauseMs;
      if (scope && resumesAtMs > scope.resumesAtMs + clockErrorMs) pauseScope(scope, resumesAtMs);
    },
  };
}

/** A hash, so that no message contains the id of a payment. */
export const paymentKeyOf = (payment: string): string => hash('sha256', payment, 'base64url');

/** The names of the scopes below the environment, as far as the call has them. */
const keysOf = ({ lane, tenant, product, payment, paymentKey }: ScopePath): readonly string[] => {
  const key = paymentKey ?? (payment === undefined ? undefined : paymentKeyOf(payment));
  const keys = [lane, tenant, product, key];
  const end = keys.indexOf(undefined);
  return keys.slice(0, end < 0 ? keys.length : end).filter((key) => key !== undefined);
};

const createScope = (name: ScopeName, key: string, parent: Scope | undefined, call: ScopePath): Scope => ({
  name,
  key,
  parent,
  call: callUpTo(name, call),
  children: new Map(),
  refusedAtMs: Number.NEGATIVE_INFINITY,
  refused: '',
  answeredAtMs: Number.NEGATIVE_INFINITY,
  resumesAtMs: Number.NEGATIVE_INFINITY,
});

/** The part of a call that a scope has in common with all its calls, without the id of a payment. */
function callUpTo(name: ScopeName, { lane, tenant, product }: ScopePath): ScopePath {
  const fields = Object.entries({ lane, tenant, product }).slice(0, scopeNames.indexOf(name));
  return Object.fromEntries(fields);
}

const childrenOf = ({ children }: Scope): readonly Scope[] => [...children.values()];

const pauseOf = ({ name, call, resumesAtMs }: Scope, nowMs: number): Pause => ({
  scope: name,
  ...call,
  pausedMs: resumesAtMs - nowMs,
});

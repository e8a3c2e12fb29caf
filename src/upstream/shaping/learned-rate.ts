/** How fast the bank is called after it has said 429: lowered at once, raised again slowly. Arithmetic alone. */

/** What a 429 taught. */
export interface Lowered {
  /** Turns a second at which the bank said it. */
  readonly at: number;
  /** Whether it said it more than once, or soon again. */
  readonly repeated: boolean;
}

/** A 429 this soon after the last pause is a repeated one: the rate is still too high by far. Milliseconds. */
export const soonMs = 10_000;

/** Repeated: half of it, and then no more than three quarters. Once: a little less. The bank may have had a bad moment. */
const steps = {
  repeated: { base: 0.5, plateau: 0.75 },
  once: { base: 0.8, plateau: 0.9 },
} as const;

/** How long the way from the base to the plateau takes. Milliseconds. */
const approachMs = 5_000;
/** How long the rate then takes to grow by a tenth; ten times that in about twice the time, for growth is cubic. */
const growthMs = 25_000;
/** What it grows from at least, as a part of the configured rate: from any depth it is back within three minutes. */
const leastPart = 1 / 30;
/** Turns a second at least: one in ten seconds, so that a bank which always says 429 does not end in hours of silence. */
const slowest = 0.1;

/**
 * Turns a second, a while after the pause that came with the 429.
 *
 * The rate begins at a base, comes to a plateau below the rate that was too high, stays near it for long, and then grows
 * faster and faster, after CUBIC (RFC 9438 section 4.1): near the bank's limit a 429 every half minute or so costs little,
 * and a bank that has got well is found out within two minutes.
 *
 *     t < approach:  base + (plateau - base) * t / approach
 *     then:          plateau + 0.1 * max(plateau, configured / 30) * ((t - approach) / growth)^3
 *
 * It is never below one turn in ten seconds: the pauses that the bank asks for are kept besides.
 *
 * @param sinceMs   milliseconds since the pause ended; before that the rate is the base
 * @param configured the rate that is never exceeded
 */
export function learnedRate({ at, repeated }: Lowered, sinceMs: number, configured: number): number {
  const step = repeated ? steps.repeated : steps.once;
  const [base, plateau] = [at * step.base, at * step.plateau];
  const within = (perSecond: number) => Math.min(Math.max(perSecond, slowest), configured);
  if (sinceMs <= 0) return within(base);
  if (sinceMs < approachMs) return within(base + ((plateau - base) * sinceMs) / approachMs);
  const growth = ((sinceMs - approachMs) / growthMs) ** 3;
  return within(plateau + 0.1 * Math.max(plateau, configured * leastPart) * growth);
}

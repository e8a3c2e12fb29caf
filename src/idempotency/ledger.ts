/**
 * The ledger: one entry for each use of an `X-Request-ID` by a tenant, each step of its life one compare-and-set.
 *
 *   (none) -> claimed -> sending -> answered      claimed and sending may be given back, if the bank was provably not
 *                           \-> in-doubt -> answered | happened | (none)                                      reached
 *
 * The step to `sending` is the last before the first byte. Whoever slept and was taken over fails at it; whoever dies
 * after it leaves a doubt.
 */

import { randomUUID } from 'node:crypto';
import { GatewayError } from '../flow/errors.ts';
import type { PisRequest, PisResponse } from '../flow/messages.ts';
import type { KeyValues } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type Answered,
  answered,
  type Claimed,
  claimed,
  type Doubtful,
  type Entry,
  type Happened,
  isDoubtful,
  parsed,
  released,
  releasedForMs,
  type Sending,
  written,
} from './entry.ts';
import type { Identity } from './fingerprint.ts';
import type { Holders } from './holders.ts';
import type { OpenEntries } from './open-entries.ts';

/** What there is of an `X-Request-ID`. */
export type Found =
  | { readonly kind: 'free'; readonly claim: Claim }
  | { readonly kind: 'another-request' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly entry: Answered }
  | { readonly kind: 'happened'; readonly entry: Happened }
  | { readonly kind: 'in-doubt' };

/** Instances of a gateway, reduced to their duplicates' guard. */

import type { Config } from '../../../src/config/schema.ts';
import type { PisRequest, PisResponse } from '../../../src/flow/messages.ts';
import type { Handler } from '../../../src/flow/stage.ts';
import type { Fact } from '../../../src/flow/trail.ts';
import {
  createGuard,
  createLastingLedger,
  type LastingLedger,
} from '../../../src/idempotency/create-ledger.ts';
import { guardDuplicates } from '../../../src/idempotency/guard-duplicates.ts';
import { createResolve, type Resolve } from '../../../src/idempotency/resolve.ts';
import type { State } from '../../../src/state/ports.ts';
import { configOf, publicUrl, type Sections } from '../../kit/gateway.ts';

export interface Instance {
  /** Sends a request through the stage, as the line does. */
  ask(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse>;
  readonly lasting: LastingLedger;
  readonly resolve: Resolve;
  /** Which payment was learnt to live where. */
  readonly learnt: readonly string[];
  /** How often operators resolved something. */
  readonly audited: readonly Readonly<Record<string, unknown>>[];
  /** How many doubts there were at the last look around. */
  doubts(): number | undefined;
  /** Level and message of every line logged. */
  readonly logged: readonly string[];
  /** What was noted of all requests. */
  readonly facts: readonly Fact[];
}

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const configs = new Map<string, Config>();

/** Each configuration is read once: random histories make thousands of instances. */
function configWith(sections: Sections): Config {
  const name = JSON.stringify(sections);
  const config = configs.get(name) ?? configOf({ environments, listen: { publicUrl }, ...sections });
  configs.set(name, config);
  return config;
}

/** @param state its way to what all instances share */
export function createInstance(state: State, sections: Sections = {}): Instance {
  const config = configWith(sections);
  const logged: string[] = [];
  const facts: Fact[] = [];
  const learnt: string[] = [];
  const audited: Readonly<Record<string, unknown>>[] = [];
  let count: number | undefined;
  const log = (level: string, message: string) => void logged.push(`${level}: ${message}`);
  const lasting = createLastingLedger(state, log, (doubts) => {
    count = doubts;
  });
  const stage = guardDuplicates(createGuard(config, lasting));
  return {
    lasting,
    learnt,
    audited,
    logged,
    facts,
    ask: (request, next) => stage({ ...request, note: (fact) => facts.push(fact) }, next),
    resolve: createResolve({
      ...lasting,
      affinity: {
        learn: async (paymentId, { environment, tenant }, lasts) =>
          void learnt.push(`${paymentId} of ${tenant} in ${environment}, ${lasts}`),
      },
      audit: {
        record: async ({ who, outcome, details }) => void audited.push({ who, outcome, ...details }),
      },
      windowMs: () => config.idempotency.window,
    }),
    doubts: () => count,
  };
}

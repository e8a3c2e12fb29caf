/** The contract of an environment: the schemas of its version, with the additions and restrictions of its bank, compiled. */

import { createHash } from 'node:crypto';
import { answerDefinitions } from './answer-schemas.ts';
import { compileSchemas, type Definitions, type Direction, type Validators } from './compile-schemas.ts';
import { sharedDefinitions } from './field-schemas.ts';
import { applyProfile, type Profile } from './profile.ts';
import type { GatewayHeaders } from './request-headers.ts';
import { requestDefinitions } from './request-schemas.ts';
import { nearestVersion, ofVersion, type StandardVersion } from './standard-versions.ts';

export interface ContractOptions {
  /** The label of the environment. Between known versions, the older one applies. */
  readonly standardVersion: string;
  readonly profile?: Profile | undefined;
  /** The zone of the bank, such as `Europe/Amsterdam`: only with it, a date in the past is harmful. */
  readonly timeZone?: string | undefined;
  /** Headers that the gateway takes from the TPP in this environment: they are not judged. */
  readonly gatewayHeaders?: readonly GatewayHeaders[] | undefined;
}

export interface Contract {
  /** Of everything that a verdict depends on, in 16 hexadecimal digits. */
  readonly hash: string;
  readonly version: StandardVersion;
  readonly profile: Profile | undefined;
  readonly timeZone: string | undefined;
  readonly gatewayHeaders: readonly GatewayHeaders[];
  readonly validators: Validators;
}

/**
 * Part of the hash. To be raised with each change of the code in this folder after which a message is judged differently; a test
 * compares the verdicts of its examples.
 */
const ruleRevision = 4;

/** Costs a few milliseconds, and compiles nothing. */
export const contractHash = (options: ContractOptions): string => hashOf(options, definitionsOf(options));

/**
 * Compiles the contract, a schema in each turn of the event loop. Equal options share one contract.
 *
 * @see prepared for how long it is kept
 */
export function prepareContract(options: ContractOptions): Promise<Contract> {
  const definitions = definitionsOf(options);
  const hash = hashOf(options, definitions);
  const known = prepared.get(hash);
  if (known) return known;
  const contract = compile(hash, options, definitions);
  prepared.set(hash, contract);
  const [oldest] = prepared.keys();
  if (prepared.size > maxPrepared && oldest !== undefined) prepared.delete(oldest);
  return contract;
}

/** More than the contracts of five environments before and after a reload. */
const maxPrepared = 10;
const prepared = new Map<string, Promise<Contract>>();

async function compile(hash: string, options: ContractOptions, definitions: Definitions): Promise<Contract> {
  return {
    hash,
    version: nearestVersion(options.standardVersion),
    profile: options.profile,
    timeZone: options.timeZone,
    gatewayHeaders: options.gatewayHeaders ?? [],
    validators: await compileSchemas(definitions, directions),
  };
}

/** The definitions that describe a whole message. */
const directions: Readonly<Record<string, Direction>> = {
  ...Object.fromEntries(Object.keys(requestDefinitions).map((name) => [name, ofRequests()])),
  paymentInitiated: ofAnswers(),
  paymentStatus: ofAnswers(),
  shownPayment: ofAnswers(),
  shownPeriodicPayment: ofAnswers(),
  shownStandingOrder: ofAnswers(),
  cancellationStarted: ofAnswers(),
  authorisationStarted: ofAnswers(),
  authorisationList: ofAnswers(),
  authorisation: ofAnswers(),
  tppMessagesError: ofErrors(),
  problem: ofErrors(),
};

function ofRequests(): Direction {
  return {
    broken: { level: 'harmful', effect: 'refused' },
    unknownField: { level: 'notable', effect: 'ignored' }, // bodies are open: the bank does not refuse it
    emptyText: { level: 'notable', effect: 'may-be-refused' },
    translate: (absence) => absence,
  };
}

function ofAnswers(): Direction {
  return {
    broken: { level: 'harmful', effect: 'client-may-fail' },
    unknownField: { level: 'usual', effect: 'none' },
    emptyText: { level: 'notable', effect: 'client-may-fail' },
    translate({ rule, level, effect }) {
      if (rule === 'not-in-version') return { rule, level: 'notable', effect: 'not-returned' };
      if (effect === 'none') return { rule, level, effect };
      return { rule, level: level === 'harmful' ? 'notable' : level, effect: 'client-may-fail' };
    },
  };
}

/** Banks have many forms of errors: judge-response.ts says what of them is harmful. */
function ofErrors(): Direction {
  return {
    broken: { level: 'usual', effect: 'none' },
    unknownField: { level: 'usual', effect: 'none' },
    emptyText: { level: 'usual', effect: 'none' },
    translate: ({ rule }) => ({ rule, level: 'usual', effect: 'none' }),
  };
}

function definitionsOf({ standardVersion, profile }: ContractOptions): Definitions {
  const version = nearestVersion(standardVersion);
  const resolved = definitionsByVersion.get(version) ?? resolve(version);
  return profile ? applyProfile(resolved, profile) : resolved;
}

const definitionsByVersion = new Map<StandardVersion, Definitions>();

function resolve(version: StandardVersion): Definitions {
  const all: Definitions = { ...sharedDefinitions, ...requestDefinitions, ...answerDefinitions };
  const resolved = Object.fromEntries(
    Object.entries(all).map(([name, schema]) => [name, ofVersion(version, schema)]),
  );
  definitionsByVersion.set(version, resolved);
  return resolved;
}

function hashOf(
  { profile, standardVersion, timeZone, gatewayHeaders = [] }: ContractOptions,
  definitions: Definitions,
): string {
  const content = [
    ruleRevision,
    nearestVersion(standardVersion),
    definitions,
    profile ?? null,
    timeZone ?? null,
    gatewayHeaders,
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

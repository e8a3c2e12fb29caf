/** The contract of an environment: the schemas of its version, with the additions and restrictions of its bank, compiled. */

import { createHash } from 'node:crypto';
import { answerDefinitions } from './answer-schemas.ts';
import { combineDefinitions } from './combine-schemas.ts';
import {
  compileCombined,
  compileSchemas,
  type Definitions,
  type ErrorMeanings,
  type SatisfiesAll,
  type Validators,
} from './compile-schemas.ts';
import { sharedDefinitions } from './field-schemas.ts';
import { applyProfile, type Profile } from './profile.ts';
import type { ConsumedHeaders, RequiredHeaders } from './request-headers.ts';
import { requestDefinitions } from './request-schemas.ts';
import { nearestVersion, ofVersion, type StandardVersion } from './standard-versions.ts';

export interface ContractOptions {
  /** The label of the environment. Between known versions, the older one applies. */
  readonly standardVersion: string;
  readonly profile?: Profile | undefined;
  /** The zone of the bank, such as `Europe/Amsterdam`. Without it, a date in the past is not harmful. */
  readonly timeZone?: string | undefined;
  /** Headers that the gateway consumes in this environment: they are not judged. */
  readonly consumedHeaders?: readonly ConsumedHeaders[] | undefined;
  readonly requiredHeaders?: RequiredHeaders | undefined;
}

export interface Contract {
  /** Hash of everything that the deviations of a message depend on: 16 hexadecimal digits. */
  readonly hash: string;
  readonly version: StandardVersion;
  readonly profile: Profile | undefined;
  readonly timeZone: string | undefined;
  readonly consumedHeaders: readonly ConsumedHeaders[];
  readonly requiredHeaders: RequiredHeaders;
  readonly validators: Validators;
}

/**
 * Part of the hash. Raise it with each change of the code in this folder after which a message has other deviations; a test compares
 * the deviations of its examples.
 */
const ruleRevision = 7;

/** Takes a few milliseconds, and compiles nothing. */
export const contractHash = (options: ContractOptions): string => hashOf(options, definitionsOf(options));

/**
 * Compiles the contract, one definition in each turn of the event loop. Equal options share one contract; the last ten contracts are
 * kept.
 */
export function prepareContract(options: ContractOptions): Promise<Contract> {
  const definitions = definitionsOf(options);
  const hash = hashOf(options, definitions);
  return remember(prepared, hash, () => compile(hash, options, definitions));
}

/** The contracts of five environments, before and after a reload. */
const maxPrepared = 10;
const prepared = new Map<string, Promise<Contract>>();

/**
 * Compiles a check of request bodies that several contracts judge. Equal contracts share one; the last ten are kept.
 *
 * @param all at least two
 */
export function prepareCombined(all: readonly ContractOptions[]): Promise<SatisfiesAll> {
  const definitions = all.map(definitionsOf);
  const hashes = all.map((options, at) => hashOf(options, definitions[at] ?? {}));
  return remember(combined, hashes.toSorted().join(' '), () =>
    compileCombined(combineDefinitions(definitions.map(ofRequests))),
  );
}

const combined = new Map<string, Promise<SatisfiesAll>>();

const ofRequests = (definitions: Definitions): Definitions =>
  Object.fromEntries(Object.entries(definitions).filter(([name]) => !Object.hasOwn(answerDefinitions, name)));

/** Keeps the promises of the last ten names, except those that were rejected. */
function remember<Value>(
  known: Map<string, Promise<Value>>,
  name: string,
  create: () => Promise<Value>,
): Promise<Value> {
  const found = known.get(name);
  if (found) return found;
  const created = create();
  known.set(name, created);
  created.catch(() => known.delete(name));
  const [oldest] = known.keys();
  if (known.size > maxPrepared && oldest !== undefined) known.delete(oldest);
  return created;
}

async function compile(hash: string, options: ContractOptions, definitions: Definitions): Promise<Contract> {
  return {
    hash,
    version: nearestVersion(options.standardVersion),
    profile: options.profile,
    timeZone: options.timeZone,
    consumedHeaders: options.consumedHeaders ?? [],
    requiredHeaders: options.requiredHeaders ?? {},
    validators: await compileSchemas(definitions, errorMeanings),
  };
}

/** By the definitions that describe a whole message. */
const errorMeanings: Readonly<Record<string, ErrorMeanings>> = {
  ...Object.fromEntries(Object.keys(requestDefinitions).map((name) => [name, inRequests()])),
  paymentInitiated: inAnswers(),
  paymentStatus: inAnswers(),
  shownPayment: inAnswers(),
  shownPeriodicPayment: inAnswers(),
  shownStandingOrder: inAnswers(),
  cancellationStarted: inAnswers(),
  shownBulkPayment: inAnswers(),
  authorisationStarted: inAnswers(),
  authorisationUpdated: inAnswers(),
  authorisationList: inAnswers(),
  authorisation: inAnswers(),
  tppMessagesError: inErrors(),
  problem: inErrors(),
};

function inRequests(): ErrorMeanings {
  return {
    violation: { level: 'harmful', effect: 'refused' },
    unknownField: { level: 'notable', effect: 'ignored' }, // the published schemas allow other fields
    emptyText: { level: 'notable', effect: 'may-be-refused' },
    translate: (absence) => absence,
  };
}

function inAnswers(): ErrorMeanings {
  return {
    violation: { level: 'harmful', effect: 'client-may-fail' },
    unknownField: { level: 'usual', effect: 'none' },
    emptyText: { level: 'notable', effect: 'client-may-fail' },
    translate({ rule, level, effect }) {
      if (rule === 'not-in-version') return { rule, level: 'notable', effect: 'not-returned' };
      if (effect === 'none') return { rule, level, effect };
      return { rule, level: level === 'harmful' ? 'notable' : level, effect: 'client-may-fail' };
    },
  };
}

/** Errors of banks have many forms: judge-response.ts decides which deviations are harmful. */
function inErrors(): ErrorMeanings {
  return {
    violation: { level: 'usual', effect: 'none' },
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
  { profile, standardVersion, timeZone, consumedHeaders = [], requiredHeaders }: ContractOptions,
  definitions: Definitions,
): string {
  const content = [
    ruleRevision,
    nearestVersion(standardVersion),
    definitions,
    profile ?? null,
    timeZone ?? null,
    consumedHeaders,
    ...(requiredHeaders ? [requiredHeaders] : []),
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

/** The environments of one configuration, with the checks of the contract guard and their contracts. */

import { readFileSync } from 'node:fs';
import { readProfile } from '../config/contract-profile.ts';
import type { EnvironmentSettings } from '../config/schema.ts';
import type { SatisfiesAll } from '../contract/compile-schemas.ts';
import {
  type Contract,
  type ContractOptions,
  contractHash,
  prepareCombined,
  prepareContract,
} from '../contract/contract.ts';
import type { Profile } from '../contract/profile.ts';
import { type ConsumedHeaders, missingHeaders, type RequiredHeaders } from '../contract/request-headers.ts';
import type { HeaderFields } from '../pis/headers.ts';
import type { OperationName } from '../pis/operations.ts';
import type { CheckScope, Direction } from './deviation-counts.ts';
import { createSampleAnswers, type SampleAnswers } from './sample-answers.ts';

export interface GuardedEnvironment {
  readonly name: string;
  readonly standardVersion: string;
  readonly requests: 'off' | 'report' | 'enforce';
  readonly responses: 'off' | 'report';
  /** The part of the answers that is checked. */
  readonly sample: number;
  /** Whether to check an answer. */
  readonly isSampled: SampleAnswers;
  /** The contract of this environment. */
  readonly own: Judge;
  /** What requests are checked against: `own`, then different contracts of other environments, at most `maxOthers`. */
  readonly judges: readonly Judge[];
  /** The combined check of these contracts, if there are several. Set by `prepare`. */
  satisfiesAll: SatisfiesAll | undefined;
  /** Compiles the contracts of all environments once, in the background. After a failure, a call at least ten seconds later tries again. Never rejects. */
  prepare(): Promise<void>;
  /** Whether contracts of this configuration could not be compiled in the last ten seconds. */
  isUnusable(): boolean;
  /** Whether any operation requires headers beyond the standard. */
  readonly requiresHeaders: boolean;
  /** The first required header that a request lacks. */
  missingHeader(operation: OperationName, headers: HeaderFields): string | undefined;
  /** Headers that the gateway consumes in every environment, because of the client. */
  consumedHeadersOf(client: string): readonly ConsumedHeaders[];
}

/** A contract that messages of an environment are checked against. */
export interface Judge {
  readonly hash: string;
  readonly options: ContractOptions;
  /** How its checks are counted. */
  readonly scopes: Readonly<Record<Direction, CheckScope>>;
  /** Set by `prepare`. */
  contract: Contract | undefined;
}

export interface GuardedEnvironments {
  /** `undefined` if nothing is checked there, and no header is required. */
  of(environment: string): GuardedEnvironment | undefined;
  /** All environments of the configuration, in its order. */
  readonly all: readonly GuardedEnvironment[];
  /**
   * Compiles the contracts that are enforced, so that no request waits for it.
   *
   * @throws Error if they cannot be compiled
   */
  prepareEnforced(): Promise<void>;
}

/** A request is checked against the contracts of at most this many other environments. */
const maxOthers = 4;
interface GuardedEnvironmentOptions {
  readonly compile?: typeof prepareContract;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

/** How long after a failure the contracts are compiled again. Milliseconds. */
const retryMs = 10_000;

/**
 * @param hasWebhooks whether the gateway itself sends notifications to a client
 * @param onUnusable called if the contracts cannot be compiled, for example at the limit of open files
 * @throws Error if a profile cannot be read or used
 */
export function createGuardedEnvironments(
  environments: readonly EnvironmentSettings[],
  hasWebhooks: (client: string) => boolean,
  onUnusable: (cause: unknown) => void,
  { compile = prepareContract, now = () => performance.now() }: GuardedEnvironmentOptions = {},
): GuardedEnvironments {
  const withHashes = environments.map((settings) => {
    const options = contractOptions(settings);
    return { settings, contract: { hash: contractHash(options), options } };
  });
  const distinct = new Map(withHashes.map(({ contract }) => [contract.hash, contract]));
  let prepared: Promise<void> | undefined;
  let failure: { readonly cause: unknown; readonly atMs: number } | undefined;
  const isUnusable = () => failure !== undefined && now() - failure.atMs < retryMs;
  const all = withHashes.map(({ settings, contract }): GuardedEnvironment => {
    const { name } = settings;
    const { requests, responses, sample } = settings.contract;
    const { requiredHeaders = {} } = contract.options;
    const own = createJudge(name, contract, true);
    const others = (requests === 'off' ? [] : [...distinct.values()])
      .filter(({ hash }) => hash !== contract.hash)
      .slice(0, maxOthers)
      .map((other) => createJudge(name, other, false));
    return {
      name,
      standardVersion: settings.standardVersion,
      requests,
      responses,
      sample,
      isSampled: createSampleAnswers(sample),
      own,
      judges: [own, ...others],
      satisfiesAll: undefined,
      requiresHeaders: Object.keys(requiredHeaders).length > 0,
      prepare,
      isUnusable,
      missingHeader: (operation, headers) => missingHeaders(requiredHeaders[operation], headers)[0],
      consumedHeadersOf: (client) => (hasWebhooks(client) ? notificationsOnly : nothing),
    };
  });
  const active = new Map(all.filter(isActive).map((environment) => [environment.name, environment]));

  function prepare(): Promise<void> {
    if (isUnusable()) return Promise.resolve();
    prepared ??= prepareAll([...active.values()], compile).catch((cause: unknown) => {
      failure = { cause, atMs: now() };
      prepared = undefined;
      onUnusable(cause);
    });
    return prepared;
  }

  return {
    of: (environment) => active.get(environment),
    all,
    async prepareEnforced() {
      if (!all.some(({ requests }) => requests === 'enforce')) return;
      await prepare();
      if (all.some(({ requests, own }) => requests === 'enforce' && !own.contract))
        throw new Error('the contracts of the environments cannot be compiled', failure);
    },
  };
}

/** @param environment that the messages belong to. @param isOwn whether it has this contract */
export function createJudge(
  environment: string,
  { hash, options }: Pick<Judge, 'hash' | 'options'>,
  isOwn: boolean,
): Judge {
  const scope = { environment, hash, isOwn };
  const scopes = {
    request: { ...scope, direction: 'request' },
    response: { ...scope, direction: 'response' },
  } as const;
  return { hash, options, scopes, contract: undefined };
}

const isActive = ({ requests, responses, requiresHeaders }: GuardedEnvironment) =>
  requests !== 'off' || responses !== 'off' || requiresHeaders;

/** One after the other: each takes some milliseconds. */
async function prepareAll(
  environments: readonly GuardedEnvironment[],
  compile: typeof prepareContract,
): Promise<void> {
  const enforcedFirst = environments.toSorted(
    (one, other) => Number(other.requests === 'enforce') - Number(one.requests === 'enforce'),
  );
  for (const environment of enforcedFirst) {
    const { judges, requests, responses } = environment;
    if (requests === 'off' && responses === 'off') continue;
    const contracts: Contract[] = [];
    for (const { options } of judges) contracts.push(await compile(options));
    if (judges.length > 1)
      environment.satisfiesAll = await prepareCombined(judges.map(({ options }) => options));
    for (const [at, judge] of judges.entries()) judge.contract = contracts[at];
  }
}

const notificationsOnly: readonly ConsumedHeaders[] = ['notifications'];
const nothing: readonly ConsumedHeaders[] = [];

/** Headers that the gateway consumes in an environment. */
const consumedHeadersIn = ({
  bankNotifications,
  signing,
}: EnvironmentSettings): readonly ConsumedHeaders[] => [
  ...(bankNotifications === 'forward' ? nothing : notificationsOnly),
  ...(signing ? (['signature'] as const) : nothing),
];

/** Headers that the gateway writes itself, so that the bank always gets them. In lower case. */
const writtenHeadersOf = ({ bankNotifications, signing }: EnvironmentSettings): ReadonlySet<string> =>
  new Set([
    ...(bankNotifications === 'receive'
      ? ['tpp-notification-uri', 'tpp-notification-content-preferred']
      : []),
    ...(signing ? ['digest', 'signature', 'tpp-signature-certificate'] : []),
    ...(signing?.addDate ? ['date'] : []),
  ]);

function contractOptions(settings: EnvironmentSettings): ContractOptions {
  const { name, standardVersion, contract } = settings;
  const consumedHeaders = consumedHeadersIn(settings);
  const requiredHeaders = requiredHeadersOf(settings);
  return {
    standardVersion,
    ...(contract.timeZone !== undefined && { timeZone: contract.timeZone }),
    ...(contract.profile !== undefined && { profile: loadProfile(contract.profile, name) }),
    ...(consumedHeaders.length > 0 && { consumedHeaders }),
    ...(Object.keys(requiredHeaders).length > 0 && { requiredHeaders }),
  };
}

/** By operation, without those that the gateway writes itself. */
function requiredHeadersOf(settings: EnvironmentSettings): RequiredHeaders {
  const written = writtenHeadersOf(settings);
  const remaining = Object.entries(settings.contract.requireHeaders).map(
    ([operation, names]) => [operation, names.filter((name) => !written.has(name.toLowerCase()))] as const,
  );
  return Object.fromEntries(remaining.filter(([, names]) => names.length > 0));
}

/** @throws Error that names the setting */
function loadProfile(file: string, environment: string): Profile {
  const result = readProfile(readFileSync(file), file);
  if ('profile' in result) return result.profile;
  const setting = `environments.${environment}.contract.profile`;
  throw new Error(`${setting}: the file has mistakes: ${result.errors.join('; ')}`);
}

/** Replaces the configuration of the running gateway, and reports what changed and who asked for it. */

import { isDeepStrictEqual } from 'node:util';
import type { OperatorAccess } from './admin/operator-access.ts';
import type { ReadAdminCredentials } from './admin/operators.ts';
import {
  applicableOnReload,
  type ConfigChange,
  configChanges,
  describeChange,
  type ReloadReport,
  type ReloadRequest,
  type ReloadResult,
} from './config/config-changes.ts';
import { type DerivedDefault, describeDerived } from './config/derive-defaults.ts';
import type { LoadedConfig } from './config/load.ts';
import { secretMask } from './config/redact.ts';
import type { Config } from './config/schema.ts';
import { describeWarning, exposureWarnings } from './config/warnings.ts';
import type { RequestHandler, RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';
import type { Log } from './telemetry/log.ts';
import type { TimelineEvent } from './telemetry/timeline.ts';

/** Loads the configuration from its file and the environment variables. */
export type LoadConfig = () => LoadedConfig;

export interface ConfigReloader {
  /**
   * Uses another configuration for all requests to come.
   *
   * @throws Error if a file that the configuration names cannot be used, or if its tenants or environments contradict those in the
   *   database; the previous configuration stays in effect
   */
  apply(next: Config): Promise<ReloadReport>;
  /** Loads the configuration again, applies it, and logs the result. Never rejects. */
  reload(request: ReloadRequest): Promise<ReloadResult>;
  /** Why the last configuration could not be used; empty if it could. */
  errors(): readonly string[];
}

interface ConfigReloaderDependencies {
  /** The configuration that the gateway was created with. */
  readonly start: Config;
  readonly requestHandlers: RequestHandlers;
  readonly services: Pick<Services, 'currentConfig' | 'telemetry' | 'audit' | 'timeline' | 'instanceId'>;
  readonly access: Pick<OperatorAccess, 'replace'>;
  readonly readCredentials: ReadAdminCredentials;
  /** `undefined` if the configuration has no source to load it from. */
  readonly load: LoadConfig | undefined;
}

export function createConfigReloader({
  start,
  requestHandlers,
  services,
  access,
  readCredentials,
  load,
}: ConfigReloaderDependencies): ConfigReloader {
  const { currentConfig, audit, timeline, instanceId } = services;
  const { log, metrics } = services.telemetry;
  let pending: Promise<unknown> = Promise.resolve();
  let lastErrors: readonly string[] = [];

  /** One after the other: each reload is compared with the one before. */
  function apply(next: Config): Promise<ReloadReport> {
    const applied = pending.then(async () => {
      const effective = applicableOnReload(next, start);
      const changes = configChanges(currentConfig.value, effective);
      const { guarded, upstreams } = requestHandlers.current;
      const credentials = readCredentials(effective.admin); // before anything changes: a file may be missing
      await requestHandlers.replace(effective);
      access.replace(effective.admin, credentials);
      const profiles = changedProfiles(guarded, requestHandlers.current.guarded, changes);
      const values = changedFixedValues(effective, upstreams, requestHandlers.current.upstreams, changes);
      return {
        changes: [...changes, ...profiles, ...values],
        restartRequired: configChanges(effective, next),
      };
    });
    pending = applied.catch(() => {});
    return applied;
  }

  async function loadAndApply(): Promise<ReloadResult> {
    const loaded = load?.();
    if (!loaded)
      return { kind: 'refused', errors: ['this gateway was started without a configuration file'] };
    if (loaded.kind === 'invalid') return { kind: 'refused', errors: loaded.errors };
    try {
      const report = await apply(loaded.config);
      logDerived(loaded.derived, log);
      logExposure(loaded.config, log);
      return { kind: 'applied', ...report };
    } catch (cause) {
      return { kind: 'refused', errors: [cause instanceof Error ? cause.message : String(cause)] };
    }
  }

  return {
    errors: () => lastErrors,
    async apply(next) {
      const report = await apply(next);
      timeline.record(timelineEventOf({ kind: 'applied', ...report }, 'program'));
      return report;
    },
    async reload(request) {
      const result = await loadAndApply();
      lastErrors = result.kind === 'refused' ? result.errors : [];
      metrics.increment('penstock_config_reloads_total', { outcome: result.kind });
      logResult(result, request, log);
      timeline.record(timelineEventOf(result, request.by === 'signal' ? request.signal : request.operator));
      if (request.by === 'operator') {
        const { operator: who, reason } = request;
        const action = 'reload configuration';
        const details = { reason, instance: instanceId, ...detailsOf(result) };
        await audit.record({ who, action, outcome: result.kind, details });
      }
      return result;
    },
  };
}

/** Profile files whose content has changed under the same name. */
function changedProfiles(
  previous: RequestHandler['guarded'],
  next: RequestHandler['guarded'],
  changes: readonly ConfigChange[],
): readonly ConfigChange[] {
  return next.all.flatMap(({ name, own }) => {
    const before = previous.all.find((environment) => environment.name === name)?.own;
    const setting = `environments.${name}.contract.profile`;
    if (!before?.options.profile || !own.options.profile) return [];
    if (changes.some((change) => change.setting === setting)) return [];
    if (isDeepStrictEqual(before.options.profile, own.options.profile)) return [];
    return [{ setting: `${setting} (content)`, from: before.hash, to: own.hash }];
  });
}

/** Files and variables with other values than before, under the same names. */
function changedFixedValues(
  { environments }: Config,
  previous: RequestHandler['upstreams'],
  next: RequestHandler['upstreams'],
  changes: readonly ConfigChange[],
): readonly ConfigChange[] {
  return environments.all.flatMap(({ name: environment }) =>
    (['headers', 'query'] as const).flatMap((kind) => {
      const before = new Map(previous.fixedValues(environment)?.[kind]);
      return (next.fixedValues(environment)?.[kind] ?? []).flatMap(([name, value]) => {
        const setting = `environments.${environment}.${kind}.${name}`;
        const isReported = changes.some((change) => change.setting === setting);
        if (isReported || !before.has(name) || before.get(name) === value) return [];
        return [{ setting: `${setting} (content)`, from: secretMask, to: secretMask }];
      });
    }),
  );
}

/** Logs the defaults that differ from the documented ones. */
export function logDerived(derived: readonly DerivedDefault[], log: Log): void {
  if (derived.length === 0) return;
  log('info', 'some defaults follow other settings', { derived: derived.map(describeDerived).join('\n') });
}

/** Logs a warning if hosts that need no credential can reach the listener. */
export function logExposure(config: Config, log: Log): void {
  for (const warning of exposureWarnings(config)) log('warn', describeWarning(warning));
}

function logResult(result: ReloadResult, request: ReloadRequest, log: Log): void {
  const requestedBy = request.by === 'signal' ? request.signal : `operator ${request.operator}`;
  const { errors, changes, restartRequired } = detailsOf(result);
  if (errors) {
    const text = 'configuration not reloaded; the previous configuration stays in effect';
    log('error', text, { requestedBy, errors: errors.join('\n') });
    return;
  }
  log('info', 'configuration reloaded', {
    requestedBy,
    changes: changes?.join('; ') || 'none',
    restartRequired: restartRequired?.join('; ') || undefined,
  });
}

function timelineEventOf(result: ReloadResult, who: string): TimelineEvent {
  const details = detailsOf(result);
  const { errors, changes = [], restartRequired = [] } = details;
  if (errors) return { kind: 'reload', who, text: `configuration not reloaded: ${errors[0]}`, details };
  const waiting = restartRequired.length > 0 ? `; needs a restart: ${restartRequired.join('; ')}` : '';
  const text = `configuration reloaded: ${changes.join('; ') || 'no changes'}${waiting}`;
  return { kind: 'reload', who, text, details };
}

function detailsOf(result: ReloadResult): {
  readonly errors?: readonly string[];
  readonly changes?: readonly string[];
  readonly restartRequired?: readonly string[];
} {
  if (result.kind === 'refused') return { errors: result.errors };
  return {
    changes: result.changes.map(describeChange),
    restartRequired: result.restartRequired.map(describeChange),
  };
}

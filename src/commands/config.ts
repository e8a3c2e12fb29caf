/** `penstock config show`: the effective configuration. `penstock config diff`: what a reload of another file would change. */

import { type ConfigChange, compareConfigs, describeChange } from '../config/config-changes.ts';
import { configSource, loadConfig } from '../config/load.ts';
import { listSettings, showConfig } from '../config/show-config.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';
import { validConfig } from './valid-config.ts';

/**
 * Lines: the effective configuration as YAML, with the source of each value.
 *
 * @throws CommandError if the configuration is invalid
 */
export async function showEffectiveConfig(options: Pick<Options, 'config'>): Promise<CommandOutput> {
  const loaded = validConfig(loadConfig(configSource(options.config)));
  return success(showConfig(loaded).trimEnd().split('\n'), listSettings(loaded));
}

/**
 * Lines: the settings that a reload of the other file would change, and those that need a restart.
 *
 * @throws CommandError if one of the two is invalid
 */
export async function diffConfigs(options: Pick<Options, 'config'>, file: string): Promise<CommandOutput> {
  const current = validConfig(loadConfig(configSource(options.config)));
  const report = compareConfigs(current.config, validConfig(loadConfig(file)).config);
  const lines = [
    ...describeChanges('A reload changes', report.changes),
    ...describeChanges('A restart is required for', report.restartRequired),
  ];
  return success(lines.length === 0 ? ['Both configurations have the same effect.'] : lines, report);
}

function describeChanges(what: string, changes: readonly ConfigChange[]): readonly string[] {
  if (changes.length === 0) return [];
  const count = changes.length === 1 ? '1 setting' : `${changes.length} settings`;
  return [`${what} ${count}:`, ...changes.map((change) => `  ${describeChange(change)}`)];
}

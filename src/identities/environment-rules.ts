/** Which recorded bank each configured environment calls, as a pure function of the record and the settings. */

import type { EnvironmentRecord } from './identities-record.ts';
import type { EnvironmentIdentitySettings } from './identity-settings.ts';

/** The recorded environment of these settings: same name, and one of its banks. */
export const findEnvironment = (
  recorded: readonly EnvironmentRecord[],
  { name, bank }: Pick<EnvironmentIdentitySettings, 'name' | 'bank'>,
): EnvironmentRecord | undefined =>
  recorded.find((environment) => environment.name === name && environment.banks.includes(bank));

/** @param recorded not changed @returns the record with all configured environments */
export const applyEnvironmentSettings = (
  recorded: readonly EnvironmentRecord[],
  settings: readonly EnvironmentIdentitySettings[],
): EnvironmentRecord[] => settings.reduce(applyEnvironment, [...recorded]);

function applyEnvironment(
  recorded: EnvironmentRecord[],
  { name, bank, movedFrom }: EnvironmentIdentitySettings,
): EnvironmentRecord[] {
  const banks = [bank, ...movedFrom];
  const same = recorded.filter(
    (one) => one.name === name && one.banks.some((address) => banks.includes(address)),
  );
  const [first] = same;
  if (!first) return [...recorded, { ids: [freeId(recorded, name)], name, banks: [...new Set(banks)] }];
  const merged: EnvironmentRecord = {
    ids: same.flatMap(({ ids }) => ids),
    name,
    banks: [...new Set([...same.flatMap((one) => one.banks), ...banks])],
  };
  return recorded.flatMap((one) => {
    if (one === first) return [merged];
    return same.includes(one) ? [] : [one];
  });
}

/** The name itself, so that the records of earlier releases are found; no configured name contains `@`. */
function freeId(recorded: readonly EnvironmentRecord[], name: string, count = 1): string {
  const id = count === 1 ? name : `${name}@${count}`;
  return recorded.some(({ ids }) => ids.includes(id)) ? freeId(recorded, name, count + 1) : id;
}

/** For each environment with another bank than before: what happens, and what to write if it is the same bank. */
export const movedBankWarnings = (
  recorded: readonly EnvironmentRecord[],
  settings: readonly EnvironmentIdentitySettings[],
): readonly string[] =>
  settings.flatMap(({ name, bank }) => {
    const others = recorded.filter((one) => one.name === name && !one.banks.includes(bank));
    if (others.length === 0) return [];
    const addresses = others.flatMap(({ banks }) => banks).join(', ');
    return [
      `environments.${name}.baseUrl has changed: requests for payments created at ${addresses} are refused; if it is the same bank, set environments.${name}.movedFrom: [${addresses}]`,
    ];
  });

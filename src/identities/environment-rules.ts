/** Which recorded bank each configured environment calls, as a pure function of the record and the settings. */

import type { EnvironmentRecord } from './identities-record.ts';
import { addressOfBank, type EnvironmentIdentitySettings } from './identity-settings.ts';

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
  settings: EnvironmentIdentitySettings,
): EnvironmentRecord[] {
  const { name, bank, movedFrom } = settings;
  const banks = [bank, ...movedFrom];
  const same = sameEnvironments(recorded, settings);
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

/**
 * The recorded environments that these settings continue: those of its bank and of `movedFrom`. If there is none, and no other
 * environment shares the address, a changed segment, header or query means the same bank.
 */
function sameEnvironments(
  recorded: readonly EnvironmentRecord[],
  { name, bank, isShared, movedFrom }: EnvironmentIdentitySettings,
): readonly EnvironmentRecord[] {
  const own = recorded.filter((one) => one.name === name);
  const same = own.filter((one) => isKnownAs(one, { bank, movedFrom }));
  if (same.length > 0 || isShared) return same;
  const atAddress = own.findLast(({ banks }) => banks.map(addressOfBank).includes(addressOfBank(bank)));
  return atAddress === undefined ? [] : [atAddress];
}

/** Whether the configuration says that it is the recorded bank. */
const isKnownAs = (
  { banks }: EnvironmentRecord,
  { bank, movedFrom }: Pick<EnvironmentIdentitySettings, 'bank' | 'movedFrom'>,
) => banks.some((one) => one === bank || movedFrom.includes(addressOfBank(one)));

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
    const addresses = [...new Set(others.flatMap(({ banks }) => banks.map(addressOfBank)))];
    const changed = addresses.includes(addressOfBank(bank)) ? 'segment, headers or query' : 'baseUrl';
    const list = addresses.join(', ');
    return [
      `environments.${name}.${changed} has changed: requests for payments created at ${list} are refused; if it is the same bank, set environments.${name}.movedFrom: [${list}]`,
    ];
  });

/** For each environment that continues a recorded one only because no other environment has its address. @param before the record without these settings */
export const continuedBankWarnings = (
  before: readonly EnvironmentRecord[],
  settings: readonly EnvironmentIdentitySettings[],
): readonly string[] =>
  settings
    .filter((one) => sameEnvironments(before, one).some((recorded) => !isKnownAs(recorded, one)))
    .map(
      ({ name }) =>
        `environments.${name}: segment, headers or query has changed, and no other environment has this baseUrl, so payments created before continue with the new values; if these select another bank, restore the old ones, and write the new ones into an environment with another name`,
    );

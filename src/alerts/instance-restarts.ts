/** Which instances that are down were started again: a restarted process has a new name, which begins with that of its host. */

import type { InstanceView } from '../telemetry/fleet.ts';

/** The host of an instance: its name ends with random digits. */
const hostOf = ({ name }: InstanceView) => name.replace(/-[0-9a-f]{12}$/, '');

/**
 * Each start replaces the instance that ended last before it on the same host, and that no other start has replaced.
 *
 * @returns by host, the replaced instances that were down; the last one comes last
 */
export function findRestarts(
  instances: readonly InstanceView[],
): ReadonlyMap<string, readonly InstanceView[]> {
  const restarts = new Map<string, readonly InstanceView[]>();
  for (const [host, onHost] of Map.groupBy(instances, hostOf)) {
    const ended: InstanceView[] = [];
    const crashed: InstanceView[] = [];
    for (const instance of onHost.toSorted((one, other) => one.since.localeCompare(other.since))) {
      const earlier = ended.filter(({ lastSeen }) => lastSeen <= instance.since);
      const replaced = earlier.toSorted((one, other) => one.lastSeen.localeCompare(other.lastSeen)).at(-1);
      if (replaced) ended.splice(ended.indexOf(replaced), 1);
      if (replaced?.status === 'down') crashed.push(replaced);
      if (instance.status === 'down' || instance.status === 'stopped') ended.push(instance);
    }
    if (crashed.length > 0) restarts.set(host, crashed);
  }
  return restarts;
}

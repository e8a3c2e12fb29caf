/**
 * What may lose the data of a Redis, as far as INFO tells. CONFIG would tell more (`save`, `appendfsync`), but an ACL may
 * forbid it.
 */

import { infoField } from './redis-info.ts';

/**
 * The oldest Redis that executes the script of redis-scripts.ts. It reads the clock (TIME) and then writes; before 5.0,
 * Redis replicated scripts as text and refused such writes. All other commands are older: SET with PX and NX (2.6.12),
 * WAIT (3.0). The client uses RESP2 where HELLO (6.0) is missing.
 */
const oldestVersion = { major: 5, text: '5.0' };

/**
 * One sentence for each condition, with what to change; empty if there is none.
 *
 * @param infos `INFO` of every node that stores values
 */
export function durabilityProblems(infos: readonly string[]): readonly string[] {
  return conditions.flatMap((conditionIn) => {
    const found = infos.flatMap((info) => conditionIn(info) ?? []);
    return [...new Set(found)].map((condition) => {
      const count = found.filter((other) => other === condition).length;
      const who = infos.length === 1 ? 'Redis' : `${count} of ${infos.length} masters of the Redis Cluster`;
      return `${who}: ${condition}`;
    });
  });
}

/** Each returns what is wrong and what to change, or `undefined`. */
const conditions: readonly ((info: string) => string | undefined)[] = [
  tooOld,
  nothingOnDisk,
  failedDisk,
  noReplica,
];

function tooOld(info: string): string | undefined {
  const version = infoField(info, 'redis_version') ?? '';
  if (!(Number.parseInt(version, 10) < oldestVersion.major)) return undefined;
  return `version ${version} is too old for the scripts of the gateway; upgrade to ${oldestVersion.text} or later`;
}

/** Whether snapshots are scheduled is not in INFO; `rdb_saves` (since 7.0) counts those since the start. */
function nothingOnDisk(info: string): string | undefined {
  if (infoField(info, 'aof_enabled') !== '0') return undefined;
  const saves = infoField(info, 'rdb_saves');
  if (saves === '0')
    return 'no persistence (aof_enabled:0, and rdb_saves:0 since the start), so a restart may lose everything; set appendonly to yes';
  return 'no append-only file (aof_enabled:0), so a restart loses the writes since the last snapshot; set appendonly to yes';
}

function failedDisk(info: string): string | undefined {
  if ((infoField(info, 'aof_last_write_status') ?? 'ok') === 'ok') return undefined;
  return 'the last write to the append-only file failed (aof_last_write_status:err); check the disk of Redis';
}

function noReplica(info: string): string | undefined {
  if (infoField(info, 'connected_slaves') !== '0') return undefined;
  return 'no replica (connected_slaves:0), so the loss of the machine loses everything since its last backup; connect a replica';
}

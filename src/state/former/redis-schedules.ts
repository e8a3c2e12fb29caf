/**
 * Schedules in Redis. A record and the queues that contain it have one hash tag, so that one command changes all of them. In a cluster,
 * the records are spread over several hash tags by their key, and each queue has a part in each of them.
 */

import type { RedisCommand, SendCommand } from '../redis-batch.ts';
import type { DueChange, ScheduledRecord, Schedules, TakenRecord } from './schedules.ts';

/** @param tags hash tags; one for a single Redis */
export function createRedisSchedules(
  prefix: string,
  tags: readonly [string, ...string[]],
  sendCommand: SendCommand,
): Schedules {
  const tagOf = (key: string) => tags[key.charCodeAt(key.length - 1) % tags.length] ?? tags[0];
  const recordKey = (key: string) => `${prefix}schedule:${tagOf(key)}:record:${key}`;
  const queueKey = (tag: string, queue: string) => `${prefix}schedule:${tag}:queue:${queue}`;
  const read = (key: string) => sendCommand({ name: 'GET', key: recordKey(key), args: [] }, parseRecord);
  /** The part of each hash tag in turn comes first, so that a limit does not prefer one of them. */
  let firstPart = 0;
  const partsOf = (queue: string) => {
    firstPart = (firstPart + 1) % tags.length;
    return [...tags.slice(firstPart), ...tags.slice(0, firstPart)].map((tag) => queueKey(tag, queue));
  };

  async function takePart(part: string, limit: number, leaseMs: number): Promise<readonly TakenRecord[]> {
    const command = { name: 'takeDue', key: part, args: [limit, Math.max(1, leaseMs)] };
    const leased = await sendCommand(command, pairsIn);
    return Promise.all(leased.map(async ([key, lease]) => ({ key, lease, record: await read(key) })));
  }

  return {
    read,
    write: (key, version, text, changes) =>
      sendCommand(
        {
          name: 'writeScheduled',
          key: recordKey(key),
          otherKeys:
            changes.length === 0 ? [recordKey(key)] : changes.map(({ queue }) => queueKey(tagOf(key), queue)),
          args: [
            ...[key, version, text === undefined ? 1 : 0, text ?? ''],
            ...changes.flatMap((change) => changeArgs(change)),
          ],
        },
        (result) => Number(result) || undefined,
      ),
    async take(queue, limit, leaseMs) {
      const taken: TakenRecord[] = [];
      for (const part of partsOf(queue)) {
        if (taken.length >= limit) break;
        taken.push(...(await takePart(part, limit - taken.length, leaseMs)));
      }
      return taken;
    },
    extend: (queue, key, lease, leaseMs) =>
      sendCommand(
        { name: 'extendLease', key: queueKey(tagOf(key), queue), args: [key, lease, Math.max(1, leaseMs)] },
        (result) => (typeof result === 'string' && result !== '' ? result : undefined),
      ),
    reschedule: (key, change) =>
      sendCommand(
        { name: 'reschedule', key: queueKey(tagOf(key), change.queue), args: [key, ...changeArgs(change)] },
        () => {},
      ),
    async promote(from, to, limit) {
      const commands = tags.map(
        (tag): RedisCommand => ({
          name: 'promote',
          key: queueKey(tag, from),
          otherKeys: [queueKey(tag, to)],
          args: [Math.ceil(limit / tags.length)],
        }),
      );
      await Promise.all(commands.map((command) => sendCommand(command, () => {})));
    },
    async list(queue, limit) {
      const parts = partsOf(queue).map((key) =>
        sendCommand({ name: 'ZRANGE', key, args: [0, Math.ceil(limit / tags.length) - 1] }, textsIn),
      );
      const keys = (await Promise.all(parts)).flat();
      const listed = await Promise.all(keys.map(async (key) => ({ key, record: await read(key) })));
      return listed.flatMap(({ key, record }) => (record ? [{ key, record }] : []));
    },
    async count(queue) {
      const parts = partsOf(queue).map((key) => sendCommand({ name: 'countDue', key, args: [] }, numbersIn));
      const counts = await Promise.all(parts);
      return {
        all: counts.reduce((sum, [all = 0]) => sum + all, 0),
        due: counts.reduce((sum, [, due = 0]) => sum + due, 0),
      };
    },
  };
}

const changeArgs = ({ inMs, lease = '' }: DueChange): readonly (string | number)[] => [inMs ?? '', lease];

/** The inverse of `own.writeScheduled`. A value that is something else was not written by a gateway. */
function parseRecord(value: unknown): ScheduledRecord | undefined {
  if (typeof value !== 'string') return undefined;
  const end = value.indexOf(' ');
  const version = Number(value.slice(0, end));
  return version > 0 ? { version, text: value.slice(end + 1) } : undefined;
}

const listIn = (result: unknown): readonly unknown[] => (Array.isArray(result) ? result : []);
const textsIn = (result: unknown) => listIn(result).map(String);
const numbersIn = (result: unknown) => listIn(result).map(Number);

function pairsIn(result: unknown): readonly (readonly [key: string, lease: string])[] {
  const texts = textsIn(result);
  return texts.flatMap((key, index) => (index % 2 === 0 ? [[key, texts[index + 1] ?? ''] as const] : []));
}

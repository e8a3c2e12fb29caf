/** A name server for the benchmark (RFC 1035, UDP): it answers as the benchmark says, or not at all. Nothing may be cached. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import type { TestScope } from '../../test/kit/test-scope.ts';

/** @returns the addresses of a name in one family; `undefined` to send no answer */
export type AddressesOf = (name: string, family: 4 | 6) => readonly string[] | undefined;

const families: ReadonlyMap<number, 4 | 6> = new Map([
  [1, 4],
  [28, 6],
]);

/** Listens on port 53 of an address. @returns the number of questions so far */
export async function startNameServer(
  life: TestScope,
  address: string,
  addressesOf: AddressesOf,
): Promise<() => number> {
  let questions = 0;
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => {
    questions += 1;
    const answer = answerTo(query, addressesOf);
    if (answer) socket.send(answer, port, address);
  });
  socket.bind(53, address);
  await once(socket, 'listening');
  life.after(() => socket.close());
  return () => questions;
}

const headLength = 12;

function answerTo(query: Buffer, addressesOf: AddressesOf): Buffer | undefined {
  const labels: string[] = [];
  let at = headLength;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const family = families.get(query.readUInt16BE(at + 1));
  const addresses = family ? addressesOf(labels.join('.').toLowerCase(), family) : [];
  if (!addresses) return undefined;
  const head = Buffer.from(query.subarray(0, headLength));
  head.writeUInt16BE(0x8180, 2); // a response, recursion available, no error
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8); // no further sections
  const question = query.subarray(headLength, at + 5);
  return Buffer.concat([head, question, ...addresses.map(recordOf)]);
}

/** An address record of the name in the question. */
function recordOf(address: string): Buffer {
  const data = isIP(address) === 4 ? Buffer.from(address.split('.').map(Number)) : bytesOfV6(address);
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(isIP(address) === 4 ? 1 : 28, 2);
  record.writeUInt16BE(1, 4); // the Internet
  record.writeUInt32BE(0, 6); // not to be cached
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}

/** @param address in hexadecimal groups only */
function bytesOfV6(address: string): Buffer {
  const [before = [], after = []] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

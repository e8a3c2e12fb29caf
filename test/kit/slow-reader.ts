/** A TPP that asks and does not read. */

import { connect, type Socket } from 'node:net';
import { until, within } from './within.ts';

export interface SlowReader {
  readonly socket: Socket;
  /** Bytes read so far. */
  read(): number;
  /** Reads on from now on. */
  resume(): void;
  /** Waits until the other side has hung up, which only shows to who reads. */
  hungUp(): Promise<void>;
}

/** Connects, sends this, and reads nothing. */
export async function connectSlowReader(port: number, bytes: string): Promise<SlowReader> {
  const socket = connect(port, '127.0.0.1').pause();
  let read = 0;
  let over = false;
  socket
    .on('error', () => {
      over = true;
    })
    .on('close', () => {
      over = true;
    });
  await within(
    5_000,
    'a connection',
    new Promise<void>((resolve) => socket.once('connect', () => resolve())),
  );
  socket.write(bytes);
  return {
    socket,
    read: () => read,
    resume() {
      socket.on('data', (piece) => {
        read += piece.length;
      });
      socket.resume();
    },
    async hungUp() {
      socket.on('data', () => {}).resume();
      await until(5_000, 'the other side has hung up', () => over);
    },
  };
}

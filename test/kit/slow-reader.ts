/** A client that sends requests and does not read the responses. */

import { connect, type Socket } from 'node:net';
import { until, within } from './within.ts';

export interface SlowReader {
  readonly socket: Socket;
  /** Bytes read so far. */
  read(): number;
  /** Starts to read. */
  resume(): void;
  /** Waits until the gateway has closed the connection, which only a reader can detect. */
  hungUp(): Promise<void>;
}

/** Connects, sends the bytes, and reads nothing. */
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
      await until(5_000, 'the gateway has closed the connection', () => over);
    },
  };
}

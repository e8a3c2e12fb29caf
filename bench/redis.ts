/** A few words to Redis, without a client. */

import { connect } from 'node:net';

/** Empties it. @throws Error if it does not say that it did */
export function flushAll(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('FLUSHALL\r\n'));
    socket.once('error', reject).once('data', (said) => {
      socket.destroy();
      if (said.toString().startsWith('+OK')) resolve();
      else reject(new Error(`Redis was not emptied: ${said}`));
    });
  });
}

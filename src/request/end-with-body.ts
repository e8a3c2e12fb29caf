/** Ends an outgoing HTTP message with its body, in one write where possible. */

import type { OutgoingMessage } from 'node:http';

/** Node writes a string together with the head. For larger bodies, the copy costs more than the second write. */
const maxSingleWriteBytes = 16_384;

export function endWithBody(message: OutgoingMessage, body: Buffer): void {
  if (body.length === 0)
    message.end(); // an empty buffer would be a second write
  else if (body.length > maxSingleWriteBytes) message.end(body);
  else message.end(body.toString('latin1'), 'latin1');
}

/** Lets a simulated bank answer with the very bytes a test wants: for fields that repeat, and framing of all kinds. */

import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Field } from './fields.ts';

interface RawResponse {
  /** Status and reason, such as `204 No Content`. */
  readonly status?: string;
  readonly headers?: readonly Field[];
  /** One character a byte. */
  readonly body?: string;
  /** How the end of the body is told; by default its length. */
  readonly framing?: Framing;
}

export type Framing = 'length' | 'chunked' | 'close';

/** The bank's answers are this one from now on, whatever is asked. */
export function setBankResponse(
  bank: SimulatedBank,
  { status = '200 OK', headers = [], body = '', framing = 'length' }: RawResponse,
): void {
  const { field, bytes } = framed(framing, body);
  const lines = [...headers, ...field].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  bank.clearFaults();
  bank.injectFault({
    name: 'garbage',
    bytes: `HTTP/1.1 ${status}\r\n${lines}\r\n${bytes}`,
    strikes: 'before-effect',
  });
}

function framed(
  framing: Framing,
  body: string,
): { readonly field: readonly Field[]; readonly bytes: string } {
  switch (framing) {
    case 'length':
      return { field: [['Content-Length', String(body.length)]], bytes: body };
    case 'chunked':
      return { field: [['Transfer-Encoding', 'chunked']], bytes: inChunks(body) };
    case 'close':
      return { field: [], bytes: body };
  }
}

function inChunks(body: string): string {
  const half = Math.ceil(body.length / 2);
  const parts = [body.slice(0, half), body.slice(half)].filter((part) => part !== '');
  return [...parts, ''].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
}

/** Makes a simulated bank send exact bytes, such as repeated fields and any framing. */

import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Field } from './fields.ts';

interface RawResponse {
  /** Such as `204 No Content`. */
  readonly status?: string;
  readonly headers?: readonly Field[];
  /** Latin-1: one character is one byte. */
  readonly body?: string;
  /** Default: Content-Length. */
  readonly framing?: Framing;
}

export type Framing = 'length' | 'chunked' | 'close';

/** The bank answers every request with this response from now on. */
export function setBankResponse(
  bank: SimulatedBank,
  { status = '200 OK', headers = [], body = '', framing = 'length' }: RawResponse,
): void {
  const { field, bytes } = frame(framing, body);
  const lines = [...headers, ...field].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  bank.clearFaults();
  bank.injectFault({
    name: 'garbage',
    bytes: `HTTP/1.1 ${status}\r\n${lines}\r\n${bytes}`,
    strikes: 'before-effect',
  });
}

function frame(framing: Framing, body: string): { readonly field: readonly Field[]; readonly bytes: string } {
  switch (framing) {
    case 'length':
      return { field: [['Content-Length', String(body.length)]], bytes: body };
    case 'chunked':
      return { field: [['Transfer-Encoding', 'chunked']], bytes: chunk(body) };
    case 'close':
      return { field: [], bytes: body };
  }
}

function chunk(body: string): string {
  const half = Math.ceil(body.length / 2);
  const parts = [body.slice(0, half), body.slice(half)].filter((part) => part !== '');
  return [...parts, ''].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
}

/** What each fault does to an exchange. */
import { gzipSync } from 'node:zlib';
import { type BankResponse, jsonResponse, send, withHeaders } from './bank-response.ts';
import type { FaultContext } from './fault-context.ts';
import { type Fault, type FaultName, type FaultParameters, faultRows } from './faults.ts';
import {
  carriageReturnInHeader,
  closeInTheMiddle,
  closeInTheMiddleOfAChunk,
  dribble,
  hugeHeaders,
  resetInTheMiddle,
  sendHuge,
  sendInterim,
  switchProtocols,
  twoLengths,
} from './malformed-responses.ts';

type FaultHandler<Name extends FaultName> = (
  exchange: FaultContext,
  parameters: Required<FaultParameters[Name]>,
) => void | Promise<void>;

const faultHandlers: { readonly [Name in FaultName]: FaultHandler<Name> } = {
  latency: ({ response, answer }) => send(response, answer),
  status: ({ response, answer }, { status, headers, body }) =>
    send(response, statusAnswer(answer, status, headers, body)),
  'too-many-requests': ({ response, answer }, { retryAfterSeconds }) =>
    send(response, tooManyRequests(answer, retryAfterSeconds)),
  'rate-limit': ({ response, answer }, { retryAfterSeconds }) =>
    send(response, tooManyRequests(answer, retryAfterSeconds)),
  reset: ({ reset }) => reset(),
  'reset-mid-answer': (exchange, { afterMs }) => resetInTheMiddle(exchange, afterMs),
  'close-before-answering': ({ socket }) => {
    socket.end();
  },
  'half-answer': closeInTheMiddle,
  'half-chunked-answer': closeInTheMiddleOfAChunk,
  'never-answer': () => {},
  drip: (exchange, { everyMs, from }) => dribble(exchange, everyMs, from),
  garbage: ({ socket }, { bytes }) => {
    socket.end(Buffer.from(bytes, 'latin1'));
  },
  'two-content-lengths': twoLengths,
  'carriage-return-in-header': carriageReturnInHeader,
  'huge-headers': (exchange, { bytes }) => hugeHeaders(exchange, bytes),
  'two-answers': ({ response, socket, answer }) => {
    send(response, answer);
    socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{"transactionStatus":"ACCC"}',
    );
  },
  'switching-protocols': switchProtocols,
  'interim-answers': (exchange, { statuses }) => sendInterim(exchange, statuses),
  'huge-answer': (exchange, { bytes, framing }) => sendHuge(exchange, bytes, framing),
  'gzip-answer': ({ response, answer }) => send(response, zipped(answer, gzipSync(answer.body))),
  'corrupt-gzip-answer': ({ response, answer }) => {
    const header = gzipSync(answer.body).subarray(0, 10);
    send(response, zipped(answer, Buffer.concat([header, Buffer.alloc(64, 0xff)])));
  },
  'connection-close': ({ response, answer }) =>
    send(response, withHeaders(answer, [['Connection', 'close']])),
  'close-idle': ({ response, answer, closeIdle, wait }, { afterMs }) => {
    response.once('finish', () => wait(afterMs).then(closeIdle));
    send(response, answer);
  },
};

/** Lets a fault strike; resolves when it is done with the exchange, which may stay open. */
export async function applyFault(fault: Fault, exchange: FaultContext): Promise<void> {
  // The table's type pairs each name with its parameters; TypeScript cannot follow that through a lookup.
  const act = faultHandlers[fault.name] as FaultHandler<FaultName>;
  await act(exchange, { ...faultRows[fault.name].defaults, ...fault } as Parameters<typeof act>[1]);
}

const tooManyRequests = (proper: BankResponse, retryAfterSeconds: number): BankResponse =>
  statusAnswer(proper, 429, { 'Retry-After': `${retryAfterSeconds}` }, '');

function statusAnswer(
  proper: BankResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
): BankResponse {
  const given = Object.keys(headers).map((name) => name.toLowerCase());
  const requestId = proper.headers.filter(
    ([name]) => name === 'X-Request-ID' && !given.includes('x-request-id'),
  );
  const fields = [...requestId, ...Object.entries(headers)];
  if (body !== '') return { status, headers: fields, body: Buffer.from(body) };
  const code = status === 429 ? 'ACCESS_EXCEEDED' : status >= 500 ? 'SERVICE_UNAVAILABLE' : 'SERVICE_BLOCKED';
  const text = `The bank was told to answer ${status}`;
  return jsonResponse(status, { tppMessages: [{ category: 'ERROR', code, text }] }, fields);
}

function zipped(answer: BankResponse, body: Buffer): BankResponse {
  return { ...withHeaders(answer, [['Content-Encoding', 'gzip']]), body };
}

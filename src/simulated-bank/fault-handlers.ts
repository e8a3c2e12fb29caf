/** The effect of each fault on a request. */
import { gzipSync } from 'node:zlib';
import type { FaultContext } from './fault-context.ts';
import { type Fault, type FaultName, type FaultParameters, faultRows } from './faults.ts';
import {
  carriageReturnInHeader,
  closeMidChunk,
  closeMidResponse,
  drip,
  hugeHeaders,
  resetMidResponse,
  sendHuge,
  sendInterim,
  switchProtocols,
  twoLengths,
} from './malformed-responses.ts';
import { jsonResponse, type SimulatedResponse, sendResponse, withHeaders } from './simulated-response.ts';

type FaultHandler<Name extends FaultName> = (
  exchange: FaultContext,
  parameters: Required<FaultParameters[Name]>,
) => void | Promise<void>;

const faultHandlers: { readonly [Name in FaultName]: FaultHandler<Name> } = {
  latency: ({ response, bankResponse }) => sendResponse(response, bankResponse),
  status: ({ response, bankResponse }, { status, headers, body }) =>
    sendResponse(response, statusResponse(bankResponse, status, headers, body)),
  'too-many-requests': ({ response, bankResponse }, { retryAfterSeconds }) =>
    sendResponse(response, tooManyRequests(bankResponse, retryAfterSeconds)),
  'rate-limit': ({ response, bankResponse }, { retryAfterSeconds }) =>
    sendResponse(response, tooManyRequests(bankResponse, retryAfterSeconds)),
  reset: ({ reset }) => reset(),
  'reset-mid-answer': (exchange, { afterMs }) => resetMidResponse(exchange, afterMs),
  'close-before-answering': ({ socket }) => {
    socket.end();
  },
  'half-answer': closeMidResponse,
  'half-chunked-answer': closeMidChunk,
  'never-answer': () => {},
  drip: (exchange, { everyMs, from }) => drip(exchange, everyMs, from),
  garbage: ({ socket }, { bytes }) => {
    socket.end(Buffer.from(bytes, 'latin1'));
  },
  'two-content-lengths': twoLengths,
  'carriage-return-in-header': carriageReturnInHeader,
  'huge-headers': (exchange, { bytes }) => hugeHeaders(exchange, bytes),
  'two-answers': ({ response, socket, bankResponse }) => {
    sendResponse(response, bankResponse);
    socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{"transactionStatus":"ACCC"}',
    );
  },
  'switching-protocols': switchProtocols,
  'interim-answers': (exchange, { statuses }) => sendInterim(exchange, statuses),
  'huge-answer': (exchange, { bytes, framing }) => sendHuge(exchange, bytes, framing),
  'gzip-answer': ({ response, bankResponse }) =>
    sendResponse(response, gzipped(bankResponse, gzipSync(bankResponse.body))),
  'corrupt-gzip-answer': ({ response, bankResponse }) => {
    const header = gzipSync(bankResponse.body).subarray(0, 10);
    sendResponse(response, gzipped(bankResponse, Buffer.concat([header, Buffer.alloc(64, 0xff)])));
  },
  'connection-close': ({ response, bankResponse }) =>
    sendResponse(response, withHeaders(bankResponse, [['Connection', 'close']])),
  'close-idle': ({ response, bankResponse, closeIdle, wait }, { afterMs }) => {
    response.once('finish', () => wait(afterMs).then(closeIdle));
    sendResponse(response, bankResponse);
  },
};

/** Applies a fault; resolves when the handler is done with the request, whose connection may stay open. */
export async function applyFault(fault: Fault, exchange: FaultContext): Promise<void> {
  // The type of the table pairs each name with its parameters; TypeScript cannot follow that through a lookup.
  const act = faultHandlers[fault.name] as FaultHandler<FaultName>;
  await act(exchange, { ...faultRows[fault.name].defaults, ...fault } as Parameters<typeof act>[1]);
}

const tooManyRequests = (normalResponse: SimulatedResponse, retryAfterSeconds: number): SimulatedResponse =>
  statusResponse(normalResponse, 429, { 'Retry-After': `${retryAfterSeconds}` }, '');

function statusResponse(
  normalResponse: SimulatedResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
): SimulatedResponse {
  const given = Object.keys(headers).map((name) => name.toLowerCase());
  const requestId = normalResponse.headers.filter(
    ([name]) => name === 'X-Request-ID' && !given.includes('x-request-id'),
  );
  const fields = [...requestId, ...Object.entries(headers)];
  if (body !== '') return { status, headers: fields, body: Buffer.from(body) };
  const code = status === 429 ? 'ACCESS_EXCEEDED' : status >= 500 ? 'SERVICE_UNAVAILABLE' : 'SERVICE_BLOCKED';
  const text = `Fault injection: the bank responds with ${status}`;
  return jsonResponse(status, { tppMessages: [{ category: 'ERROR', code, text }] }, fields);
}

function gzipped(bankResponse: SimulatedResponse, body: Buffer): SimulatedResponse {
  return { ...withHeaders(bankResponse, [['Content-Encoding', 'gzip']]), body };
}

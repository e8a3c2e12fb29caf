/** One HTTP call to the bank: observes its connection, enforces its deadlines, collects the response. */

import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  endToEndFields,
  type HeaderFields,
  headerFieldsFrom,
  headerValues,
  withoutFields,
} from '../pis/headers.ts';
import { createBodyBuffer } from '../request/body-buffer.ts';
import { asGatewayError, type GatewayError, outcomeUnknown, stateUnavailable } from '../request/errors.ts';
import {
  bankUnreachable,
  clientCertificateRefused,
  connectionBroken,
  deadlineBeforeSending,
  isClientCertificateAlert,
  malformedResponse,
} from './upstream-errors.ts';

/** The bank's complete response, without framing. */
export interface BankResponse {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** The transport reports to it, in this order, what happens to the HTTP request. */
export interface UpstreamCall {
  /** The request has a connection, which may not be established yet. */
  onConnection(request: ClientRequest): void;
  /** The head of a response has arrived. */
  onResponse(response: IncomingMessage): void;
  onError(cause: unknown): void;
  /** Ends the call as if its deadline had passed. */
  cancel(): void;
}

/** The write-ahead mark of a write (messages.ts), bound to its environment. */
export interface OutboundSendingMark {
  readonly markSending: () => Promise<number>;
  /** Called at the deadline if bytes were sent: the call continues for a late response. */
  readonly onDeadline: () => void;
  readonly lateAnswerUntilMs: number;
}

interface CallLimits {
  /** When the call must be complete; with a sending mark, when it must be sent. Milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** Longest time to establish a connection. */
  readonly connectMs: number;
  /** Written when the connection is established; nothing is sent before. */
  readonly sendingMark: OutboundSendingMark | undefined;
}

/** The connection of a call that has ended. */
export interface ConnectionInfo {
  /** Whether it had carried an earlier call: the bank may have closed it at the same moment. */
  readonly reusedSocket: boolean;
  /** Whether any byte of a response had arrived. */
  readonly responseStarted: boolean;
  /** Milliseconds from the start of the call until it had an established connection, and until the head of a response. */
  readonly connectMs?: number;
  readonly firstByteMs?: number;
}

interface CallHandlers {
  /** Sends the request: its connection is established, and it is marked as sending. */
  readonly sendBytes: (request: ClientRequest) => void;
  /** One of these two is called, once. */
  readonly onResponse: (response: BankResponse, connection: ConnectionInfo) => void;
  readonly onFailure: (error: GatewayError, connection: ConnectionInfo) => void;
  /** Closes the connection of a call that has failed. */
  readonly closeConnection: () => void;
}

/** Larger responses are refused: the eight operations need far less, and the whole response is held in memory. */
export const maxResponseBytes = 4 * 1024 * 1024;

export function createUpstreamCall(
  { deadlineAtMs, connectMs, sendingMark }: CallLimits,
  handlers: CallHandlers,
): UpstreamCall {
  let phase: 'waiting' | 'connecting' | 'marking' | 'sent' | 'responding' | 'ended' = 'waiting';
  let connectTimer: NodeJS.Timeout | undefined;
  let deadline = setTimeout(onDeadline, Math.max(0, deadlineAtMs - performance.now()));
  let errorWhileMarking: unknown;
  let connectionInfo = (): ConnectionInfo => ({ reusedSocket: false, responseStarted: false });
  const startedAtMs = performance.now();
  const times: { connectMs?: number; firstByteMs?: number } = {};

  function onDeadline(): void {
    const isSent = phase === 'sent' || phase === 'responding';
    const lateMs = (sendingMark?.lateAnswerUntilMs ?? 0) - performance.now();
    if (!sendingMark || !isSent || lateMs <= 0) {
      fail(timeoutError());
      return;
    }
    deadline = setTimeout(() => fail(timeoutError()), lateMs);
    sendingMark.onDeadline();
  }

  function timeoutError(): GatewayError {
    if (phase === 'waiting' || phase === 'marking') return deadlineBeforeSending();
    return phase === 'connecting' ? bankUnreachable(connectTimeout) : outcomeUnknown();
  }

  function fail(error: GatewayError): void {
    if (!end()) return;
    handlers.closeConnection();
    handlers.onFailure(error, { ...connectionInfo(), ...times });
  }

  /** @returns whether the call had not ended before */
  function end(): boolean {
    if (phase === 'ended') return false;
    phase = 'ended';
    clearTimeout(deadline);
    clearTimeout(connectTimer);
    return true;
  }

  function onConnected(request: ClientRequest): void {
    clearTimeout(connectTimer);
    times.connectMs = performance.now() - startedAtMs;
    if (sendingMark) markAndSend(sendingMark, request);
    else send(request);
  }

  async function markAndSend({ markSending }: OutboundSendingMark, request: ClientRequest): Promise<void> {
    phase = 'marking';
    try {
      const sendUntilMs = await markSending();
      if (phase !== 'marking') return;
      if (errorWhileMarking) throw bankUnreachable(errorWhileMarking);
      if (performance.now() > sendUntilMs) throw stateUnavailable(markedTooLate);
      send(request);
    } catch (thrown) {
      fail(asGatewayError(thrown));
    }
  }

  /** The call fails only when the mark is written: a retry on another connection must not overtake the mark. */
  function failAfterMarking(cause: unknown): void {
    errorWhileMarking ??= cause;
  }

  function send(request: ClientRequest): void {
    phase = 'sent';
    handlers.sendBytes(request);
  }

  return {
    onConnection(request) {
      const { socket } = request;
      if (phase !== 'waiting' || !socket) return;
      const { bytesRead } = socket;
      connectionInfo = () => ({
        reusedSocket: request.reusedSocket,
        responseStarted: socket.bytesRead > bytesRead,
      });
      // The deadline's timer may not have fired yet.
      if (performance.now() >= deadlineAtMs) return fail(deadlineBeforeSending());
      request.once('upgrade', (_response, upgraded: Socket) => {
        upgraded.destroy();
        fail(protocolChanged());
      });
      if (isConnected(socket)) return onConnected(request);
      phase = 'connecting';
      connectTimer = setTimeout(() => fail(bankUnreachable(connectTimeout)), connectMs);
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
        if (phase === 'connecting') onConnected(request);
      });
    },

    onResponse(response) {
      if (phase === 'ended') return;
      if (phase === 'marking') return failAfterMarking(unsolicitedResponse);
      phase = 'responding';
      times.firstByteMs = performance.now() - startedAtMs;
      const status = response.statusCode ?? 0;
      if (status === 101) return fail(protocolChanged()); // without the fields that make it an upgrade for Node
      if (status < 200 || status > 599)
        return fail(malformedResponse(invalidStatus, undefined, 'http_protocol_error'));
      const fields = headerFieldsFrom(response.rawHeaders);
      if (!hasKnownTransferCoding(fields))
        return fail(malformedResponse(unknownTransferCoding, undefined, 'http_response_transfer_coding'));
      readBody(response, fail, (body) => {
        if (!end()) return;
        const headers = withoutFields(endToEndFields(fields), framingHeaders);
        handlers.onResponse({ status, headers, body }, { ...connectionInfo(), ...times });
      });
    },

    onError(cause) {
      if (phase === 'marking') return failAfterMarking(cause);
      if (phase === 'responding') return fail(incompleteResponse(cause));
      if (phase !== 'sent') return fail(bankUnreachable(cause));
      fail(
        !connectionInfo().reusedSocket && isClientCertificateAlert(cause)
          ? clientCertificateRefused(cause)
          : connectionBroken(cause),
      );
    },

    cancel: () => fail(timeoutError()),
  };
}

/** Whether bytes can be sent: taken from the state of the connection, never from an error code. */
function isConnected(socket: Socket): boolean {
  if (socket.connecting || socket.destroyed) return false;
  return !(socket instanceof TLSSocket) || socket.authorized;
}

/**
 * Node decodes `chunked` and leaves every other coding in the body, whose field is not passed on. The names of codings are
 * case-insensitive (RFC 9112 section 7).
 */
function hasKnownTransferCoding(fields: HeaderFields): boolean {
  const codings = headerValues(fields, 'transfer-encoding');
  return codings.length === 0 || (codings.length === 1 && codings[0]?.toLowerCase() === 'chunked');
}

function readBody(
  response: IncomingMessage,
  fail: (error: GatewayError) => void,
  done: (body: Buffer) => void,
): void {
  const body = createBodyBuffer();
  response.on('data', (chunk: Buffer) => {
    if (body.append(chunk) > maxResponseBytes)
      fail(malformedResponse('The bank answered with more than 4 MiB', undefined, 'http_response_body_size'));
  });
  response.on('end', () => done(body.toBuffer()));
  response.on('close', () => {
    if (!response.complete) fail(incompleteResponse(undefined));
  });
}

const framingHeaders: ReadonlySet<string> = new Set(['content-length']);

const protocolChanged = () =>
  malformedResponse('The bank changed the protocol unasked', undefined, 'http_upgrade_failed');

const incompleteResponse = (cause: unknown) =>
  malformedResponse('The bank broke its answer off', cause, 'http_response_incomplete');

/** RFC 9110 section 15. */
const invalidStatus = 'The bank answered with a status that is none of 200 to 599';

const unknownTransferCoding = 'The bank answered in a transfer coding other than chunked';

const markedTooLate = new Error(
  'the request was marked as sending too late, or the process stalled afterwards',
);
const unsolicitedResponse = new Error('a response arrived before the request was sent');
const connectTimeout = Object.assign(new Error('connect timeout'), { code: 'CONNECT_TIMEOUT' });

/** The life of one call to the bank: knows whether a connection was made, keeps the deadlines, collects the answer. */

import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { endToEndFields, type HeaderFields, headerFieldsFrom, withoutFields } from '../pis/headers.ts';
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

/** The bank's whole answer, without the framing. */
export interface BankResponse {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** What the transport tells about one call, as it goes. */
export interface UpstreamCall {
  /** The request was given a connection, perhaps one that is still being made. */
  onConnection(request: ClientRequest): void;
  /** The head of an answer has come. */
  onResponse(answer: IncomingMessage): void;
  onError(cause: unknown): void;
  /** Nobody waits for it any longer; as if its time were over. */
  cancel(): void;
}

/** The fence of a write, told where it leads. */
export interface OutboundSendingMark {
  readonly markSending: () => Promise<number>;
  readonly lateAnswerUntilMs: number;
}

interface CallLimits {
  /** When the whole call must be over, or with a fence, when it must have been passed: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** How long making a connection may take, in milliseconds. */
  readonly connectMs: number;
  /** Passed when the connection is made; until then nothing is released. */
  readonly sendingMark?: OutboundSendingMark;
}

/** What a call that is over tells of its connection. */
export interface ConnectionInfo {
  /** Whether the connection had carried an earlier call: the bank may have closed it just when it was taken. */
  readonly reusedSocket: boolean;
  /** Whether any byte of an answer had come. */
  readonly responseStarted: boolean;
  /** Since the call began: until it had a connection, and until the head of an answer was there. Milliseconds. */
  readonly connectMs?: number;
  readonly firstByteMs?: number;
}

interface CallHandlers {
  /** Lets the bytes go: the connection is made, and the fence is passed. */
  readonly sendBytes: (request: ClientRequest) => void;
  /** Exactly one of the two is called, once. */
  readonly onResponse: (answer: BankResponse, trace: ConnectionInfo) => void;
  readonly onFailure: (error: GatewayError, trace: ConnectionInfo) => void;
  /** Closes the connection of a call that will not be waited for any longer. */
  readonly closeConnection: () => void;
}

/** Larger answers are refused: no answer of the eight operations comes near it, and each is held in memory whole. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** Follows one call from now on until its one end. */
export function createUpstreamCall(
  { deadlineAtMs, connectMs, sendingMark }: CallLimits,
  handlers: CallHandlers,
): UpstreamCall {
  let phase: 'waiting' | 'connecting' | 'at-the-fence' | 'sent' | 'answering' | 'over' = 'waiting';
  let connectTimer: NodeJS.Timeout | undefined;
  let deadline = failAt(deadlineAtMs);
  let connectionError: unknown;
  let connectionInfo = (): ConnectionInfo => ({ reusedSocket: false, responseStarted: false });
  const beganAtMs = performance.now();
  const times: { connectMs?: number; firstByteMs?: number } = {};

  function failAt(atMs: number): NodeJS.Timeout {
    return setTimeout(() => fail(timeoutError()), Math.max(0, atMs - performance.now()));
  }

  function finish(): boolean {
    if (phase === 'over') return true;
    phase = 'over';
    clearTimeout(deadline);
    clearTimeout(connectTimer);
    return false;
  }

  function fail(error: GatewayError): void {
    if (finish()) return;
    handlers.closeConnection();
    handlers.onFailure(error, { ...connectionInfo(), ...times });
  }

  function timeoutError(): GatewayError {
    if (phase === 'waiting' || phase === 'at-the-fence') return deadlineBeforeSending();
    return phase === 'connecting' ? bankUnreachable(connectTimeoutError) : outcomeUnknown();
  }

  function connected(request: ClientRequest): void {
    clearTimeout(connectTimer);
    times.connectMs = performance.now() - beganAtMs;
    if (sendingMark) markAndSend(sendingMark, request);
    else send(request);
  }

  async function markAndSend(
    { markSending, lateAnswerUntilMs }: OutboundSendingMark,
    request: ClientRequest,
  ): Promise<void> {
    phase = 'at-the-fence';
    try {
      const sendUntilMs = await markSending();
      if (phase !== 'at-the-fence') return;
      if (connectionError) throw bankUnreachable(connectionError);
      if (performance.now() > sendUntilMs) throw stateUnavailable(sentTooLate);
      clearTimeout(deadline);
      deadline = failAt(lateAnswerUntilMs);
      send(request);
    } catch (thrown) {
      fail(asGatewayError(thrown));
    }
  }

  /** Told when the fence is passed: an attempt on another connection must not overtake this one. */
  function rememberConnectionError(cause: unknown): void {
    connectionError ??= cause;
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
      // Nothing has been written yet: a call that is late already must not reach a connection that is there.
      if (performance.now() >= deadlineAtMs) return fail(deadlineBeforeSending());
      request.once('upgrade', (_answer, upgraded: Socket) => {
        upgraded.destroy();
        fail(protocolChanged());
      });
      if (isConnected(socket)) return connected(request);
      phase = 'connecting';
      connectTimer = setTimeout(() => fail(bankUnreachable(connectTimeoutError)), connectMs);
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
        if (phase === 'connecting') connected(request);
      });
    },

    onResponse(answer) {
      if (phase === 'over') return;
      if (phase === 'at-the-fence') return rememberConnectionError(unsolicitedResponse);
      phase = 'answering';
      times.firstByteMs = performance.now() - beganAtMs;
      const status = answer.statusCode ?? 0;
      if (status === 101) return fail(protocolChanged()); // without the fields that would make it an upgrade to Node
      if (status < 200 || status > 599)
        return fail(malformedResponse(invalidStatus, undefined, 'http_protocol_error'));
      readBody(answer, fail, (body) => {
        if (finish()) return;
        const headers = withoutFields(endToEndFields(headerFieldsFrom(answer.rawHeaders)), framingHeaders);
        handlers.onResponse({ status, headers, body }, { ...connectionInfo(), ...times });
      });
    },

    onError(cause) {
      if (phase === 'at-the-fence') return rememberConnectionError(cause);
      if (phase === 'answering')
        return fail(malformedResponse('The bank broke its answer off', cause, 'http_response_incomplete'));
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

const framingHeaders: ReadonlySet<string> = new Set(['content-length']);

const protocolChanged = () =>
  malformedResponse('The bank changed the protocol unasked', undefined, 'http_upgrade_failed');

/** RFC 9110 section 15: no final answer has another one. */
const invalidStatus = 'The bank answered with a status that is none of 200 to 599';

const sentTooLate = new Error(
  'the last step before sending took too long, or this process stood still after it',
);
const unsolicitedResponse = new Error('the connection brought an answer before anything was sent');
const connectTimeoutError = Object.assign(new Error('connect time-out'), { code: 'CONNECT_TIMEOUT' });

/** Whether bytes can already travel: the connection's own events decide, never an error code. */
function isConnected(socket: Socket): boolean {
  if (socket.connecting || socket.destroyed) return false;
  return !(socket instanceof TLSSocket) || socket.authorized;
}

function readBody(
  answer: IncomingMessage,
  lose: (error: GatewayError) => void,
  done: (body: Buffer) => void,
): void {
  const body = createBodyBuffer();
  answer.on('data', (chunk: Buffer) => {
    if (body.append(chunk) > maxResponseBytes)
      lose(malformedResponse('The bank answered with more than 4 MiB', undefined, 'http_response_body_size'));
  });
  answer.on('end', () => done(body.toBuffer()));
  answer.on('close', () => {
    if (!answer.complete)
      lose(malformedResponse('The bank broke its answer off', undefined, 'http_response_incomplete'));
  });
}

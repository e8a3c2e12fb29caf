/** One HTTP call to the bank: observes its connection, enforces its deadlines, collects the response. */

import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  connectionOptions,
  type HeaderField,
  type HeaderFields,
  isHopByHop,
  lowerCase,
  withoutFields,
} from '../pis/headers.ts';
import { cacheByName } from '../pis/name-cache.ts';
import type { BatchScheduler } from '../request/batch-scheduler.ts';
import { createBodyBuffer, emptyBody } from '../request/body-buffer.ts';
import type { SetDeadline } from '../request/deadlines.ts';
import { asGatewayError, type GatewayError, outcomeUnknown, stateUnavailable } from '../request/errors.ts';
import type { SendWindow } from '../request/messages.ts';
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

/** One call. The transport reports the events of the HTTP request to it, in this order. */
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
  readonly markSending: () => Promise<SendWindow>;
  /** To be called when the deadline passes after bytes were sent. */
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
  readonly connectMs?: number | undefined;
  readonly firstByteMs?: number | undefined;
}

export interface CallHandlers {
  /** Sends the request: its connection is established, and it is marked as sending. */
  readonly sendBytes: (request: ClientRequest) => void;
  /** One of these two is called, once. */
  readonly onResponse: (response: BankResponse, connection: ConnectionInfo) => void;
  readonly onFailure: (error: GatewayError, connection: ConnectionInfo) => void;
  /** The deadline of a write has passed after it was sent; the call continues until `lateAnswerUntilMs`. */
  readonly onLate: () => void;
  /** Closes the connection of a call that has failed. */
  readonly closeConnection: () => void;
}

/** Larger responses are refused: the eight operations need far less, and the whole response is held in memory. */
export const maxResponseBytes = 4 * 1024 * 1024;

/**
 * How many bytes fit into the send buffer of a socket, even if the bank reads nothing. If more of the request is unsent when its
 * response arrives, the proxy closes the connection after the response: the rest might never be sent.
 */
const maxUnconfirmedBytes = 16_384;

/** @param inNextBatch how responses are passed on: those that arrive together continue together (ADR 63) */
export const createUpstreamCall = (
  limits: CallLimits,
  handlers: CallHandlers,
  setDeadline: SetDeadline,
  inNextBatch: BatchScheduler,
): UpstreamCall => new Call(limits, handlers, setDeadline, inNextBatch);

type Phase = 'waiting' | 'connecting' | 'marking' | 'sent' | 'responding' | 'ended';

class Call implements UpstreamCall {
  readonly #limits: CallLimits;
  readonly #handlers: CallHandlers;
  readonly #setDeadline: SetDeadline;
  readonly #inNextBatch: BatchScheduler;
  readonly #startedAtMs = performance.now();
  #phase: Phase = 'waiting';
  /** Clears the deadline or, after it, the end of the wait for a late response. */
  #clearDeadline: () => void;
  #connectTimer: NodeJS.Timeout | undefined;
  #isLate = false;
  #errorWhileMarking: unknown;
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #socket: Socket | undefined;
  /** How many bytes the socket had received before this call. */
  #bytesReadBefore = 0;
  #connectMs: number | undefined;
  #firstByteMs: number | undefined;

  constructor(
    limits: CallLimits,
    handlers: CallHandlers,
    setDeadline: SetDeadline,
    inNextBatch: BatchScheduler,
  ) {
    this.#limits = limits;
    this.#handlers = handlers;
    this.#setDeadline = setDeadline;
    this.#inNextBatch = inNextBatch;
    this.#clearDeadline = setDeadline(limits.deadlineAtMs, () => this.#onDeadline());
  }

  onConnection(request: ClientRequest) {
    const { socket } = request;
    if (this.#phase !== 'waiting' || !socket) return;
    this.#request = request;
    this.#socket = socket;
    this.#bytesReadBefore = socket.bytesRead;
    if (this.#isPastDeadline()) return this.#fail(deadlineBeforeSending());
    request.on('upgrade', (_response, upgraded: Socket) => {
      upgraded.destroy();
      this.#fail(protocolChanged());
    });
    if (isConnected(socket)) return this.#onConnected(request);
    this.#phase = 'connecting';
    this.#connectTimer = setTimeout(
      () => this.#fail(bankUnreachable(connectTimeout)),
      this.#limits.connectMs,
    );
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
      if (this.#phase === 'connecting') this.#onConnected(request);
    });
  }

  onResponse(response: IncomingMessage) {
    if (this.#phase === 'ended') return;
    if (this.#phase === 'marking') return this.#failAfterMarking(unsolicitedResponse);
    this.#phase = 'responding';
    this.#response = response;
    this.#firstByteMs = performance.now() - this.#startedAtMs;
    const status = response.statusCode ?? 0;
    if (status === 101) return this.#fail(protocolChanged()); // Node emits no `upgrade` if the response lacks the fields of one
    if (status < 200 || status > 599)
      return this.#fail(malformedResponse(invalidStatus, undefined, 'http_protocol_error'));
    const headers = responseFields(response.rawHeaders);
    if (!headers)
      return this.#fail(malformedResponse(unknownTransferCoding, undefined, 'http_response_transfer_coding'));
    // The proxy would close a connection whose last write is confirmed after the response, as is usual over TLS. That is not
    // necessary: Node does not reuse a connection before its request is written.
    const isAlmostSent = (this.#socket?.writableLength ?? 0) <= maxUnconfirmedBytes;
    if (isAlmostSent && response.listenerCount('close') > 0) response.removeAllListeners('close');
    this.#inNextBatch(() => this.#readBody(response, headers));
  }

  /** Nearly every body is complete in the next batch. Otherwise waits for the rest. */
  #readBody(response: IncomingMessage, headers: HeaderFields): void {
    if (this.#phase === 'ended') return;
    if (response.complete && response.readableLength <= maxResponseBytes) {
      this.#onComplete(response, headers, response.read() ?? emptyBody);
      return;
    }
    if (response.destroyed) {
      this.#fail(incompleteResponse(response.errored)); // its events were emitted before
      return;
    }
    const body = createBodyBuffer();
    response.on('data', (chunk: Buffer) => {
      if (body.append(chunk) > maxResponseBytes) this.#fail(tooLongResponse());
    });
    response.on('end', () => {
      if (this.#phase !== 'ended')
        this.#inNextBatch(() => this.#onComplete(response, headers, body.toBuffer()));
    });
    response.on('error', (cause) => this.#fail(incompleteResponse(cause)));
    response.on('close', () => {
      if (!response.complete) this.#fail(incompleteResponse(undefined));
    });
  }

  #onComplete({ statusCode = 0 }: IncomingMessage, headers: HeaderFields, body: Buffer): void {
    if (this.#end()) this.#handlers.onResponse({ status: statusCode, headers, body }, this.#connectionInfo());
  }

  onError(cause: unknown) {
    if (this.#phase === 'marking') return this.#failAfterMarking(cause);
    if (this.#phase === 'responding') {
      if (this.#response?.complete) return; // the next batch passes it on, whatever happens to its connection
      return this.#fail(incompleteResponse(cause));
    }
    if (this.#phase !== 'sent') return this.#fail(bankUnreachable(cause));
    const isFirstOnConnection = !this.#request?.reusedSocket;
    this.#fail(
      isFirstOnConnection && isClientCertificateAlert(cause)
        ? clientCertificateRefused(cause)
        : connectionBroken(cause),
    );
  }

  cancel(): void {
    this.#fail(this.#timeoutError());
  }

  #onDeadline() {
    const { lateAnswerUntilMs = 0 } = this.#limits.sendingMark ?? {};
    const isSent = this.#phase === 'sent' || this.#phase === 'responding';
    if (!isSent || this.#isLate || lateAnswerUntilMs <= performance.now())
      return this.#fail(this.#timeoutError());
    this.#isLate = true;
    this.#clearDeadline = this.#setDeadline(lateAnswerUntilMs, () => this.#onDeadline());
    this.#handlers.onLate();
  }

  #timeoutError(): GatewayError {
    if (this.#phase === 'marking') return stateUnavailable(notMarkedInTime);
    if (this.#phase === 'waiting') return deadlineBeforeSending();
    return this.#phase === 'connecting' ? bankUnreachable(connectTimeout) : outcomeUnknown();
  }

  #fail(error: GatewayError): void {
    if (!this.#end()) return;
    this.#handlers.closeConnection();
    this.#handlers.onFailure(error, this.#connectionInfo());
  }

  /** @returns whether the call had not ended before */
  #end(): boolean {
    if (this.#phase === 'ended') return false;
    this.#phase = 'ended';
    this.#clearDeadline();
    clearTimeout(this.#connectTimer);
    return true;
  }

  #onConnected(request: ClientRequest) {
    clearTimeout(this.#connectTimer);
    this.#connectMs = performance.now() - this.#startedAtMs;
    const { sendingMark } = this.#limits;
    if (sendingMark) this.#markAndSend(sendingMark, request);
    else this.#send(request);
  }

  #markAndSend({ markSending }: OutboundSendingMark, request: ClientRequest): void {
    this.#phase = 'marking';
    const onFailure = (thrown: unknown) => this.#fail(asGatewayError(thrown));
    markSending()
      .then((window) => this.#sendMarked(request, window))
      .catch(onFailure);
  }

  #sendMarked(request: ClientRequest, { untilMs, untilWallMs }: SendWindow): void {
    if (this.#phase !== 'marking') return;
    if (this.#errorWhileMarking) throw bankUnreachable(this.#errorWhileMarking);
    if (performance.now() > untilMs || Date.now() > untilWallMs) throw stateUnavailable(markedTooLate);
    this.#send(request);
  }

  /** Delays the failure of the call until the mark is written: a retry on another connection must not overtake the mark. */
  #failAfterMarking(cause: unknown): void {
    this.#errorWhileMarking ??= cause;
  }

  #send(request: ClientRequest): void {
    if (this.#isPastDeadline()) {
      this.#fail(deadlineBeforeSending());
      return;
    }
    this.#phase = 'sent';
    this.#handlers.sendBytes(request);
  }

  /** The timer of the deadline fires late in a busy process. */
  #isPastDeadline(): boolean {
    return performance.now() >= this.#limits.deadlineAtMs;
  }

  #connectionInfo(): ConnectionInfo {
    return {
      reusedSocket: this.#request?.reusedSocket ?? false,
      responseStarted: this.#socket !== undefined && this.#socket.bytesRead > this.#bytesReadBefore,
      connectMs: this.#connectMs,
      firstByteMs: this.#firstByteMs,
    };
  }
}

/** Whether bytes can be sent: taken from the state of the connection, never from an error code. */
function isConnected(socket: Socket): boolean {
  if (socket.connecting || socket.destroyed) return false;
  return !(socket instanceof TLSSocket) || socket.authorized;
}

/**
 * The fields of a response that are passed on, in one pass: end-to-end, and without the length.
 *
 * @returns `undefined` if there is a transfer coding other than `chunked`: Node does not decode it, and the TPP does not receive
 *   the field that names it. The names of codings are case-insensitive (RFC 9112 section 7).
 */
function responseFields(rawHeaders: readonly string[]): HeaderFields | undefined {
  const fields: HeaderField[] = [];
  let options: readonly string[] = noOptions;
  let isChunked = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const value = rawHeaders[at + 1] ?? '';
    switch (useOf(name)) {
      case 'forwarded':
        fields.push([name, value]);
        break;
      case 'transfer-encoding':
        if (isChunked || lowerCase(value) !== 'chunked') return undefined;
        isChunked = true;
        break;
      case 'connection':
        options = options.length === 0 ? connectionOptions(value) : [...options, ...connectionOptions(value)];
        break;
      case 'removed':
    }
  }
  return options.length === 0 ? fields : withoutFields(fields, new Set(options));
}

const useOf = cacheByName((field): 'forwarded' | 'transfer-encoding' | 'connection' | 'removed' => {
  const name = field.toLowerCase();
  if (name === 'transfer-encoding' || name === 'connection') return name;
  return name === 'content-length' || isHopByHop(name) ? 'removed' : 'forwarded';
});

const noOptions: readonly string[] = [];

const protocolChanged = () =>
  malformedResponse(
    'The bank switched protocols, which the gateway did not request',
    undefined,
    'http_upgrade_failed',
  );

const tooLongResponse = () =>
  malformedResponse("The bank's response exceeds 4 MiB", undefined, 'http_response_body_size');

const incompleteResponse = (cause: unknown) =>
  malformedResponse("The bank's response was cut off", cause, 'http_response_incomplete');

/** RFC 9110 section 15. */
const invalidStatus = "The status of the bank's response is not in the range 200 to 599";

const unknownTransferCoding = "The bank's response has a transfer coding other than chunked";

const markedTooLate = new Error(
  'the request was marked as sending too late, or the process stalled afterwards',
);
const notMarkedInTime = new Error(
  'the database has not stored the write-ahead mark before the deadline of the request',
);
const unsolicitedResponse = new Error('a response arrived before the request was sent');
const connectTimeout = Object.assign(new Error('connect timeout'), { code: 'CONNECT_TIMEOUT' });

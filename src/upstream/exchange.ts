/** The life of one call to the bank: knows whether a connection was made, keeps the deadlines, collects the answer. */

import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { asGatewayError, type GatewayError, stateUnavailable, unanswered } from '../flow/errors.ts';
import { gather } from '../flow/gather.ts';
import { endToEnd, fieldsOf, type HeaderFields, without } from '../pis/headers.ts';
import { broken, malformed, neverSent, refusesCertificate, turnedAway, unreached } from './failure.ts';

/** The bank's whole answer, without the framing. */
export interface BankAnswer {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** What the transport tells about one call, as it goes. */
export interface Exchange {
  /** The request was given a connection, perhaps one that is still being made. */
  began(request: ClientRequest): void;
  /** The head of an answer has come. */
  answered(answer: IncomingMessage): void;
  failed(cause: unknown): void;
  /** Nobody waits for it any longer; as if its time were over. */
  giveUp(): void;
}

/** The fence of a write, told where it leads. */
export interface OutboundFence {
  readonly pass: () => Promise<number>;
  readonly listenUntilMs: number;
}

interface Limits {
  /** When the whole call must be over, or with a fence, when it must have been passed: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** How long making a connection may take, in milliseconds. */
  readonly connectMs: number;
  /** Passed when the connection is made; until then nothing is released. */
  readonly fence?: OutboundFence;
}

/** What a call that is over tells of its connection. */
export interface Trace {
  /** Whether the connection had carried an earlier call: the bank may have closed it just when it was taken. */
  readonly reusedSocket: boolean;
  /** Whether any byte of an answer had come. */
  readonly answerBegan: boolean;
  /** Since the call began: until it had a connection, and until the head of an answer was there. Milliseconds. */
  readonly connectMs?: number;
  readonly firstByteMs?: number;
}

interface Steps {
  /** Lets the bytes go: the connection is made, and the fence is passed. */
  readonly release: (request: ClientRequest) => void;
  /** Exactly one of the two is called, once. */
  readonly done: (answer: BankAnswer, trace: Trace) => void;
  readonly lost: (error: GatewayError, trace: Trace) => void;
  /** Closes the connection of a call that will not be waited for any longer. */
  readonly abandon: () => void;
}

/** Larger answers are refused: no answer of the eight operations comes near it, and each is held in memory whole. */
export const maxAnswerBytes = 4 * 1024 * 1024;

/** Follows one call from now on until its one end. */
export function followExchange({ deadlineAtMs, connectMs, fence }: Limits, steps: Steps): Exchange {
  let phase: 'waiting' | 'connecting' | 'at-the-fence' | 'sent' | 'answering' | 'over' = 'waiting';
  let connectTimer: NodeJS.Timeout | undefined;
  let deadline = overAt(deadlineAtMs);
  let brokenBy: unknown;
  let trace = (): Trace => ({ reusedSocket: false, answerBegan: false });
  const beganAtMs = performance.now();
  const times: { connectMs?: number; firstByteMs?: number } = {};

  function overAt(atMs: number): NodeJS.Timeout {
    return setTimeout(() => lose(lateness()), Math.max(0, atMs - performance.now()));
  }

  function over(): boolean {
    if (phase === 'over') return true;
    phase = 'over';
    clearTimeout(deadline);
    clearTimeout(connectTimer);
    return false;
  }

  function lose(error: GatewayError): void {
    if (over()) return;
    steps.abandon();
    steps.lost(error, { ...trace(), ...times });
  }

  function lateness(): GatewayError {
    if (phase === 'waiting' || phase === 'at-the-fence') return neverSent();
    return phase === 'connecting' ? unreached(connectTimeout) : unanswered();
  }

  function connected(request: ClientRequest): void {
    clearTimeout(connectTimer);
    times.connectMs = performance.now() - beganAtMs;
    if (fence) waitAt(fence, request);
    else send(request);
  }

  async function waitAt({ pass, listenUntilMs }: OutboundFence, request: ClientRequest): Promise<void> {
    phase = 'at-the-fence';
    try {
      const sendUntilMs = await pass();
      if (phase !== 'at-the-fence') return;
      if (brokenBy) throw unreached(brokenBy);
      if (performance.now() > sendUntilMs) throw stateUnavailable(tooLate);
      clearTimeout(deadline);
      deadline = overAt(listenUntilMs);
      send(request);
    } catch (thrown) {
      lose(asGatewayError(thrown));
    }
  }

  /** Told when the fence is passed: an attempt on another connection must not overtake this one. */
  function brokenAtTheFence(cause: unknown): void {
    brokenBy ??= cause;
  }

  function send(request: ClientRequest): void {
    phase = 'sent';
    steps.release(request);
  }

  return {
    began(request) {
      const { socket } = request;
      if (phase !== 'waiting' || !socket) return;
      const { bytesRead } = socket;
      trace = () => ({ reusedSocket: request.reusedSocket, answerBegan: socket.bytesRead > bytesRead });
      // Nothing has been written yet: a call that is late already must not reach a connection that is there.
      if (performance.now() >= deadlineAtMs) return lose(neverSent());
      request.once('upgrade', (_answer, upgraded: Socket) => {
        upgraded.destroy();
        lose(protocolChanged());
      });
      if (isMade(socket)) return connected(request);
      phase = 'connecting';
      connectTimer = setTimeout(() => lose(unreached(connectTimeout)), connectMs);
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
        if (phase === 'connecting') connected(request);
      });
    },

    answered(answer) {
      if (phase === 'over') return;
      if (phase === 'at-the-fence') return brokenAtTheFence(unasked);
      phase = 'answering';
      times.firstByteMs = performance.now() - beganAtMs;
      const status = answer.statusCode ?? 0;
      if (status === 101) return lose(protocolChanged()); // without the fields that would make it an upgrade to Node
      if (status < 200 || status > 599) return lose(malformed(noStatus, undefined, 'http_protocol_error'));
      collect(answer, lose, (body) => {
        if (over()) return;
        const headers = without(endToEnd(fieldsOf(answer.rawHeaders)), framing);
        steps.done({ status, headers, body }, { ...trace(), ...times });
      });
    },

    failed(cause) {
      if (phase === 'at-the-fence') return brokenAtTheFence(cause);
      if (phase === 'answering')
        return lose(malformed('The bank broke its answer off', cause, 'http_response_incomplete'));
      if (phase !== 'sent') return lose(unreached(cause));
      lose(!trace().reusedSocket && refusesCertificate(cause) ? turnedAway(cause) : broken(cause));
    },

    giveUp: () => lose(lateness()),
  };
}

const framing: ReadonlySet<string> = new Set(['content-length']);

const protocolChanged = () =>
  malformed('The bank changed the protocol unasked', undefined, 'http_upgrade_failed');

/** RFC 9110 section 15: no final answer has another one. */
const noStatus = 'The bank answered with a status that is none of 200 to 599';

const tooLate = new Error('the last step before sending took too long, or this process stood still after it');
const unasked = new Error('the connection brought an answer before anything was sent');
const connectTimeout = Object.assign(new Error('connect time-out'), { code: 'CONNECT_TIMEOUT' });

/** Whether bytes can already travel: the connection's own events decide, never an error code. */
function isMade(socket: Socket): boolean {
  if (socket.connecting || socket.destroyed) return false;
  return !(socket instanceof TLSSocket) || socket.authorized;
}

function collect(
  answer: IncomingMessage,
  lose: (error: GatewayError) => void,
  done: (body: Buffer) => void,
): void {
  const body = gather();
  answer.on('data', (chunk: Buffer) => {
    if (body.add(chunk) > maxAnswerBytes)
      lose(malformed('The bank answered with more than 4 MiB', undefined, 'http_response_body_size'));
  });
  answer.on('end', () => done(body.whole()));
  answer.on('close', () => {
    if (!answer.complete)
      lose(malformed('The bank broke its answer off', undefined, 'http_response_incomplete'));
  });
}

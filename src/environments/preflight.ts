/** The preflight check of an environment: one real request to the bank, reported step by step. */

import { type Agent, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { hostWithoutBrackets } from '../config/values.ts';
import type { HeaderFields } from '../pis/headers.ts';

/** A step of the connection; only the last one can have failed. */
export interface PreflightStep {
  readonly step: 'dns' | 'tcp' | 'tls' | 'certificate' | 'answer';
  readonly ok: boolean;
  readonly detail: string;
  /** What an operator should know about this step, although it passed, or what to do if it failed. */
  readonly remark?: string;
}

export interface PreflightReport {
  readonly ok: boolean;
  readonly steps: readonly PreflightStep[];
}

export interface PreflightTarget {
  readonly url: string;
  /** Opens a new connection with the settings of the environment. */
  readonly agent: Agent;
  readonly headers?: HeaderFields;
  /** The statuses of 400 to 499 that the check accepts: `probeExpects`. */
  readonly expects?: readonly number[];
}

/** For the whole check. */
const timeoutMs = 5_000;

/**
 * Resolves the host name, connects, checks the certificate, and expects a final status below 500 that is neither 401 nor 403: with
 * these, the bank refuses the gateway itself, and would refuse its payments as well. Never rejects.
 */
export function preflight({
  url,
  agent,
  headers = [],
  expects = [],
}: PreflightTarget): Promise<PreflightReport> {
  const steps: PreflightStep[] = [];
  const secure = url.startsWith('https:');
  const hasHostname = isIP(hostWithoutBrackets(new URL(url).hostname)) === 0;
  const passed = (step: PreflightStep['step'], detail: string) => void steps.push({ step, ok: true, detail });

  return new Promise((resolve) => {
    const finish = (last: PreflightStep) => resolve({ ok: last.ok, steps: [...steps, last] });
    const signal = AbortSignal.timeout(timeoutMs);
    const request = (secure ? requestHttps : requestHttp)(url, {
      agent,
      signal,
      headers: Object.fromEntries(headers),
    });

    request.on('socket', (socket: Socket) => {
      socket.once('lookup', (error, address) => error || passed('dns', `${address}`));
      socket.once('connect', () => passed('tcp', `${socket.remoteAddress}:${socket.remotePort}`));
      socket.once('secureConnect', () => {
        if (!(socket instanceof TLSSocket)) return;
        passed('tls', socket.getProtocol() ?? '');
        passed('certificate', `valid until ${socket.getPeerCertificate().valid_to}`);
      });
    });
    request.on('response', (response) => {
      response.resume().on('error', () => {});
      finish(answerStep(response.statusCode ?? 0, expects));
    });
    request.on('upgrade', ({ statusCode }, socket: Socket) => {
      socket.destroy();
      finish({ step: 'answer', ok: false, detail: `status ${statusCode}` });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const detail = signal.aborted ? `timed out after ${timeoutMs} ms` : (error.code ?? error.name);
      finish({ step: failedStep(steps, { hasHostname, secure }, error.code ?? ''), ok: false, detail });
    });
    request.end();
  });
}

/** @param expects the statuses of 400 to 499 that the environment expects */
function answerStep(status: number, expects: readonly number[]): PreflightStep {
  const answer = { step: 'answer', detail: `status ${status}` } as const;
  if (expects.includes(status)) return { ...answer, ok: true, detail: `status ${status}, as expected` };
  if (status === 401 || status === 403) return { ...answer, ok: false, remark: refusedRemark(status) };
  const isFinal = status >= 200 && status < 500;
  if (!isFinal || status < 300) return { ...answer, ok: isFinal };
  return { ...answer, ok: true, remark: status === 404 ? unknownPathRemark : otherStatusRemark };
}

const refusedRemark = (status: 401 | 403) =>
  `The bank refuses the gateway. Check the client certificate, the signature and probePath. If the bank always answers so, set probeExpects: [${status}].`;

const unknownPathRemark =
  'The connection works. The bank does not know probePath, so it is not known whether it accepts payments.';

const otherStatusRemark =
  'The connection works. The bank did not answer the probe with 2xx, so it is not known whether it accepts payments.';

interface ProbeTarget {
  /** False for an IP address. */
  readonly hasHostname: boolean;
  readonly secure: boolean;
}

function failedStep(
  steps: readonly PreflightStep[],
  { hasHostname, secure }: ProbeTarget,
  code: string,
): PreflightStep['step'] {
  const done = new Set(steps.map(({ step }) => step));
  if (!done.has('tcp')) return hasHostname && !done.has('dns') ? 'dns' : 'tcp';
  if (!secure || done.has('tls')) return 'answer';
  return certificateError.test(code) ? 'certificate' : 'tls';
}

/** Codes of Node and OpenSSL: expired, wrong host name, untrusted issuer, or the client certificate was rejected. */
const certificateError = /CERT|UNABLE_TO_VERIFY/;

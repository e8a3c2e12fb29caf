/** The pre-flight before a switch: one real request to the bank, told step by step. */

import { type Agent, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { hostWithoutBrackets } from '../config/values.ts';
import type { HeaderFields } from '../pis/headers.ts';

/** One step that a connection takes: it went well, or it is where the pre-flight ended. */
export interface PreflightStep {
  readonly step: 'dns' | 'tcp' | 'tls' | 'certificate' | 'answer';
  readonly ok: boolean;
  readonly detail: string;
}

export interface PreflightReport {
  readonly ok: boolean;
  readonly steps: readonly PreflightStep[];
}

/** What is called: the probe of an environment, over connections made as for any payment. */
export interface Probe {
  readonly url: string;
  /** Makes a new connection: nothing pooled is taken for a proof. */
  readonly agent: Agent;
  /** What it carries; nothing unless told. */
  readonly headers?: HeaderFields;
}

/** For the whole pre-flight, in milliseconds. */
const timeoutMs = 5_000;

/** Finds the name, connects, checks the certificate, and wants a final answer below 500. Never rejects. */
export function preflight({ url, agent, headers = [] }: Probe): Promise<PreflightReport> {
  const steps: PreflightStep[] = [];
  const secure = url.startsWith('https:');
  const named = isIP(hostWithoutBrackets(new URL(url).hostname)) === 0;
  const passed = (step: PreflightStep['step'], detail: string) => void steps.push({ step, ok: true, detail });

  return new Promise((resolve) => {
    const over = (last: PreflightStep) => resolve({ ok: last.ok, steps: [...steps, last] });
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
      const status = response.statusCode ?? 0;
      over({ step: 'answer', ok: status >= 200 && status < 500, detail: `status ${status}` });
    });
    request.on('upgrade', ({ statusCode }, socket: Socket) => {
      socket.destroy();
      over({ step: 'answer', ok: false, detail: `status ${statusCode}` });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      const detail = signal.aborted ? `no success within ${timeoutMs} ms` : (error.code ?? error.name);
      over({ step: failedStep(steps, { named, secure }, error.code ?? ''), ok: false, detail });
    });
    request.end();
  });
}

interface ProbeTarget {
  /** Has it a name, which must be found first? */
  readonly named: boolean;
  readonly secure: boolean;
}

/** The step that did not come to its end. */
function failedStep(
  steps: readonly PreflightStep[],
  { named, secure }: ProbeTarget,
  code: string,
): PreflightStep['step'] {
  const done = new Set(steps.map(({ step }) => step));
  if (!done.has('tcp')) return named && !done.has('dns') ? 'dns' : 'tcp';
  if (!secure || done.has('tls')) return 'answer';
  return certificateError.test(code) ? 'certificate' : 'tls';
}

/** As Node and OpenSSL name it: expired, for another name, signed by nobody who is believed, or ours refused. */
const certificateError = /CERT|UNABLE_TO_VERIFY/;

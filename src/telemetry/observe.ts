/** STAGE 1. Says what the gateway did: one line a request, on its way back. */

import { asGatewayError, type GatewayError, kinds } from '../flow/errors.ts';
import type { PisRequest } from '../flow/messages.ts';
import type { Stage } from '../flow/stage.ts';
import type { Log, LogFields, LogLevel } from './log.ts';
import { placeOf } from './place-of.ts';

/** Logs every request of the line with what became of it. */
export function observe(log: Log): Stage<PisRequest> {
  return async (request, next) => {
    try {
      const response = await next(request);
      log('info', 'request', {
        ...factsOf(request),
        environment: response.environment,
        status: response.status,
        servedFrom: response.servedFrom,
        ...(response.upstreamMs !== undefined && { upstreamMs: rounded(response.upstreamMs) }),
      });
      return response;
    } catch (thrown) {
      const error = asGatewayError(thrown);
      log(loudnessOf(error), 'request failed', { ...factsOf(request), ...failureOf(error) });
      throw error;
    }
  };
}

/** Logs a request that was refused before it could become one. */
export function observeRefusal(
  log: Log,
): (error: GatewayError, requestId?: string, network?: string) => void {
  return (error, requestId, network) =>
    log(loudnessOf(error), 'request refused', {
      requestId,
      ...(network !== undefined && { network }),
      ...failureOf(error),
    });
}

function factsOf({ requestId, operation, client, arrivedAtMs }: PisRequest): LogFields {
  return {
    requestId,
    operation: operation.name,
    client: client.name,
    tenant: client.tenant,
    durationMs: rounded(performance.now() - arrivedAtMs),
  };
}

function failureOf({ code, message, environment, proxyError, cause }: GatewayError): LogFields {
  return {
    environment,
    status: kinds[code].status,
    error: code,
    why: message,
    proxyError,
    ...(code === 'INTERNAL' && { stack: placeOf(cause) }),
  };
}

function loudnessOf({ code }: GatewayError): LogLevel {
  if (code === 'INTERNAL') return 'error';
  return kinds[code].origin === 'tpp' ? 'info' : 'warn';
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;

/**
 * Serves `GET /requests/{X-Request-ID}`, with which TPPs look up their own requests. The gateway answers it itself.
 *
 * Refusals come in the order of all requests: path (400), method (405), overload (503), client (401), body (400). Those of the look-up
 * itself follow.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Lane } from '../pis/operations.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import type { ObserveLookUp } from '../telemetry/observe-look-up.ts';
import type { AuthenticateClient } from './authenticate-client.ts';
import { awaitEmptyBody, hasBody } from './read-body.ts';
import { isUuid, type RequestHead } from './request-head.ts';
import { writeCompleteResponse } from './write-response.ts';

interface LookUpServiceDependencies {
  /** @throws GatewayError OVERLOADED while requests of this lane are shed */
  readonly admit: (lane: Lane) => void;
  readonly authenticate: AuthenticateClient;
  /** @returns what is sent as JSON. Rejects with a GatewayError */
  readonly lookUp: (client: Client, requestId: string) => Promise<object>;
  readonly observe: ObserveLookUp;
}

/** A request whose path is none of the eight operations: it may be a look-up. */
export interface LookUpCall {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly head: RequestHead;
  /** The X-Request-ID of the response, not the one that is looked up. */
  readonly requestId: string;
  /** Milliseconds of `performance.now()`. */
  readonly arrivedAtMs: number;
  /** Network of the client, for the log of one that fails. */
  readonly network: string | undefined;
  /** Sends an error to the client. */
  readonly fail: (error: GatewayError) => void;
}

/** @returns false if the path is not that of a look-up; then the request is not answered */
export type ServeLookUp = (call: LookUpCall) => boolean;

const pathPrefix = '/requests/';
const methods: readonly string[] = ['GET', 'HEAD'];

export function createLookUpService({
  admit,
  authenticate,
  lookUp,
  observe,
}: LookUpServiceDependencies): ServeLookUp {
  function accept({ incoming, outgoing, head }: LookUpCall, lookedUp: string): Client | Promise<Client> {
    if (lookedUp.includes('?')) throw hasQuery();
    if (!isUuid(lookedUp)) throw notUuid();
    if (!methods.includes(incoming.method ?? '')) throw wrongMethod();
    admit('status'); // shed as early as the reads that can wait most
    const client = authenticate(incoming.socket, head.apiKey);
    head.client = client;
    const unexpected = () => {
      outgoing.shouldKeepAlive = false;
      const text = 'A look-up does not allow a body; send the request without one.';
      return new GatewayError('BODY_UNEXPECTED', text);
    };
    if (hasBody(incoming, head)) throw unexpected();
    if (head.expect !== undefined && incoming.httpVersion === '1.1') outgoing.writeContinue();
    return head.announcesBody ? awaitEmptyBody(client, incoming, unexpected) : client;
  }

  return (call) => {
    const path = call.incoming.url ?? '';
    if (!path.startsWith(pathPrefix)) return false;
    const lookedUp = path.slice(pathPrefix.length);
    if (lookedUp.includes('/')) return false;
    const { requestId, arrivedAtMs, network, head } = call;
    const end = (error?: GatewayError) =>
      observe({ requestId, arrivedAtMs, client: head.client, error, network: error && network });
    const onError = (thrown: unknown) => {
      const error = asGatewayError(thrown);
      end(error);
      call.fail(error);
    };
    try {
      const onReport = (report: object) => {
        writeReport(call, report);
        end();
      };
      const client = accept(call, lookedUp);
      const report =
        client instanceof Promise
          ? client.then((accepted) => lookUp(accepted, lookedUp))
          : lookUp(client, lookedUp);
      report.then(onReport).catch(onError);
    } catch (thrown) {
      onError(thrown);
    }
    return true;
  };
}

function writeReport({ outgoing, requestId }: LookUpCall, report: object): void {
  if (!outgoing.writable) return; // the client has disconnected
  const fields = [
    ['X-Request-ID', requestId],
    ['Content-Type', 'application/json'],
    ['Cache-Control', 'no-store'],
  ] as const;
  writeCompleteResponse(outgoing, 200, fields, Buffer.from(`${JSON.stringify(report, null, 2)}\n`));
}

const hasQuery = () =>
  new GatewayError('PATH_MALFORMED', 'The request target is not valid: a look-up has no query.');

const notUuid = () =>
  new GatewayError(
    'REQUEST_ID_INVALID',
    'The path of a look-up must end with the X-Request-ID of a request: a UUID.',
  );

const wrongMethod = () =>
  new GatewayError('METHOD_NOT_ALLOWED', 'A look-up supports only GET and HEAD.', {
    headers: [['Allow', methods.join(', ')]],
  });

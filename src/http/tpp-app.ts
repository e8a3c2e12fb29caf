/** The application of the public API: one Express route that accepts every request and passes plain values to the pipeline. */

import { randomUUID } from 'node:crypto';
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import express from 'express';
import { type HeaderField, headerFieldsFrom } from '../pis/headers.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { asGatewayError, type GatewayError, withAdvice } from '../request/errors.ts';
import type { Client, PisRequest, PisResponse } from '../request/messages.ts';
import type { Handler } from '../request/stage.ts';
import { whenAdmitted } from '../request/when-admitted.ts';
import type { NetworkOf } from './client-network.ts';
import type { ReadRequest } from './read-request.ts';
import { RequestHead } from './request-head.ts';
import type { ServeLookUp } from './serve-look-up.ts';
import { writeError } from './write-error.ts';
import { writeResponse } from './write-response.ts';

interface TppAppDependencies {
  readonly readRequest: ReadRequest;
  readonly pipeline: Handler<PisRequest>;
  /** `undefined` if TPPs cannot look up their requests. */
  readonly serveLookUp?: ServeLookUp | undefined;
  readonly networkOf: NetworkOf;
  /** The error reference that errors link to. */
  readonly errorPageUrl?: string | null;
  /** Called for every request that is refused before the pipeline, with the X-Request-ID of its response. */
  readonly onRefused: (
    error: GatewayError,
    requestId: string,
    arrivedAtMs: number,
    network: string | undefined,
    client: Client | undefined,
  ) => void;
}

export function createTppApp({
  readRequest,
  pipeline,
  serveLookUp,
  networkOf,
  errorPageUrl = null,
  onRefused,
}: TppAppDependencies): RequestListener {
  const serve: RequestListener = (incoming, outgoing) => {
    const arrivedAtMs = performance.now();
    const peer = incoming.socket.remoteAddress; // undefined once the socket is closed
    const head = new RequestHead(incoming.rawHeaders, incoming.httpVersion);
    const requestId = head.requestId ?? randomUUID();
    const addedFields: HeaderField[] = [];

    function fail(error: GatewayError): void {
      try {
        writeError(incoming, outgoing, error, { requestId, accept: head.accept, addedFields, errorPageUrl });
      } catch {
        outgoing.destroy();
      }
    }

    function refuse(thrown: unknown): void {
      const error = asGatewayError(thrown);
      const network = networkOf(peer, headerFieldsFrom(incoming.rawHeaders));
      if (error.code === 'PATH_UNKNOWN') {
        const isLookUp = serveLookUp?.({ incoming, outgoing, head, requestId, arrivedAtMs, network, fail });
        if (isLookUp) return;
      }
      onRefused(error, requestId, arrivedAtMs, network, head.client);
      fail(error);
    }

    function run(request: PisRequest): void {
      const end = () => {
        request.body = emptyBody; // a late response of the bank does not need it
        request.permit?.release();
      };
      const onError = (thrown: unknown) => {
        // A stage failed before it awaited the quota, whose refusal has precedence.
        if (request.quota) return void whenAdmitted(request, () => Promise.reject(thrown)).catch(onError);
        fail(withAdvice(asGatewayError(thrown), request.operation));
        end();
      };
      const onResponse = (response: PisResponse) => {
        try {
          writeResponse(outgoing, request, response, addedFields);
        } catch (thrown) {
          return onError(thrown);
        }
        end();
      };
      try {
        pipeline(request).then(onResponse, onError);
      } catch (thrown) {
        onError(thrown);
      }
    }

    let request: PisRequest | Promise<PisRequest>;
    try {
      request = readRequest(incoming, head, outgoing, (field) => addedFields.push(field));
    } catch (thrown) {
      return refuse(thrown);
    }
    if (request instanceof Promise) request.then(run, refuse);
    else run(request);
  };

  const app = express();
  // Express sets these prototypes on every request and response. Another prototype than the present one would slow down all later
  // code, so these are Node's own.
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.use(serve);
  return (incoming, outgoing) => {
    // Express calls this without an error if it cannot parse the target: `serve` then refuses the request. After an error, the
    // request must not be served a second time.
    const onUnhandled = (thrown?: unknown) => {
      if (thrown === undefined) serve(incoming, outgoing);
      else outgoing.destroy();
    };
    Reflect.apply(app, undefined, [incoming, outgoing, onUnhandled]);
  };
}

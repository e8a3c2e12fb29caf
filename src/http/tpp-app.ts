/** The application of the public API: one Express route that accepts every request and passes plain values to the pipeline. */

import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import express from 'express';
import { type HeaderField, headerFieldsFrom, headerValue } from '../pis/headers.ts';
import { asGatewayError, type GatewayError, withAdvice } from '../request/errors.ts';
import type { PisRequest } from '../request/messages.ts';
import type { Handler } from '../request/stage.ts';
import type { NetworkOf } from './client-network.ts';
import type { ReadRequest } from './read-request.ts';
import { responseIdOf } from './request-id.ts';
import { writeError } from './write-error.ts';
import { writeResponse } from './write-response.ts';

interface TppAppDependencies {
  readonly readRequest: ReadRequest;
  readonly pipeline: Handler<PisRequest>;
  readonly networkOf: NetworkOf;
  /** Called for every request that is refused before the pipeline, with the X-Request-ID of its response. */
  readonly onRefused: (
    error: GatewayError,
    requestId: string,
    arrivedAtMs: number,
    network: string | undefined,
  ) => void;
}

export function createTppApp({
  readRequest,
  pipeline,
  networkOf,
  onRefused,
}: TppAppDependencies): RequestListener {
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const fields = headerFieldsFrom(incoming.rawHeaders);
    const peer = incoming.socket.remoteAddress; // undefined once the socket is closed
    const addedFields: HeaderField[] = [];
    const context = { requestId: responseIdOf(fields), accept: headerValue(fields, 'accept'), addedFields };
    const fail = (error: GatewayError) => writeError(incoming, outgoing, error, context);

    const arrivedAtMs = performance.now();
    const request = await readRequest(incoming, fields, outgoing, (field) => addedFields.push(field)).catch(
      asGatewayError,
    );
    if (request instanceof Error) {
      onRefused(request, context.requestId, arrivedAtMs, networkOf(peer, fields));
      return fail(request);
    }
    await pipeline(request)
      .then((response) => writeResponse(outgoing, request, response, addedFields))
      .catch((thrown) => fail(withAdvice(asGatewayError(thrown), request.operation.lane)));
  };

  const app = express();
  // Express sets these prototypes on every request and response, which slows all later code down. Node's own do not.
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.use(serve);
  return (incoming, outgoing) => {
    // Express finds no route for a target that it cannot parse: `serve` refuses it like any other.
    // A request whose response failed is never served a second time.
    const onUnhandled = (thrown?: unknown) => {
      if (thrown === undefined) serve(incoming, outgoing).catch(() => outgoing.destroy());
      else outgoing.destroy();
    };
    Reflect.apply(app, undefined, [incoming, outgoing, onUnhandled]);
  };
}

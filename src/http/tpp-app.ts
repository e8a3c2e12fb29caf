/** One catch-all Express route. Express ends here: behind it there are only values. */

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
  /** Told of every request that the door itself refuses, with the id its answer carries, and where it comes from. */
  readonly onRefused: (
    error: GatewayError,
    requestId: string,
    arrivedAtMs: number,
    network: string | undefined,
  ) => void;
}

/** The application that the listener serves; supertest takes it as it is. */
export function createTppApp({
  readRequest,
  pipeline,
  networkOf,
  onRefused,
}: TppAppDependencies): RequestListener {
  const serve = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const fields = headerFieldsFrom(incoming.rawHeaders);
    const peer = incoming.socket.remoteAddress;
    const said: HeaderField[] = [];
    const caller = {
      requestId: responseIdOf(fields),
      accept: headerValue(fields, 'accept'),
      addedHeaders: said,
    };
    const fail = (error: GatewayError) => writeError(incoming, answer, error, caller);

    const arrivedAtMs = performance.now();
    const request = await readRequest(incoming, fields, answer, (field) => said.push(field)).catch(
      asGatewayError,
    );
    if (request instanceof Error) {
      onRefused(request, caller.requestId, arrivedAtMs, networkOf(peer, fields));
      return fail(request);
    }
    await pipeline(request)
      .then((response) => writeResponse(answer, request, response, said))
      .catch((thrown) => fail(withAdvice(asGatewayError(thrown), request.operation.lane)));
  };

  const app = express();
  // Express gives every request and answer these prototypes, which slows all later code down; with Node's own, it does not.
  Object.assign(app, { request: IncomingMessage.prototype, response: ServerResponse.prototype });
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.use(serve);
  return (incoming, answer) => {
    // Express finds no route for a target that it cannot parse: the door refuses those like any other.
    // A request that failed while it was answered is never served again.
    const passedOver = (thrown?: unknown) => {
      if (thrown === undefined) serve(incoming, answer).catch(() => answer.destroy());
      else answer.destroy();
    };
    Reflect.apply(app, undefined, [incoming, answer, passedOver]);
  };
}

/** Why was my call refused: what this instance remembers of the requests with one `X-Request-ID`. */

import express, { type Router } from 'express';
import type { Decisions } from '../telemetry/decisions.ts';

export interface DecisionRoutesParts {
  readonly decisions: Pick<Decisions, 'of'>;
}

/** The routes below `/api/decisions`. */
export function createDecisionRoutes({ decisions }: DecisionRoutesParts): Router {
  const routes = express.Router({ caseSensitive: true, strict: true });
  routes.get('/:requestId', (request, response) => {
    const accounts = decisions.of(request.params.requestId);
    if (accounts.length > 0) {
      response.json(accounts);
      return;
    }
    const error =
      'This instance remembers no request with this X-Request-ID: it keeps the last ones, and others keep their own.';
    response.status(404).json({ error });
  });
  return routes;
}

/** What operators can ask and do about circuits. */

import express, { type Router } from 'express';
import { z } from 'zod';
import { duration } from '../config/units.ts';
import type { CircuitView } from '../upstream/circuit/circuit-state.ts';
import type { HoldCircuit } from '../upstream/circuit/hold-circuit.ts';
import { faultsOf, json, operatorOf, sentence } from './orders.ts';

export interface CircuitRoutesParts {
  readonly circuits: () => readonly CircuitView[];
  readonly holdCircuit: HoldCircuit;
}

/** An order to hold a circuit, or to let go of it. */
export const holdBody = z.strictObject(
  {
    hold: z.enum(['open', 'closed'], { error: 'expected open, closed or null' }).nullable(),
    reason: sentence,
    for: duration('10min', { max: '24h' }),
  },
  json,
);

/** The routes below `/api/circuits`. */
export function createCircuitRoutes({ circuits, holdCircuit }: CircuitRoutesParts): Router {
  const routes = express.Router({ caseSensitive: true, strict: true });

  routes.get('/', (_request, response) => {
    response.json(circuits());
  });

  routes.put('/:environment/:lane', async (request, response) => {
    const order = holdBody.safeParse(request.body);
    if (!order.success) {
      response.status(400).json({ error: faultsOf(order.error) });
      return;
    }
    const { environment, lane } = request.params;
    const isAsked = (circuit: CircuitView) => circuit.environment === environment && circuit.lane === lane;
    const asked = circuits().find(isAsked);
    if (!asked) {
      response.status(404).json({ error: 'There is no circuit of this environment and lane.' });
      return;
    }
    const { hold, reason, for: forMs } = order.data;
    const place = { environment: asked.environment, lane: asked.lane };
    await holdCircuit({ ...place, who: operatorOf(response), hold, reason, forMs });
    response.json(circuits().find(isAsked));
  });

  return routes;
}

/** What operators can ask and do over HTTP: environments and the switch, the audit log, the configuration. */

import express, { type RequestHandler, type Router } from 'express';
import { z } from 'zod';
import type { CertificateView } from '../certificates/held.ts';
import type { ActiveEnvironment } from '../environments/active-environment.ts';
import type { Audit } from '../environments/audit.ts';
import type { PreflightReport } from '../environments/preflight.ts';
import type { SwitchEnvironment } from '../environments/switch-environment.ts';
import type { Doubts } from '../idempotency/doubts.ts';
import type { Resolve } from '../idempotency/resolve.ts';
import { isPaymentId } from '../pis/operations.ts';
import type { Purge } from '../status-cache/create-status-cache.ts';
import type { CircuitView } from '../upstream/circuit/circuit-state.ts';
import { type CircuitRoutesParts, createCircuitRoutes } from './circuit-routes.ts';
import { createDecisionRoutes, type DecisionRoutesParts } from './decision-routes.ts';
import { faultsOf, json, operatorOf, sentence } from './orders.ts';

/** One side of the bank, as operators see it. */
export interface EnvironmentView {
  readonly name: string;
  readonly baseUrl: string;
  readonly standardVersion: string;
  readonly circuits: readonly CircuitView[];
  /** What is shown to the bank, and what requests are signed with. */
  readonly certificate: CertificateView | null;
  readonly signingCertificate: CertificateView | null;
}

export interface AdminParts extends CircuitRoutesParts, DecisionRoutesParts {
  readonly environments: () => readonly EnvironmentView[];
  readonly active: ActiveEnvironment;
  readonly switchEnvironment: SwitchEnvironment;
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly tryOut: (environment: string) => Promise<PreflightReport> | undefined;
  readonly audit: Audit;
  /** The configuration in effect, its secrets masked. */
  readonly configuration: () => unknown;
  /** Makes every instance forget what is kept of a payment, or of all. @throws GatewayError STATE_UNAVAILABLE */
  readonly purge: Purge;
  readonly doubts: Pick<Doubts, 'all'>;
  readonly resolve: Resolve;
  /** Answers `GET /api/events`. */
  readonly events: RequestHandler;
}

/** Without a payment everything is forgotten, whatever the environment: forgetting too much does no harm. */
const purgeQuery = z.strictObject({
  environment: z.string().optional(),
  payment: z.string().min(1).optional(),
});

/** An order to switch. */
export const switchBody = z.strictObject(
  {
    environment: z.string({ error: 'expected the name of an environment' }),
    reason: sentence,
    confirm: z.string().optional(),
    force: z.boolean().default(false),
  },
  json,
);

/** What the bank has told of something in doubt. */
export const resolutionBody = z
  .strictObject(
    {
      outcome: z.enum(['happened', 'did-not-happen']),
      paymentId: z.string().refine(isPaymentId, 'expected an id as the bank gave it').optional(),
      reason: sentence,
    },
    json,
  )
  .refine(({ outcome, paymentId }) => outcome === 'happened' || paymentId === undefined, {
    path: ['paymentId'],
    error: 'expected none: what did not happen has made no payment',
  });

/** The routes below `/api`. Errors are handed to Express; whoever asks is known already. */
export function createRoutes({
  environments,
  active,
  switchEnvironment,
  tryOut,
  audit,
  configuration,
  purge,
  doubts,
  resolve,
  decisions,
  events,
  ...circuits
}: AdminParts): Router {
  const routes = express.Router({ caseSensitive: true, strict: true });
  routes.use(express.json({ limit: '16kb' }));

  routes.get('/environments', async (_request, response) => {
    const record = await active.read().catch(() => active.known());
    response.json({
      active: record?.environment ?? null,
      version: record?.version ?? null,
      environments: environments(),
    });
  });

  routes.put('/environments/active', async (request, response) => {
    const order = switchBody.safeParse(request.body);
    if (!order.success) {
      response.status(400).json({ error: faultsOf(order.error) });
      return;
    }
    const outcome = await switchEnvironment({ ...order.data, who: operatorOf(response) });
    if (outcome.kind === 'refused') {
      response.status(409).json({ error: `Not switched: ${outcome.why}.`, preflight: outcome.preflight });
      return;
    }
    const { from, version, preflight } = outcome;
    response.json({ active: order.data.environment, from, version, preflight });
  });

  routes.post('/environments/:name/preflight', async (request, response) => {
    const report = await tryOut(request.params.name);
    if (report) response.json(report);
    else response.status(404).json({ error: 'There is no environment of this name.' });
  });

  routes.get('/events', events);

  routes.use('/circuits', createCircuitRoutes(circuits));
  routes.use('/decisions', createDecisionRoutes({ decisions }));

  routes.get('/in-doubt', async (_request, response) => {
    const all = await doubts.all();
    response.json(
      all.map(({ id, entry: { requestId, operation, environment, tenant, since, why } }) => {
        return {
          id,
          xRequestId: requestId,
          operation,
          environment,
          tenant,
          since: new Date(since).toISOString(),
          why,
        };
      }),
    );
  });

  routes.post('/in-doubt/:id', async (request, response) => {
    const said = resolutionBody.safeParse(request.body);
    if (!said.success) {
      response.status(400).json({ error: faultsOf(said.error) });
      return;
    }
    const resolved = await resolve({ ...said.data, id: request.params.id, who: operatorOf(response) });
    switch (resolved.kind) {
      case 'resolved':
        response.json({ id: request.params.id, outcome: said.data.outcome });
        return;
      case 'unknown':
        response.status(404).json({ error: 'Nothing is in doubt under this id.' });
        return;
      case 'too-early': {
        const error = `The bank may still act on it: try again in ${resolved.seconds} s.`;
        response.status(409).set('Retry-After', String(resolved.seconds)).json({ error });
      }
    }
  });

  routes.get('/audit', async (_request, response) => {
    response.json(await audit.newest(100));
  });

  routes.get('/audit/verify', async (_request, response) => {
    response.json(await audit.verify());
  });

  routes.delete('/status-cache', async (request, response) => {
    const asked = purgeQuery.safeParse(request.query);
    if (!asked.success) {
      response.status(400).json({ error: faultsOf(asked.error) });
      return;
    }
    await purge(asked.data);
    response.status(204).end();
  });

  routes.get('/config', (_request, response) => {
    response.json(configuration());
  });

  return routes;
}

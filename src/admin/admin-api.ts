/** What operators can ask and do over HTTP: environments and the switch, the audit log, the configuration. */

import type { RequestHandler, Router } from 'express';
import express from 'express';
import { z } from 'zod';
import type { CertificateView } from '../certificates/installed-certificates.ts';
import { duration } from '../config/units.ts';
import type { ActiveEnvironment } from '../environments/active-environment.ts';
import type { AuditLog } from '../environments/audit-log.ts';
import type { PreflightReport } from '../environments/preflight.ts';
import type { SwitchEnvironment } from '../environments/switch-environment.ts';
import type { InDoubtWrites } from '../idempotency/recovery.ts';
import type { Resolve } from '../idempotency/resolve.ts';
import { isPaymentId } from '../pis/operations.ts';
import type { Purge } from '../status-cache/cache-status.ts';
import type { RecentRequests } from '../telemetry/recent-requests.ts';
import type { CircuitView } from '../upstream/circuit/circuit.ts';
import type { HoldCircuit } from '../upstream/circuit/holds.ts';
import { describeErrors, jsonBodyError, operatorName, reasonText } from './request-schemas.ts';

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

export interface AdminApiDependencies extends CircuitRouteDependencies, DecisionRouteDependencies {
  readonly environments: () => readonly EnvironmentView[];
  readonly active: ActiveEnvironment;
  readonly switchEnvironment: SwitchEnvironment;
  /** Tries an environment out; `undefined` if there is none of that name. */
  readonly tryOut: (environment: string) => Promise<PreflightReport> | undefined;
  readonly audit: AuditLog;
  /** The configuration in effect, its secrets masked. */
  readonly configuration: () => unknown;
  /** Makes every instance forget what is kept of a payment, or of all. @throws GatewayError STATE_UNAVAILABLE */
  readonly purge: Purge;
  readonly inDoubt: Pick<InDoubtWrites, 'all'>;
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
export const switchRequest = z.strictObject(
  {
    environment: z.string({ error: 'expected the name of an environment' }),
    reason: reasonText,
    confirm: z.string().optional(),
    force: z.boolean().default(false),
  },
  jsonBodyError,
);

/** What the bank has told of something in doubt. */
export const resolutionRequest = z
  .strictObject(
    {
      outcome: z.enum(['happened', 'did-not-happen']),
      paymentId: z.string().refine(isPaymentId, 'expected an id as the bank gave it').optional(),
      reason: reasonText,
    },
    jsonBodyError,
  )
  .refine(({ outcome, paymentId }) => outcome === 'happened' || paymentId === undefined, {
    path: ['paymentId'],
    error: 'expected none: what did not happen has made no payment',
  });

/** The routes below `/api`. Errors are handed to Express; whoever asks is known already. */
export function createAdminApi({
  environments,
  active,
  switchEnvironment,
  tryOut,
  audit,
  configuration,
  purge,
  inDoubt,
  resolve,
  decisions,
  events,
  ...circuits
}: AdminApiDependencies): Router {
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
    const order = switchRequest.safeParse(request.body);
    if (!order.success) {
      response.status(400).json({ error: describeErrors(order.error) });
      return;
    }
    const outcome = await switchEnvironment({ ...order.data, who: operatorName(response) });
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
    const all = await inDoubt.all();
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
    const said = resolutionRequest.safeParse(request.body);
    if (!said.success) {
      response.status(400).json({ error: describeErrors(said.error) });
      return;
    }
    const resolved = await resolve({ ...said.data, id: request.params.id, who: operatorName(response) });
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
      response.status(400).json({ error: describeErrors(asked.error) });
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

// MERGED HEADER (rewrite or remove):
/* What operators can ask and do about circuits. */

export interface CircuitRouteDependencies {
  readonly circuits: () => readonly CircuitView[];
  readonly holdCircuit: HoldCircuit;
}

/** An order to hold a circuit, or to let go of it. */
export const holdRequest = z.strictObject(
  {
    hold: z.enum(['open', 'closed'], { error: 'expected open, closed or null' }).nullable(),
    reason: reasonText,
    for: duration('10min', { max: '24h' }),
  },
  jsonBodyError,
);

/** The routes below `/api/circuits`. */
function createCircuitRoutes({ circuits, holdCircuit }: CircuitRouteDependencies): Router {
  const routes = express.Router({ caseSensitive: true, strict: true });

  routes.get('/', (_request, response) => {
    response.json(circuits());
  });

  routes.put('/:environment/:lane', async (request, response) => {
    const order = holdRequest.safeParse(request.body);
    if (!order.success) {
      response.status(400).json({ error: describeErrors(order.error) });
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
    await holdCircuit({ ...place, who: operatorName(response), hold, reason, forMs });
    response.json(circuits().find(isAsked));
  });

  return routes;
}

// MERGED HEADER (rewrite or remove):
/* Why was my call refused: what this instance remembers of the requests with one `X-Request-ID`. */

export interface DecisionRouteDependencies {
  readonly decisions: Pick<RecentRequests, 'of'>;
}

/** The routes below `/api/decisions`. */
function createDecisionRoutes({ decisions }: DecisionRouteDependencies): Router {
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

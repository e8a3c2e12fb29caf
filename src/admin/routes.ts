/** The routes of the admin listener, in one table: Express and the OpenAPI description both use it (ADR 57). */

import type { Response } from 'express';
import type { z } from 'zod';
import { contractRoutes } from './contract-routes.ts';
import {
  notification,
  notificationSummary,
  notifications,
  resentNotifications,
} from './notification-schemas.ts';
import { paymentHistory, payments, paymentsQuery } from './payment-schemas.ts';
import {
  exportQuery,
  historyQuery,
  holdRequest,
  identityRequests,
  inDoubtQuery,
  notificationRequest,
  notificationsQuery,
  previewQuery,
  purgeQuery,
  reloadRequest,
  resendRequest,
  resolutionRequest,
  searchQuery,
  severalResolutionRequest,
  switchRequest,
  timelineQuery,
} from './request-schemas.ts';
import {
  alerts,
  auditRecords,
  auditVerification,
  circuit,
  circuits,
  configuration,
  decisions,
  environments,
  errorCounts,
  history,
  identityChanged,
  inDoubt,
  inDoubtPreview,
  instances,
  liveness,
  preflightResult,
  readiness,
  reloadReport,
  resolution,
  searchResult,
  severalResolved,
  switchResult,
  timelineEntries,
} from './response-schemas.ts';
import type { Route } from './route.ts';
import { signInRoutes } from './sign-in-routes.ts';

const databaseUnavailable = { 503: 'The database is unavailable.' };
const stateUnavailable = { 503: 'The database or Redis is unavailable.' };

/** By the name of the handler, which is the `operationId` as well. */
export const routes = {
  getLiveness: {
    method: 'get',
    path: '/health/live',
    role: 'none',
    summary: 'Liveness check',
    response: { description: 'The process is running.', schema: liveness },
  },
  getReadiness: {
    method: 'get',
    path: '/health/ready',
    role: 'none',
    summary: 'Readiness check; does not check the bank',
    response: { description: 'The instance accepts requests.', schema: readiness },
    errors: { 503: 'The instance does not accept requests; the body states the reasons.' },
  },
  getMetrics: {
    method: 'get',
    path: '/metrics',
    role: 'none',
    summary: 'Prometheus metrics',
    response: { description: 'The metrics in the Prometheus text format.', contentType: 'text/plain' },
  },
  getOpenapi: {
    method: 'get',
    path: '/openapi.yaml',
    role: 'none',
    summary: 'This OpenAPI description',
    response: { description: 'OpenAPI 3.1.', contentType: 'application/yaml' },
  },
  ...signInRoutes,
  listAlerts: {
    method: 'get',
    path: '/api/alerts',
    role: 'read',
    summary: 'List what needs attention, on all instances',
    response: { description: 'The alerts, the most severe first.', schema: alerts },
  },
  listEnvironments: {
    method: 'get',
    path: '/api/environments',
    role: 'read',
    summary: 'List the environments and the active one',
    response: { description: 'The environments, in the order of the configuration.', schema: environments },
  },
  switchEnvironment: {
    method: 'put',
    path: '/api/environments/active',
    role: 'operate',
    summary: 'Switch the active environment',
    body: switchRequest,
    response: { description: 'Switched.', schema: switchResult },
    errors: {
      409: 'Refused: the pre-flight failed (the body contains its report), requests would be refused there or executed in another way (the body lists them), or the confirmation is missing.',
      ...databaseUnavailable,
    },
  },
  runPreflight: {
    method: 'post',
    path: '/api/environments/{name}/preflight',
    role: 'operate',
    summary: 'Run the pre-flight check of an environment, without switching',
    response: { description: 'The result of each step.', schema: preflightResult },
    errors: { 404: 'Unknown environment.' },
  },
  renameEnvironment: {
    method: 'post',
    path: '/api/environments/{name}/rename',
    role: 'operate',
    summary: 'Add a name to an environment; the former ones stay valid',
    body: identityRequests['rename environment'],
    response: { description: 'Renamed.', schema: identityChanged },
    errors: {
      404: 'No environment has or has had this name.',
      409: 'Another environment has or has had the new name.',
      ...databaseUnavailable,
    },
  },
  moveEnvironment: {
    method: 'post',
    path: '/api/environments/{name}/moved',
    role: 'operate',
    summary: 'Accept another address for the payments of an environment: the bank has moved',
    body: identityRequests['move environment'],
    response: { description: 'Accepted.', schema: identityChanged },
    errors: { 404: 'No payment was ever sent to an environment of this name.', ...databaseUnavailable },
  },
  renameTenant: {
    method: 'post',
    path: '/api/tenants/{name}/rename',
    role: 'operate',
    summary: 'Add a name to a tenant; the former ones stay valid',
    body: identityRequests['rename tenant'],
    response: { description: 'Renamed.', schema: identityChanged },
    errors: {
      404: 'No tenant has or has had this name.',
      409: 'Another tenant has or has had the new name.',
      ...databaseUnavailable,
    },
  },
  moveCredential: {
    method: 'post',
    path: '/api/clients/{name}/move-credential',
    role: 'operate',
    summary:
      'Give the key and the certificate of a client to another tenant; its payments stay with the former one',
    body: identityRequests['move credential'],
    response: { description: 'Moved.', schema: identityChanged },
    errors: { 404: 'No client of this name is configured.', ...databaseUnavailable },
  },
  streamEvents: {
    method: 'get',
    path: '/api/events',
    role: 'read',
    summary: 'Stream the data of the console as server-sent events',
    response: { description: 'A snapshot, then the changes every second.', contentType: 'text/event-stream' },
    errors: {
      503: 'The instance is stopping, or the limit of 100 event streams, or of 50 for one operator, is reached.',
    },
  },
  listInstances: {
    method: 'get',
    path: '/api/instances',
    role: 'read',
    summary: 'List the instances of the last hour: status, readiness and figures',
    response: { description: 'The instances, by name; the same from each instance.', schema: instances },
  },
  listTimeline: {
    method: 'get',
    path: '/api/timeline',
    role: 'read',
    summary: 'List what changed on any instance: circuits, switches, reloads, certificates, starts and stops',
    query: timelineQuery,
    response: {
      description: 'At most a thousand entries of the last seven days, newest first.',
      schema: timelineEntries,
    },
  },
  listDecisions: {
    method: 'get',
    path: '/api/decisions/{requestId}',
    role: 'read',
    summary: 'Show how the instances processed the requests with an X-Request-ID',
    response: { description: 'The requests with this id, newest first.', schema: decisions },
    errors: { 404: 'No instance has a record of this X-Request-ID.', ...databaseUnavailable },
  },
  searchRequests: {
    method: 'get',
    path: '/api/search',
    role: 'read',
    summary: 'Search the requests of all instances by X-Request-ID, payment, tenant, error and time',
    query: searchQuery,
    response: { description: 'The matching requests.', schema: searchResult },
    errors: databaseUnavailable,
  },
  listErrors: {
    method: 'get',
    path: '/api/errors',
    role: 'read',
    summary: 'List the most frequent errors of the last hour, of all instances',
    response: { description: 'At most a hundred errors, the most frequent first.', schema: errorCounts },
    errors: databaseUnavailable,
  },
  showHistory: {
    method: 'get',
    path: '/api/history',
    role: 'read',
    summary: 'Show the figures of all instances over a longer time, up to requests.keepFor',
    query: historyQuery,
    response: { description: 'The figures.', schema: history },
    errors: databaseUnavailable,
  },
  ...contractRoutes,
  listCircuits: {
    method: 'get',
    path: '/api/circuits',
    role: 'read',
    summary: 'List the circuits: one for each environment and lane',
    response: { description: 'The circuits.', schema: circuits },
  },
  holdCircuit: {
    method: 'put',
    path: '/api/circuits/{environment}/{lane}',
    role: 'operate',
    summary: 'Hold a circuit open or closed, or release it',
    body: holdRequest,
    response: { description: 'The circuit afterwards.', schema: circuit },
    errors: { 404: 'Unknown circuit: no such environment or lane.', ...databaseUnavailable },
  },
  listNotifications: {
    method: 'get',
    path: '/api/notifications',
    role: 'read',
    summary: 'List the subscriptions of webhooks, with their undelivered messages and dead letters',
    query: notificationsQuery,
    response: {
      description: 'The subscriptions that match: at most 1,000.',
      schema: notifications,
    },
    errors: databaseUnavailable,
  },
  summarizeNotifications: {
    method: 'get',
    path: '/api/notifications/summary',
    role: 'read',
    summary: 'Count the subscriptions of webhooks, by tenant and state',
    response: { description: 'The numbers.', schema: notificationSummary },
    errors: databaseUnavailable,
  },
  resendNotifications: {
    method: 'post',
    path: '/api/notifications',
    role: 'operate',
    summary: 'Send the dead letters of a tenant, or of all, again',
    body: resendRequest,
    response: { description: 'They are due now.', schema: resentNotifications },
    errors: { 503: 'The database is unavailable; a part of them may be due now.' },
  },
  showNotification: {
    method: 'get',
    path: '/api/notifications/{id}',
    role: 'read',
    summary: 'Show a subscription of webhooks, with its message',
    response: { description: 'The subscription.', schema: notification },
    errors: { 404: 'No subscription has this id.', ...databaseUnavailable },
  },
  changeNotification: {
    method: 'post',
    path: '/api/notifications/{id}',
    role: 'operate',
    summary: 'Send the message of a subscription again now, or end the subscription',
    body: notificationRequest,
    response: { description: 'Done.', status: 204 },
    errors: { 404: 'No subscription has this id, or it has no message to send.', ...databaseUnavailable },
  },
  listPayments: {
    method: 'get',
    path: '/api/payments',
    role: 'read',
    summary: 'List the payments, newest first, with their last transaction status',
    query: paymentsQuery,
    response: { description: 'At most 200 of the payments that match.', schema: payments },
    errors: databaseUnavailable,
  },
  showPayment: {
    method: 'get',
    path: '/api/payments/{environment}/{paymentId}',
    role: 'read',
    summary: 'Show a payment and its history: requests, statuses, what is in doubt, and what operators did',
    response: { description: 'The payment.', schema: paymentHistory },
    errors: { 404: 'No payment with this id is stored in this environment.', ...databaseUnavailable },
  },
  listInDoubt: {
    method: 'get',
    path: '/api/in-doubt',
    role: 'read',
    summary: 'List the requests in doubt: the bank may or may not have executed them',
    query: inDoubtQuery,
    response: { description: 'The requests in doubt, oldest first.', schema: inDoubt },
    errors: databaseUnavailable,
  },
  exportInDoubt: {
    method: 'get',
    path: '/api/in-doubt/export',
    role: 'read',
    summary: 'Export the requests in doubt as a file, in CSV or JSON',
    query: exportQuery,
    response: {
      description: 'The requests that match, oldest first. In CSV, no value can become a formula.',
      contentType: ['text/csv', 'application/json'],
    },
    errors: databaseUnavailable,
  },
  previewInDoubt: {
    method: 'get',
    path: '/api/in-doubt/preview',
    role: 'read',
    summary: 'Preview which requests in doubt match a filter',
    query: previewQuery,
    response: { description: 'The requests that match, oldest first.', schema: inDoubtPreview },
    errors: databaseUnavailable,
  },
  resolveSeveralInDoubt: {
    method: 'post',
    path: '/api/in-doubt',
    role: 'operate',
    summary: 'Resolve all requests in doubt that match a filter, as previewed',
    body: severalResolutionRequest,
    response: { description: 'How many were resolved.', schema: severalResolved },
    errors: {
      409: 'The matching requests have changed since the preview, or the confirmation is missing.',
      ...databaseUnavailable,
    },
  },
  resolveInDoubt: {
    method: 'post',
    path: '/api/in-doubt/{id}',
    role: 'operate',
    summary: 'Resolve a request in doubt with its outcome at the bank',
    body: resolutionRequest,
    response: { description: 'Resolved.', schema: resolution },
    errors: {
      404: 'No request in doubt has this id.',
      409: 'The bank may still execute the request (see Retry-After), the payment belongs to another tenant, or the confirmation is missing.',
      ...databaseUnavailable,
    },
  },
  listAuditRecords: {
    method: 'get',
    path: '/api/audit',
    role: 'read',
    summary: 'List the newest records of the audit log',
    response: { description: 'At most a hundred records, newest first.', schema: auditRecords },
    errors: databaseUnavailable,
  },
  verifyAuditLog: {
    method: 'get',
    path: '/api/audit/verify',
    role: 'read',
    summary: 'Verify the hash chain of the audit log',
    response: { description: 'The result, also for a broken chain.', schema: auditVerification },
    errors: databaseUnavailable,
  },
  purgeStatusCache: {
    method: 'delete',
    path: '/api/status-cache',
    role: 'operate',
    summary: 'Purge the cached status of a payment, of an environment, or all cached statuses',
    query: purgeQuery,
    response: { description: 'Purged on all instances.', status: 204 },
    errors: { 404: 'Unknown environment.', ...stateUnavailable },
  },
  showConfiguration: {
    method: 'get',
    path: '/api/config',
    role: 'read',
    summary: 'Show the effective configuration, secrets masked',
    response: {
      description:
        'The sections, with times in milliseconds. With Accept: application/yaml, a configuration file.',
      schema: configuration,
    },
  },
  reloadConfiguration: {
    method: 'post',
    path: '/api/config/reload',
    role: 'operate',
    summary: 'Make this instance, or all of them, load the configuration again, as SIGHUP does',
    body: reloadRequest,
    response: { description: 'Reloaded; with `all`, the answers of the instances.', schema: reloadReport },
    errors: {
      409: 'Not reloaded: the new configuration cannot be used (the body contains the errors). With `all`: another reload of all instances is in progress.',
      ...databaseUnavailable,
    },
  },
} as const satisfies Readonly<Record<string, Route>>;

export type RouteName = keyof typeof routes;

/** All routes, in the order of the table. */
export const routeEntries = Object.entries(routes) as readonly [RouteName, Route][]; // `entries` widens the keys to text

/** A request to a route, parsed by its schemas. */
export interface AdminCall<Name extends RouteName> {
  readonly parameters: Readonly<Record<ParameterName<(typeof routes)[Name]['path']>, string>>;
  readonly body: Parsed<Name, 'body'>;
  readonly query: Parsed<Name, 'query'>;
  /** For status, headers, and bodies other than JSON. */
  readonly response: Response;
}

/** The names in the braces of a path template. */
type ParameterName<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

type Parsed<Name extends RouteName, Part extends 'body' | 'query'> = (typeof routes)[Name] extends {
  readonly [Key in Part]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : undefined;

/** The JSON of a success; nothing where a route has no schema for it. */
type Result<Name extends RouteName> = (typeof routes)[Name]['response'] extends {
  readonly schema: infer Schema extends z.ZodType;
}
  ? z.input<Schema>
  : undefined;

/** The handlers. Each returns the JSON of a success, throws `AdminRefusal`, or uses `response` itself. */
export type AdminApi = {
  readonly [Name in RouteName]: (call: AdminCall<Name>) => Result<Name> | Promise<Result<Name>>;
};

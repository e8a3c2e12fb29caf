/** `penstock in-doubt`: lists and exports requests in doubt, and resolves one of them, or all that match a filter. */

import { z } from 'zod';
import { inDoubtCsv } from '../admin/in-doubt-export.ts';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type Options, reasonIn } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

/**
 * Selects what the arguments ask for: without any, lists the requests that match the filter; with an id, one request; with an
 * outcome, resolves what the first argument names.
 *
 * @param request  the id of a request in doubt, its `X-Request-ID`, or `all`
 * @param outcome  `happened` or `did-not-happen`
 */
export function inDoubt(
  call: AdminClient,
  options: Options,
  request?: string,
  outcome?: string,
): Promise<CommandOutput> {
  const filter = filterIn(options);
  const { environment, selection, confirm } = options;
  if (!isEmpty(filter) && request !== undefined && request !== 'all')
    throw new UsageError(
      'A filter selects from the list, or for `all`: remove it, or the id of the request.',
    );
  if (outcome === undefined) {
    if (request === 'all') throw new UsageError('Name the outcome: in-doubt all happened|did-not-happen');
    if (options.csv) return exportInDoubt(call, filter, request);
    if (request !== undefined) return showInDoubt(call, request);
    return environment === undefined ? listInDoubt(call, filter) : previewInDoubt(call, filter);
  }
  const reason = reasonIn(options);
  if (request !== 'all') return resolveInDoubt(call, { ...options, request: request ?? '', outcome, reason });
  if (environment === undefined) throw new UsageError('Name the environment: --environment NAME');
  if (selection === undefined)
    throw new UsageError(
      'List the requests with the same filter first, and name its selection: --selection SELECTION',
    );
  return resolveSeveralInDoubt(call, { ...filter, selection, outcome, reason, confirm });
}

type Filter = Readonly<Record<string, string | undefined>>;

/** The members of the filter, as the admin API names them. */
const filterIn = ({ environment, tenant, operation, olderThan, from, to, why }: Options): Filter => ({
  environment,
  tenant,
  operation,
  olderThan,
  from,
  to,
  why,
});

const isEmpty = (filter: Filter) => Object.keys(withoutUndefined(filter)).length === 0;

const inDoubtRequest = z.object({
  id: z.string(),
  xRequestId: z.string(),
  operation: z.string(),
  paymentId: z.string().nullable(),
  environment: z.string(),
  tenant: z.string(),
  since: z.string(),
  lateAnswerUntil: z.string(),
  bankAnswered: z.boolean(),
  severity: z.enum(['critical', 'warning']),
  why: z.string(),
});
const inDoubtBody = z.array(inDoubtRequest);

type InDoubtRequest = z.output<typeof inDoubtRequest>;

async function readInDoubt(call: AdminClient, filter: Filter = {}): Promise<readonly InDoubtRequest[]> {
  return parseBody(inDoubtBody, successBody(await call('GET', pathWithQuery('/in-doubt', filter))));
}

/** Several lines per request, oldest first. */
async function listInDoubt(call: AdminClient, filter: Filter): Promise<CommandOutput> {
  const requests = await readInDoubt(call, filter);
  return success(requests.length === 0 ? [noneFound(filter)] : requests.flatMap(linesOf), requests);
}

const noneFound = (filter: Filter) =>
  isEmpty(filter) ? 'No request is in doubt.' : 'No request in doubt matches.';

function linesOf(request: InDoubtRequest): readonly string[] {
  const {
    id,
    xRequestId,
    operation,
    paymentId,
    environment,
    tenant,
    since,
    lateAnswerUntil,
    bankAnswered,
    severity,
    why,
  } = request;
  return [
    id,
    `  ${operation} of ${tenant} in ${environment}, X-Request-ID ${xRequestId}, ${since}`,
    ...(paymentId === null ? [] : [`  payment ${paymentId}`]),
    `  ${why}`,
    ...(severity === 'warning' ? ['  A step of an authorisation before the last one: no payment.'] : []),
    ...(!bankAnswered && Date.parse(lateAnswerUntil) > Date.now()
      ? [`  The response of the bank may still arrive until ${lateAnswerUntil}.`]
      : []),
  ];
}

/** The requests that match the filter, or one request, in CSV. */
async function exportInDoubt(call: AdminClient, filter: Filter, request?: string): Promise<CommandOutput> {
  const requests = request === undefined ? await readInDoubt(call, filter) : await findInDoubt(call, request);
  return success(inDoubtCsv(requests), requests);
}

async function showInDoubt(call: AdminClient, request: string): Promise<CommandOutput> {
  const found = await findInDoubt(call, request);
  const explanations = new Set(found.map(({ xRequestId }) => `See also: penstock explain ${xRequestId}`));
  return success([...found.flatMap(linesOf), ...explanations], found);
}

/** Those with this id or `X-Request-ID`; several tenants may use the same. @throws CommandError if there is none */
async function findInDoubt(call: AdminClient, request: string): Promise<readonly InDoubtRequest[]> {
  const isNamed = ({ id, xRequestId }: InDoubtRequest) =>
    id === request || xRequestId.toLowerCase() === request.toLowerCase();
  const found = (await readInDoubt(call)).filter(isNamed);
  if (found.length > 0) return found;
  throw new CommandError(exitCodes.refused, 'No request in doubt has this id or X-Request-ID.');
}

const previewBody = z.object({ selection: z.string(), requests: inDoubtBody });

/** The requests that match a filter, and how to resolve exactly these. */
async function previewInDoubt(call: AdminClient, filter: Filter): Promise<CommandOutput> {
  const path = pathWithQuery('/in-doubt/preview', filter);
  const preview = parseBody(previewBody, successBody(await call('GET', path)));
  const { selection, requests } = preview;
  if (requests.length === 0) return success([noneFound(filter)], preview);
  const options = Object.entries({ ...withoutUndefined(filter), selection }).map(
    ([name, value]) => `--${kebabCase(name)} ${quoted(value)}`,
  );
  const next = `To resolve all ${requests.length}: penstock in-doubt all OUTCOME ${options.join(' ')} --reason TEXT`;
  return success([...requests.flatMap(linesOf), next], preview);
}

/** `olderThan` as an option: `older-than`. */
const kebabCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** As one word of a POSIX shell. */
const quoted = (text: string) => (/^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const severalBody = z.object({ resolved: z.number(), early: z.number(), gone: z.number() });

/** The exit code is 1 if requests stay in doubt. */
async function resolveSeveralInDoubt(call: AdminClient, request: Filter): Promise<CommandOutput> {
  const response = await call('POST', '/in-doubt', withoutUndefined(request));
  const result = parseBody(severalBody, successBody(response));
  const { resolved, early, gone } = result;
  const lines = [`Resolved: ${resolved}. Resolved by others since the list: ${gone}.`];
  if (early === 0) return success(lines, result);
  lines.push(`Still in doubt: ${early}, because the bank may still execute them. Try again later.`);
  return { lines, data: result, exitCode: exitCodes.refused };
}

const withoutUndefined = (options: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(options).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );

interface ResolveOptions {
  readonly request: string;
  readonly outcome: string;
  /** The bank's id of the payment, if the bank created one. */
  readonly payment?: string | undefined;
  readonly reason: string;
  /** The name of the environment; required for `did-not-happen` in production. */
  readonly confirm?: string | undefined;
}

/** Records what the bank says about a request in doubt. */
async function resolveInDoubt(
  call: AdminClient,
  { request, outcome, payment, reason, confirm }: ResolveOptions,
): Promise<CommandOutput> {
  const found = await findInDoubt(call, request);
  const [{ id = request, paymentId = null } = {}, another] = found;
  if (another) {
    const lines = found.flatMap(linesOf);
    throw new CommandError(
      exitCodes.refused,
      'Several requests in doubt have this X-Request-ID: name one by its id.',
      {
        lines,
        data: { requests: found },
      },
    );
  }
  const body = withoutUndefined({ outcome, reason, paymentId: payment, confirm });
  const data = successBody(await call('POST', `/in-doubt/${encodeURIComponent(id)}`, body));
  return success([outcomeText(outcome, payment ?? paymentId)], data);
}

function outcomeText(outcome: string, paymentId: string | null): string {
  if (outcome !== 'happened')
    return 'Resolved: did not happen. The gateway sends a repeat with the same X-Request-ID to the bank.';
  const named = paymentId === null ? 'without a paymentId, which is not known' : 'with the paymentId';
  return `Resolved: happened. A repeat gets 409 ${named}.`;
}

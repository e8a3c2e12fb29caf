/** `penstock payments` lists payments; `penstock payment ID` shows one, with its history. */

import { z } from 'zod';
import { paymentHistory, payments as paymentsBody } from '../admin/payment-schemas.ts';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { CommandError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

type Payment = z.output<typeof paymentsBody>['payments'][number];
type PaymentHistory = z.output<typeof paymentHistory>;

/** One line for each payment, newest first. */
export async function listPayments(
  call: AdminClient,
  { environment, tenant, product, status, outcome, from, to, cursor }: Options,
): Promise<CommandOutput> {
  const query = { environment, tenant, product, status, outcome, from, to, cursor };
  const body = parseBody(paymentsBody, successBody(await call('GET', pathWithQuery('/payments', query))));
  const lines = body.payments.map(lineOf);
  if (lines.length === 0) lines.push('No payment was found.');
  if (body.cursor !== null) lines.push(`There may be more: --cursor ${body.cursor}`);
  if (body.initiationsInDoubt > 0)
    lines.push(
      `Initiations in doubt, whose payments have no id yet: ${body.initiationsInDoubt}. See: penstock in-doubt --operation initiatePayment`,
    );
  return success(lines, body);
}

/** `2026-01-31T12:00:00.000Z  executed ACSC  payments/sepa-credit-transfers of merchants in sandbox  8f2c1d` */
function lineOf({ createdAt, outcome, status, product, tenant, environment, paymentId }: Payment): string {
  const state = status === null ? outcome : `${outcome} ${status}`;
  return `${createdAt}  ${state}  ${product ?? 'unknown product'} of ${tenant} in ${environment}  ${paymentId}`;
}

/** The payment, and a line for each entry of its history. Two banks may give the same id to two payments: then both. */
export async function showPayment(
  call: AdminClient,
  paymentId: string,
  { environment }: Options,
): Promise<CommandOutput> {
  const names = environment === undefined ? await environmentNames(call) : [environment];
  const found: PaymentHistory[] = [];
  for (const name of names) {
    const response = await call(
      'GET',
      `/payments/${encodeURIComponent(name)}/${encodeURIComponent(paymentId)}`,
    );
    if (response.status !== 404) found.push(parseBody(paymentHistory, successBody(response)));
  }
  if (found.length > 0) return success(found.flatMap(historyLines), found);
  throw new CommandError(
    exitCodes.refused,
    environment === undefined
      ? 'No payment with this id is stored in a configured environment. If its environment was removed, name it: --environment NAME'
      : 'No payment with this id is stored in this environment.',
  );
}

const environmentsBody = z.object({ environments: z.array(z.object({ name: z.string() })) });

async function environmentNames(call: AdminClient): Promise<readonly string[]> {
  const { environments } = parseBody(environmentsBody, successBody(await call('GET', '/environments')));
  return environments.map(({ name }) => name);
}

const historyLines = ({ payment, history, complete }: PaymentHistory): readonly string[] => [
  lineOf(payment),
  ...history.map(entryLine),
  ...(complete
    ? []
    : [
        '  Requests or statuses may be missing: records are kept for requests.keepFor, and 200 of each are shown; penstock search --payment lists more requests.',
      ]),
];

/** `  2026-01-31T12:00:00.000Z  cancellation: refused-by-bank 405 SERVICE_INVALID  by checkout  X-Request-ID <id>` */
function entryLine(entry: PaymentHistory['history'][number]): string {
  const { at, what, operation, outcome, status, error, bankError, text, who, xRequestId } = entry;
  const result = [outcome, status, error, bankError].filter((part) => part !== null).join(' ') || operation;
  const parts = [
    `${what}: ${result}`,
    text,
    who && `by ${who}`,
    xRequestId && `X-Request-ID ${xRequestId}`,
  ].filter((part) => part);
  return `  ${at}  ${parts.join('  ')}`;
}

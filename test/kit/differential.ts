/** Differential test: the same calls to two equal banks, to one directly and to the other through a gateway. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { isStatusTag } from '../../src/request/status-tag.ts';
import type { BankOptions, SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type BankClock, createBankClock } from '../../src/simulated-bank/clock.ts';
import { type Call, call, pairs, type Reply } from './call.ts';
import { type Field, forwardedFields, valuesOf } from './fields.ts';
import { publicUrl, type Sections, startBank, startGateway } from './gateway.ts';

export interface Differential {
  /** The bank behind the gateway. */
  readonly bank: SimulatedBank;
  readonly directBank: SimulatedBank;
  /** The clock of both banks; stands at noon until the test advances it. */
  readonly clock: BankClock;
  readonly gatewayUrl: string;
  /**
   * Makes the same call on both sides, and asserts that the gateway changed nothing but the URLs of the bank's API.
   * `path` is evaluated for each bank, because their authorisations have different ids.
   *
   * @returns the response that came through the gateway
   */
  send(call: Omit<Call, 'path'> & { readonly path: (bank: SimulatedBank) => string }): Promise<Reply>;
}

/** Starts both banks and the gateway, until the test ends. */
export async function startDifferential(
  t: TestContext,
  options: BankOptions = {},
  standardVersion = '1.3.11',
  sections: Sections = {},
): Promise<Differential> {
  const noon = Date.parse('2026-01-01T12:00:00Z');
  const clock = createBankClock(() => noon);
  const bank = await startBank(t, { ...options, clock });
  const directBank = await startBank(t, { ...options, clock });
  const sandbox = { baseUrl: bank.baseUrl, standardVersion };
  const { url } = await startGateway(t, { environments: { sandbox }, ...sections });

  return {
    bank,
    directBank,
    clock,
    gatewayUrl: url,
    send: async ({ path, ...message }) => {
      const headers = [['X-Request-ID', randomUUID()] as const, ...(message.headers ?? [])];
      const direct = await call(new URL(directBank.baseUrl).origin, {
        ...message,
        headers,
        path: path(directBank),
      });
      const through = await call(url, { ...message, headers, path: path(bank) });
      assertSameRequest(bank, directBank);
      assertSameResponse({ through, bank }, { direct, directBank });
      const isStatus = path(bank).endsWith('/status');
      assert.equal(through.header('Cache-Status'), isStatus ? 'penstock; fwd=miss' : undefined);
      return through;
    },
  };
}

function assertSameRequest(bank: SimulatedBank, directBank: SimulatedBank): void {
  const [throughGateway, direct] = [bank.requests.at(-1), directBank.requests.at(-1)];
  assert.equal(bank.requests.length, directBank.requests.length);
  assert.equal(throughGateway?.method, direct?.method);
  assert.equal(throughGateway?.operation, direct?.operation);
  assert.equal(maskAuthorisationIds(throughGateway?.url), maskAuthorisationIds(direct?.url));
  assert.deepEqual(throughGateway?.body, direct?.body);
  assert.deepEqual(
    forwardedFields(pairs(throughGateway?.rawHeaders ?? [])),
    forwardedFields(pairs(direct?.rawHeaders ?? [])),
  );
  assert.deepEqual(valuesOf(pairs(throughGateway?.rawHeaders ?? []), 'host'), [new URL(bank.baseUrl).host]);
}

interface GatewayResponse {
  readonly through: Reply;
  readonly bank: SimulatedBank;
}
interface DirectResponse {
  readonly direct: Reply;
  readonly directBank: SimulatedBank;
}

function assertSameResponse(
  { through, bank }: GatewayResponse,
  { direct, directBank }: DirectResponse,
): void {
  const expected = (text: string) =>
    maskAuthorisationIds(text.replaceAll(`${directBank.baseUrl}/`, `${publicUrl}/`));
  assert.equal(through.status, direct.status);
  assert.equal(
    maskAuthorisationIds(through.body.toString('latin1')),
    expected(direct.body.toString('latin1')),
  );
  const isTag = ([name, value]: Field) => name === 'ETag' && isStatusTag(value);
  assert.deepEqual(
    forwardedFields(through.fields.filter((field) => !isTag(field))).map(([name, value]) => [
      name,
      maskAuthorisationIds(value),
    ]),
    forwardedFields(direct.fields).map(([name, value]) => [name, expected(value)]),
  );
  assert.ok(!through.text.includes(bank.baseUrl), 'the response contains no URL of the bank');
  assert.equal(through.header('Penstock-Environment'), 'sandbox');
  assert.equal(through.header('Cache-Control'), direct.header('Cache-Control') ?? 'no-store');
}

/** Authorisation ids are random in each bank. */
const maskAuthorisationIds = (text = '') => text.replaceAll(/sca-[0-9a-f]{12}/g, 'sca-id');

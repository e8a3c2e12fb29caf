/** Two banks that differ in their port alone: one is called directly, the other through a gateway. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { BankOptions, SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Clock, createClock } from '../../src/simulated-bank/clock.ts';
import { type Call, call, pairs, type Reply } from './call.ts';
import { carried, valuesOf } from './fields.ts';
import { publicUrl, type Sections, startBank, startGateway } from './gateway.ts';

export interface Differential {
  /** The one behind the gateway. */
  readonly bank: SimulatedBank;
  /** The one that is called directly. */
  readonly directBank: SimulatedBank;
  /** Stands still at noon for both, until it is advanced. */
  readonly clock: Clock;
  readonly gatewayUrl: string;
  /**
   * Makes the same call on both sides and proves that the gateway changed nothing but what it must: the
   * addresses of the bank's API. `path` is made for each bank, for authorisations have ids of their own.
   *
   * @returns the answer that came through the gateway
   */
  send(call: Omit<Call, 'path'> & { readonly path: (bank: SimulatedBank) => string }): Promise<Reply>;
}

/** Both banks and the gateway, started; closed when the test ends. */
export async function startDifferential(
  t: TestContext,
  options: BankOptions = {},
  standardVersion = '1.3.11',
  sections: Sections = {},
): Promise<Differential> {
  const noon = Date.parse('2026-01-01T12:00:00Z');
  const clock = createClock(() => noon);
  const bank = await startBank(t, { ...options, clock });
  const other = await startBank(t, { ...options, clock });
  const sandbox = { baseUrl: bank.baseUrl, standardVersion };
  const { url } = await startGateway(t, { environments: { sandbox }, ...sections });

  return {
    bank,
    directBank: other,
    clock,
    gatewayUrl: url,
    send: async ({ path, ...message }) => {
      const headers = [['X-Request-ID', randomUUID()] as const, ...(message.headers ?? [])];
      const direct = await call(new URL(other.baseUrl).origin, { ...message, headers, path: path(other) });
      const through = await call(url, { ...message, headers, path: path(bank) });
      assertSameRequest(bank, other);
      assertSameAnswer({ through, bank }, { direct, other });
      const isStatus = path(bank).endsWith('/status');
      assert.equal(through.header('Cache-Status'), isStatus ? 'penstock; fwd=miss' : undefined);
      return through;
    },
  };
}

function assertSameRequest(bank: SimulatedBank, other: SimulatedBank): void {
  const [came, sent] = [bank.requests.at(-1), other.requests.at(-1)];
  assert.equal(bank.requests.length, other.requests.length);
  assert.equal(came?.method, sent?.method);
  assert.equal(came?.operation, sent?.operation);
  assert.equal(maskAuthorisationIds(came?.url), maskAuthorisationIds(sent?.url));
  assert.deepEqual(came?.body, sent?.body);
  assert.deepEqual(carried(pairs(came?.rawHeaders ?? [])), carried(pairs(sent?.rawHeaders ?? [])));
  assert.deepEqual(valuesOf(pairs(came?.rawHeaders ?? []), 'host'), [new URL(bank.baseUrl).host]);
}

interface Answers {
  readonly through: Reply;
  readonly bank: SimulatedBank;
}
interface DirectAnswers {
  readonly direct: Reply;
  readonly other: SimulatedBank;
}

function assertSameAnswer({ through, bank }: Answers, { direct, other }: DirectAnswers): void {
  const expected = (text: string) =>
    maskAuthorisationIds(text.replaceAll(`${other.baseUrl}/`, `${publicUrl}/`));
  assert.equal(through.status, direct.status);
  assert.equal(
    maskAuthorisationIds(through.body.toString('latin1')),
    expected(direct.body.toString('latin1')),
  );
  assert.deepEqual(
    carried(through.fields).map(([name, value]) => [name, maskAuthorisationIds(value)]),
    carried(direct.fields).map(([name, value]) => [name, expected(value)]),
  );
  assert.ok(!through.text.includes(bank.baseUrl), 'no address of the bank may reach the TPP');
  assert.equal(through.header('Penstock-Environment'), 'sandbox');
  assert.equal(through.header('Cache-Control'), direct.header('Cache-Control') ?? 'no-store');
}

/** Each bank draws its authorisations' ids. */
const maskAuthorisationIds = (text = '') => text.replaceAll(/sca-[0-9a-f]{12}/g, 'sca-id');

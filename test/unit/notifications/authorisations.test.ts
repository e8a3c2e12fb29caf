import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Authorisation,
  isRunning,
  startedAuthorisationIn,
  withAuthorisationReads,
  withStarted,
} from '../../../src/notifications/authorisations.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import type { PisResponse } from '../../../src/request/messages.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});
const payments = '/berlingroup/v1/payments/sepa-credit-transfers';

function startedBy(method: string, path: string, json: unknown) {
  const matched = match(method, payments + path);
  assert.ok(matched.kind === 'operation');
  const body = Buffer.from(JSON.stringify(json));
  const response: PisResponse = {
    status: 201,
    headers: [],
    body,
    servedFrom: 'bank',
    environment: 'sandbox',
  };
  return startedAuthorisationIn(matched.operation, response);
}

const link = (href: string) => ({ href });

describe('the authorisation that a response has started', () => {
  test('is named by the response to its start', async () => {
    const json = { scaStatus: 'received', authorisationId: '123auth456', _links: {} };
    assert.deepEqual(await startedBy('POST', '/1/cancellation-authorisations', json), {
      type: 'cancellation-authorisations',
      id: '123auth456',
      scaStatus: 'received',
    });
  });

  test('is named by the link to its status, if the bank has started it with the payment', async () => {
    const scaStatus = link('https://bank.example/psd2/v1/payments/sepa-credit-transfers/1/authorisations/a');
    assert.deepEqual(
      await startedBy('POST', '', { paymentId: '1', scaStatus: 'started', _links: { scaStatus } }),
      {
        type: 'authorisations',
        id: 'a',
        scaStatus: 'started',
      },
    );
  });

  test('has no id if only the list can name it', async () => {
    for (const _links of [
      { scaRedirect: link('https://bank.example/authorise/1') },
      { scaOAuth: link('https://bank.example/oauth') },
      { scaStatus: link('/v1/payments/authorisations/a') },
      { scaStatus: link('/v1/payments/2/authorisations/a') },
      { scaStatus: link('/v1/payments/1/authorisations/a b') },
    ])
      assert.deepEqual(await startedBy('POST', '', { paymentId: '1', _links }), { type: 'authorisations' });
    const implicit = { _links: { scaRedirect: link('https://bank.example/cancel/1') } };
    assert.deepEqual(await startedBy('DELETE', '/1', implicit), { type: 'cancellation-authorisations' });
  });

  test('is none if the TPP must start it, or the response shows none', async () => {
    const explicit = { startAuthorisation: link('/v1/payments/1/authorisations'), scaRedirect: link('/1') };
    for (const json of [{ paymentId: '1', _links: explicit }, { paymentId: '1' }, { _links: 1 }, null, 1])
      assert.equal(await startedBy('POST', '', json), undefined);
  });
});

describe('the authorisations of a payment', () => {
  const type = 'authorisations';
  const read = (
    id: string | undefined,
    result: Parameters<typeof withAuthorisationReads>[1][number]['result'],
  ) => [{ type, ...(id !== undefined && { id }), result }] as const;

  test('run until their status is final', () => {
    const withStatus = (scaStatus?: string): Authorisation => ({
      type,
      id: 'a',
      since: 0,
      ...(scaStatus && { scaStatus }),
    });
    assert.ok(
      [undefined, 'received', 'unconfirmed', 'other'].every((status) => isRunning(withStatus(status))),
    );
    assert.ok(!['finalised', 'failed', 'exempted'].some((status) => isRunning(withStatus(status))));
  });

  test('are stored once each, the newest eight of them, and not if they have ended already', () => {
    let all: readonly Authorisation[] = [];
    for (const id of ['a', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'])
      all = withStarted(all, { type, id }, 1);
    assert.equal(all.map(({ id }) => id).join(''), 'bcdefghi');
    assert.deepEqual(withStarted([], { type, id: 'a', scaStatus: 'exempted' }, 1), []);
  });

  test('get their ids from the list, with what the response to the initiation has shown', () => {
    const started = withStarted([], { type, scaStatus: 'received' }, 1);
    assert.deepEqual(
      withAuthorisationReads(started, read(undefined, { kind: 'listed', ids: [] }), 2),
      started,
    );
    assert.deepEqual(withAuthorisationReads(started, read(undefined, { kind: 'listed', ids: ['a'] }), 2), [
      { type, id: 'a', scaStatus: 'received', reported: 'received', since: 2 },
    ]);
  });
});

/** A gateway with two environments, sandbox and production, and clients of two tenants. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf, type Reply } from './call.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from './gateway.ts';
import { initiation } from './request.ts';

/** `till` belongs to the tenant of `shop`, but may use only the sandbox; `rival` belongs to another tenant. */
export type ClientName = 'shop' | 'till' | 'rival';

export interface TwoEnvironments {
  readonly sandbox: SimulatedBank;
  readonly production: SimulatedBank;
  readonly gateway: GatewayUnderTest;
  /** Sends a call as one of the clients. */
  send(client: ClientName, call: Call): Promise<Reply>;
  /** Initiates a payment. @returns its id */
  pay(client: ClientName, environment?: string): Promise<string>;
  /** How many calls each bank received, without preflight checks. */
  callCounts(): readonly [sandbox: number, production: number];
}

/** Starts two banks and the gateway, until the test ends; the sandbox is active. */
export async function startTwoEnvironments(
  t: TestContext,
  sections: Sections = {},
): Promise<TwoEnvironments> {
  const sandbox = await startBank(t, { name: 'sandbox' });
  const production = await startBank(t, { name: 'production', basePath: '/psd2', links: 'relative' });
  const gateway = await startGateway(t, {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl, standardVersion: '1.3.11' },
      production: { baseUrl: production.baseUrl, standardVersion: '1.3.6' },
    },
    clients: clientSettings(),
    ...sections,
  });

  const send = (client: ClientName, { headers = [], ...rest }: Call) =>
    call(gateway.url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf(client)]] });

  return {
    sandbox,
    production,
    gateway,
    send,
    async pay(client, environment) {
      const reply = await send(
        client,
        environment === undefined ? initiation : withEnvironmentHeader(environment, initiation),
      );
      assert.equal(reply.status, 201, reply.text);
      return String(jsonOf(reply).paymentId);
    },
    callCounts: () => [callsOf(sandbox), callsOf(production)],
  };
}

/** The setting `clients`. */
export const clientSettings = () => [
  { name: 'shop', tenant: 'shop', apiKeySha256: sha256(apiKeyOf('shop')) },
  { name: 'till', tenant: 'shop', apiKeySha256: sha256(apiKeyOf('till')), environments: ['sandbox'] },
  { name: 'rival', tenant: 'rival', apiKeySha256: sha256(apiKeyOf('rival')) },
];

/** The call with the header `Penstock-Environment`. */
export const withEnvironmentHeader = (environment: string, { headers = [], ...rest }: Call): Call => ({
  ...rest,
  headers: [...headers, ['Penstock-Environment', environment]],
});

export const apiKeyOf = (client: ClientName) => `key of ${client}`;

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const callsOf = ({ requests }: SimulatedBank) =>
  requests.filter(({ operation }) => operation !== undefined).length;

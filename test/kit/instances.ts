/** Two instances of one installation: two gateways of one configuration, on one Redis. */

import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { type GatewayUnderTest, type Sections, startGateway } from './gateway.ts';

export type Instances = readonly [GatewayUnderTest, GatewayUnderTest];

/** Both started; closed when the test ends. @param baseUrl where the bank is, as the environment `sandbox` */
export async function startInstances(
  t: TestContext,
  { baseUrl }: { readonly baseUrl: string },
  redisUrl: string,
  sections: Sections = {},
): Promise<Instances> {
  const shared = {
    environments: { active: 'sandbox', sandbox: { baseUrl, standardVersion: '1.3.11' } },
    state: { redis: redisUrl, prefix: `test-${randomUUID()}:` },
    ...sections,
  };
  return [await startGateway(t, shared), await startGateway(t, shared)];
}

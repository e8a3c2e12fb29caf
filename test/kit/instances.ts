/** Starts two gateways in this process, with one configuration, one PostgreSQL database and one Redis. */

import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { newMigratedPostgres } from './database.ts';
import { type GatewayUnderTest, type Sections, startGateway } from './gateway.ts';
import { redisStateFactory } from './redis.ts';

export type Instances = readonly [GatewayUnderTest, GatewayUnderTest];

/** Both are closed when the test ends. @param baseUrl the bank's, as the environment `sandbox` */
export async function startInstances(
  t: TestContext,
  { baseUrl }: { readonly baseUrl: string },
  redisUrl: string,
  sections: Sections = {},
  prefix = `test-${randomUUID()}:`,
): Promise<Instances> {
  const shared = {
    environments: { active: 'sandbox', sandbox: { baseUrl, standardVersion: '1.3.11' } },
    ...sections,
    state: {
      ...{ postgres: await newMigratedPostgres(), redis: redisUrl, prefix },
      ...(sections.state as object | undefined), // as in the YAML file
    },
  };
  const createState = redisStateFactory(redisUrl, prefix);
  return [await startGateway(t, shared, createState()), await startGateway(t, shared, createState())];
}

/**
 * A gateway inside a program of your own. docs/operations/library.md explains it.
 *
 *   npm install @penstock-gateway/penstock
 *   npx penstock bank &
 *   node gateway.ts
 */

import { ConfigurationError, createGateway, type GatewaySettings } from '@penstock-gateway/penstock';

// As in the YAML file, with the same units. Environment variables override it, and contain the secrets: with
// PENSTOCK_STATE_POSTGRES=postgres://penstock@127.0.0.1/penstock (after penstock migrate), a restart loses nothing.
const config: GatewaySettings = {
  listen: { port: 8080 },
  admin: { port: 9090 },
  environments: {
    active: 'sandbox',
    sandbox: { baseUrl: 'http://127.0.0.1:9101', standardVersion: '1.3.11' },
  },
  deadlines: { write: '20s' },
};

try {
  const gateway = createGateway({ config, logTo: process.stderr });
  const { tppPort, adminPort, generatedToken } = await gateway.start();
  console.log(`The public API is on port ${tppPort}, the console on port ${adminPort}.`);
  if (generatedToken) console.log(`Token of the operator "admin": ${generatedToken}`);

  process.once('SIGTERM', async () => {
    gateway.drain(); // from now on, /health/ready is 503: wait here until your load balancer has noticed
    await gateway.stop();
    console.log('Stopped.');
  });
} catch (error) {
  if (!(error instanceof ConfigurationError)) throw error;
  for (const line of error.errors) console.error(line);
  process.exitCode = 78;
}

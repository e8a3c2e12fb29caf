/**
 * `penstock demo`: two simulated banks, the gateway in front of them, and a TPP that receives webhooks; `--tour` plays a scripted tour
 * and exits.
 */

import { hash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCredentialsReader } from '../admin/operators.ts';
import { loadConfig } from '../config/load.ts';
import { assembleGateway } from '../gateway.ts';
import type { SimulatedBank } from '../simulated-bank/bank.ts';
import { createSimulatedBank } from '../simulated-bank/server.ts';
import { playTour } from '../simulated-bank/tour.ts';
import { startTraffic } from '../simulated-bank/traffic.ts';
import {
  createWebhookReceiver,
  failingPath,
  type WebhookReceiver,
} from '../simulated-bank/webhook-receiver.ts';
import { createLog } from '../telemetry/log.ts';
import { standardOutput } from '../telemetry/standard-output.ts';
import { isPort, listenError, payerWithPage } from './bank.ts';
import type { Options } from './command.ts';
import { UsageError } from './command-error.ts';

const root = join(import.meta.dirname, '../..');

/** Not secrets: the demo's listeners are on loopback only. */
const demoToken = 'demo';
const demoKey = 'demo';
const marketKey = 'market';

interface Ports {
  readonly tpp: number;
  readonly admin: number;
  readonly sandbox: number;
  readonly production: number;
  readonly webhooks: number;
}

const defaultPorts: Ports = { tpp: 8080, admin: 9090, sandbox: 9101, production: 9102, webhooks: 9103 };

/** @throws CommandError if an option is invalid, or if a port is in use */
export async function runDemo({ tour, port, traffic = false }: Options): Promise<undefined> {
  if (tour && (port !== undefined || traffic))
    throw new UsageError('--tour uses free ports and ends by itself: remove --port and --traffic');
  const ports = port === undefined ? defaultPorts : portsFrom(port);
  const sandbox = createSimulatedBank({ name: 'sandbox', ...payerWithPage });
  const production = createSimulatedBank({
    name: 'production',
    basePath: '/psd2',
    links: 'relative',
    ...payerWithPage,
  });
  await (tour ? showTour([sandbox, production]) : serveDemo([sandbox, production], ports, traffic));
}

/** @throws UsageError unless the port and the next four exist */
function portsFrom(first: string): Ports {
  const port = Number(first);
  if (!isPort(first) || port < 1 || port > 65_531)
    throw new UsageError('--port must be a number from 1 to 65531: the demo takes it and the next four');
  return { tpp: port, admin: port + 1, sandbox: port + 2, production: port + 3, webhooks: port + 4 };
}

type Banks = readonly [sandbox: SimulatedBank, production: SimulatedBank];

/** Runs until it is stopped. */
async function serveDemo(banks: Banks, ports: Ports, withTraffic: boolean): Promise<void> {
  const receiver = createWebhookReceiver({
    onWebhook: ({ body }) => {
      if (!withTraffic) console.log(`webhook received by the TPP, signature valid: ${body}`);
    },
    onRefused: (why) => console.log(`webhook refused by the TPP: ${why}`),
  });
  const { config, gateway, webhookUrl } = await startDemo(banks, receiver, ports, withTraffic).catch(
    async (cause: unknown) => {
      await Promise.all([...banks, receiver].map((part) => part.stop()));
      throw listenError(
        cause,
        `the demo needs the ports ${Object.values(ports).join(', ')}: stop the program that uses the port (another demo?), or name the first of five free ports with --port, such as --port 18080`,
      );
    },
  );
  const adminUrl = `http://${config.admin.host}:${config.admin.port}`;
  const url = config.listen.publicUrl;
  const [bank] = banks;
  const tpps = [
    { apiKey: demoKey, webhookUrl },
    { apiKey: marketKey, webhookUrl: failingUrl(webhookUrl) },
  ];
  const traffic = withTraffic ? startTraffic({ gateway: url, tpps, bank }) : undefined;
  const stop = async () => {
    await traffic?.stop();
    await Promise.all([gateway, ...banks, receiver].map((part) => part.stop()));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
  console.log(withTraffic ? trafficSteps(adminUrl) : nextSteps(url, adminUrl, webhookUrl, ports));
}

async function startDemo(
  [sandbox, production]: Banks,
  receiver: WebhookReceiver,
  ports: Ports,
  withTraffic: boolean,
) {
  const [webhookUrl] = await Promise.all([
    receiver.start(ports.webhooks),
    sandbox.start(ports.sandbox),
    production.start(ports.production),
  ]);
  const overrides = {
    PENSTOCK_LISTEN_PORT: String(ports.tpp),
    PENSTOCK_ADMIN_PORT: String(ports.admin),
    PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: sandbox.baseUrl,
    PENSTOCK_ENVIRONMENTS_PRODUCTION_BASE_URL: production.baseUrl,
    PENSTOCK_LOG_FORMAT: 'text',
    ...(withTraffic && { PENSTOCK_LOG_LEVEL: 'error' }),
  };
  const demo = demoGateway(receiver, webhookUrl, overrides, withTraffic);
  await demo.gateway.start();
  return { ...demo, webhookUrl };
}

/** Runs on free ports, so that it never collides with a running demo. */
async function showTour(banks: Banks): Promise<void> {
  console.log('Starting two simulated banks and the gateway…');
  const receiver = createWebhookReceiver();
  const [sandbox, production] = banks;
  const [webhookUrl] = await Promise.all([receiver.start(0), sandbox.start(), production.start()]);
  const { gateway } = demoGateway(receiver, webhookUrl, {
    PENSTOCK_LISTEN_PORT: '0',
    PENSTOCK_ADMIN_PORT: '0',
    PENSTOCK_LOG_LEVEL: 'silent',
    PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: sandbox.baseUrl,
    PENSTOCK_ENVIRONMENTS_PRODUCTION_BASE_URL: production.baseUrl,
    PENSTOCK_LISTEN_PUBLIC_URL: 'http://127.0.0.1:8080',
  });
  const { tppPort } = await gateway.start();
  try {
    const tpp = { apiKey: demoKey, webhookUrl, receiver };
    await playTour(`http://127.0.0.1:${tppPort}`, banks, tpp);
  } finally {
    await Promise.all([gateway, ...banks, receiver].map((part) => part.stop()));
  }
}

/** Where the second TPP of the traffic wants its webhooks. */
const failingUrl = (webhookUrl: string) => new URL(failingPath, webhookUrl).href;

/** The demo's client is not in the file, because its secret is another one at each start. */
function demoGateway(
  { secret }: WebhookReceiver,
  webhookUrl: string,
  overrides: Readonly<Record<string, string>>,
  withTraffic = false,
) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-demo-'));
  try {
    const secretFile = join(folder, 'shop.whsec');
    writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
    const clientOf = (name: string, key: string, url: string) => ({
      name,
      tenant: name,
      apiKeySha256: hash('sha256', key),
      notifications: { urls: [url], secretFile },
    });
    const market = clientOf('market', marketKey, failingUrl(webhookUrl));
    const clients = [clientOf('shop', demoKey, webhookUrl), ...(withTraffic ? [market] : [])];
    const variables = { ...overrides, PENSTOCK_CLIENTS: JSON.stringify(clients) };
    const loaded = loadConfig(join(root, 'config/demo.yaml'), variables);
    if (loaded.kind === 'invalid') throw new Error(loaded.errors.join('\n'));
    const { config } = loaded;
    const readCredentials = createCredentialsReader(() => {}, { PENSTOCK_ADMIN_TOKEN: demoToken });
    const output = standardOutput();
    return { config, gateway: assembleGateway(config, createLog(config.log, output), readCredentials) };
  } finally {
    rmSync(folder, { recursive: true }); // the gateway has read the secret
  }
}

/** How a user runs the command again: from a checkout, or from an installed package. */
const command = import.meta.filename.endsWith('.ts')
  ? 'npm exec penstock --'
  : `node ${join(root, 'bin/penstock.cjs')}`;

const trafficSteps = (adminUrl: string) => `
Press Ctrl-C to stop. Two TPP systems, shop and market, pay about once a second at the simulated sandbox. The webhooks of market fail,
and some payments are in doubt. Open the operator console: ${adminUrl}/ (token: ${demoToken}).

Wait a minute or two: the bank is well at first, then slow, busy and broken in turn.
`;

function nextSteps(url: string, adminUrl: string, webhookUrl: string, ports: Ports): string {
  const banks = `http://127.0.0.1:{${ports.sandbox},${ports.production}}`;
  const transfers = `${url}/berlingroup/v1/payments/sepa-credit-transfers`;
  const identification = (indent = '   ') =>
    `\\\n${indent}  -H 'X-API-Key: ${demoKey}' -H 'X-Request-ID: ${randomUUID()}'`;
  const initiation = (indent: string) => `curl -i ${transfers} ${identification(indent)} \\
${indent}  -H 'PSU-IP-Address: 192.0.2.1' -H 'Content-Type: application/json' \\
${indent}  -d '{"instructedAmount":{"currency":"EUR","amount":"123.50"},"debtorAccount":{"iban":"DE40100100103307118608"},
${indent}       "creditorName":"Merchant123","creditorAccount":{"iban":"DE02100100109307118603"}}'`;
  return `
Press Ctrl-C to stop. Penstock listens at ${url}, in front of two simulated banks: sandbox (active) and production.
The operator console is at ${adminUrl}/ (token: ${demoToken}). One TPP system may call: shop (X-API-Key: ${demoKey}).

Try these in another shell:

1. Initiate a payment.
   ${initiation('   ')}

2. Read its status. Replace PAYMENT_ID with the paymentId of the response.
   curl -i ${transfers}/PAYMENT_ID/status ${identification()}

3. Start an authorisation, approve it (or open scaRedirect in a browser), and wait for the status. This shell shows the webhooks
that the TPP receives, until the status is final after a minute.
   curl -i -X POST ${transfers}/PAYMENT_ID/authorisations ${identification()} \\
     -H 'TPP-Notification-URI: ${webhookUrl}' -H 'Content-Type: application/json' -d '{}' | tee answer.txt
   curl -s -d decision=approve "$(sed -n 's/.*"scaRedirect":{"href":"\\([^"]*\\).*/\\1/p' answer.txt)"
   curl -i ${transfers}/PAYMENT_ID/status ${identification()} \\
     -H 'Prefer: wait=20'

4. Switch new payments to production. The first payment stays in the sandbox, where it was created.
   PENSTOCK_ADMIN_TOKEN=${demoToken} ${command} environment use production --confirm production \\
     --reason 'try it' --url ${adminUrl}
   curl -i ${transfers}/PAYMENT_ID/status ${identification()}

5. Lose a response of the active bank, which can be either. The repeat gets 409, and the payment is listed as in doubt.
   curl -X PUT '${banks}/_bank/faults' \\
     -d '{"name":"reset","operation":"initiatePayment","times":1}'
   for ATTEMPT in 1 2; do
     ${initiation('     ')}
   done
   PENSTOCK_ADMIN_TOKEN=${demoToken} ${command} in-doubt --url ${adminUrl}
   curl -X DELETE '${banks}/_bank/faults'

More: ${command} demo --traffic, or --tour
`;
}

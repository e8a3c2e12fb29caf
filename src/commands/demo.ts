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
import { createWebhookReceiver, type WebhookReceiver } from '../simulated-bank/webhook-receiver.ts';
import { createLog } from '../telemetry/log.ts';
import { standardOutput } from '../telemetry/standard-output.ts';
import { listenError } from './bank.ts';
import type { Options } from './command.ts';

const root = join(import.meta.dirname, '../..');

/** Not secrets: the demo's listeners are on loopback only. */
const demoToken = 'demo';
const demoKey = 'demo';

/** @throws CommandError if a port is in use */
export async function runDemo({ tour }: Options): Promise<undefined> {
  const sandbox = createSimulatedBank({ name: 'sandbox', approvalPage: true });
  const production = createSimulatedBank({
    name: 'production',
    basePath: '/psd2',
    links: 'relative',
    approvalPage: true,
  });
  await (tour ? showTour([sandbox, production]) : serveDemo([sandbox, production]));
}

type Banks = readonly [sandbox: SimulatedBank, production: SimulatedBank];

/** Runs on the ports of `config/demo.yaml` until it is stopped. */
async function serveDemo(banks: Banks): Promise<void> {
  const receiver = createWebhookReceiver({
    onWebhook: ({ body }) => console.log(`webhook received by the TPP, signature valid: ${body}`),
    onRefused: (why) => console.log(`webhook refused by the TPP: ${why}`),
  });
  const { config, gateway, webhookUrl } = await startDemo(banks, receiver).catch(async (cause: unknown) => {
    await Promise.all([...banks, receiver].map((part) => part.stop()));
    throw listenError(
      cause,
      'the demo needs the ports 8080, 9090, 9101, 9102 and 9103: stop the program that uses the port (another demo?)',
    );
  });
  const adminUrl = `http://${config.admin.host}:${config.admin.port}`;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => Promise.all([gateway, ...banks, receiver].map((part) => part.stop())));
  console.log(nextSteps(config.listen.publicUrl, adminUrl, webhookUrl));
}

async function startDemo([sandbox, production]: Banks, receiver: WebhookReceiver) {
  const [webhookUrl] = await Promise.all([receiver.start(9103), sandbox.start(9101), production.start(9102)]);
  const demo = demoGateway(receiver, webhookUrl, { PENSTOCK_LOG_FORMAT: 'text' });
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

/** The demo's client is not in the file, because its secret is another one at each start. */
function demoGateway(
  { secret }: WebhookReceiver,
  webhookUrl: string,
  overrides: Readonly<Record<string, string>>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-demo-'));
  try {
    const secretFile = join(folder, 'shop.whsec');
    writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
    const notifications = { urls: [webhookUrl], secretFile };
    const client = { name: 'shop', apiKeySha256: hash('sha256', demoKey), notifications };
    const variables = { ...overrides, PENSTOCK_CLIENTS: JSON.stringify([client]) };
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

function nextSteps(url: string, adminUrl: string, webhookUrl: string): string {
  const transfers = `${url}/berlingroup/v1/payments/sepa-credit-transfers`;
  const identification = (indent = '   ') =>
    `\\\n${indent}  -H 'X-API-Key: ${demoKey}' -H 'X-Request-ID: ${randomUUID()}'`;
  const initiation = (indent: string) => `curl -i ${transfers} ${identification(indent)} \\
${indent}  -H 'PSU-IP-Address: 192.0.2.1' -H 'Content-Type: application/json' \\
${indent}  -d '{"instructedAmount":{"currency":"EUR","amount":"123.50"},"debtorAccount":{"iban":"DE40100100103307118608"},
${indent}       "creditorName":"Merchant123","creditorAccount":{"iban":"DE02100100109307118603"}}'`;
  return `
Penstock listens at ${url}, in front of two simulated banks: sandbox (active) and production.
The operator console is at ${adminUrl}/ (token: ${demoToken}). One TPP system may call: shop (X-API-Key: ${demoKey}).

Try these in another shell:

1. Initiate a payment. The links in the response point to Penstock, except scaRedirect, which the payer opens.

   ${initiation('   ')}

2. Read its status. Replace PAYMENT_ID with the paymentId of the response.

   curl -i ${transfers}/PAYMENT_ID/status ${identification()}

3. Start the payer's authorisation, with the URL of the TPP for webhooks, and wait until the status changes: the simulated
payer needs five seconds. This shell shows the webhooks that the TPP receives, until the status is final after a minute.

   curl -i -X POST ${transfers}/PAYMENT_ID/authorisations ${identification()} \\
     -H 'TPP-Notification-URI: ${webhookUrl}' -H 'Content-Type: application/json' -d '{}'
   curl -i ${transfers}/PAYMENT_ID/status ${identification()} \\
     -H 'Prefer: wait=20'

4. Switch new payments to production, and read the status again: the payment stays in the sandbox, where it was created.

   PENSTOCK_ADMIN_TOKEN=${demoToken} ${command} environment use production --confirm production \\
     --reason 'try it' --url ${adminUrl}
   curl -i ${transfers}/PAYMENT_ID/status ${identification()}

5. Lose a response: the active bank executes the payment, then resets the connection. The repeat gets 409, and the
payment is listed as in doubt. (Both banks get the fault, because either can be active.)

   curl -X PUT 'http://127.0.0.1:{9101,9102}/_bank/faults' \\
     -d '{"name":"reset","operation":"initiatePayment","times":1}'
   for ATTEMPT in 1 2; do
     ${initiation('     ')}
   done
   PENSTOCK_ADMIN_TOKEN=${demoToken} ${command} in-doubt --url ${adminUrl}
   curl -X DELETE 'http://127.0.0.1:{9101,9102}/_bank/faults'

Press Ctrl-C to stop. A scripted tour of a whole payment: ${command} demo --tour
`;
}

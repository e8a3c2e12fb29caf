/**
 * All commands, in one table: the parser, `--help`, the completion and docs/operations/commands.md read it.
 *
 * The functions are loaded when they are called, so that a command starts without the modules of the others.
 */

import type { IdentityAction } from '../identities/change-identities.ts';
import { type Command, type OptionName, type Options, reasonIn } from './command.ts';
import { UsageError } from './command-error.ts';
import type { CommandOutput } from './command-output.ts';

/** Options of the commands for a running gateway. */
const gatewayOptions: readonly OptionName[] = ['url', 'tokenFile', 'caFile', 'config', 'json'];

const filterOptions: readonly OptionName[] = [
  'environment',
  'tenant',
  'operation',
  'olderThan',
  'from',
  'to',
  'why',
];

const lanes = ['write', 'read', 'status'];

const circuitArguments: Command['arguments'] = [
  { syntax: '<environment>', description: 'the environment' },
  { syntax: '<lane>', description: 'the lane', choices: lanes },
];

const outcomes = ['happened', 'did-not-happen'];

export const commands: readonly Command[] = [
  {
    name: 'init',
    summary:
      'Write a configuration, an API key, a token and an encryption key; in a terminal, ask for what no option says',
    options: [
      ...(['output', 'bankLike', 'sandboxUrl', 'productionUrl', 'certificates', 'client'] as const),
      ...(['operator', 'database', 'redis', 'publicUrl', 'json'] as const),
    ],
    example: 'init --sandbox-url https://sandbox.api.bank.example/psd2 --client checkout',
    run: async (options) => (await import('./init.ts')).init(options),
  },
  {
    name: 'serve',
    summary: 'Run the gateway; SIGHUP reloads the configuration, SIGTERM stops the gateway',
    options: ['config'],
    example: 'serve --config penstock.yaml',
    run: async ({ config }) => {
      await (await import('./serve.ts')).serve(config);
      return undefined;
    },
  },
  {
    name: 'check',
    summary:
      'Validate the configuration and the files that it names; with --connect, also its database and Redis',
    options: ['strict', 'connect', 'config', 'json'],
    example: 'check --connect --config penstock.yaml',
    run: async (options) => (await import('./check.ts')).check(options),
  },
  {
    name: 'migrate',
    summary:
      'Create the tables in the database of the configuration, or change them to those of this version',
    options: ['config', 'json'],
    example: 'migrate --config penstock.yaml',
    run: async (options) => (await import('./migrate.ts')).migrate(options),
  },
  {
    name: 'config show',
    summary: 'Print the effective value and the source of every setting, as a configuration file',
    options: ['config', 'json'],
    example: 'config show --config penstock.yaml',
    run: async (options) => (await import('./config.ts')).showEffectiveConfig(options),
  },
  {
    name: 'config diff',
    summary:
      'Print what changes if another file replaces the configuration: by a reload, and after a restart',
    arguments: [{ syntax: '<file>', description: 'the other configuration file' }],
    options: ['config', 'json'],
    example: 'config diff new.yaml --config penstock.yaml',
    run: async (options, file = '') => (await import('./config.ts')).diffConfigs(options, file),
  },
  {
    name: 'reload',
    summary: 'Make a running gateway, or all instances, load the configuration file again, as SIGHUP does',
    options: ['all', 'reason', ...gatewayOptions],
    example: "reload --all --url http://192.0.2.1:9090 --reason 'new client'",
    run: async (options) => (await import('./reload.ts')).reload(await connect(options), options),
  },
  {
    name: 'health',
    summary: 'Ask a running gateway whether it is ready; needs no token',
    options: ['live', 'url', 'caFile', 'config', 'json'],
    example: 'health --url http://192.0.2.1:9090',
    run: async (options) => (await import('./health.ts')).showHealth(options),
  },
  {
    name: 'status',
    summary: 'Show whether customers can pay now, what is uncertain, and what to do next, on all instances',
    options: gatewayOptions,
    example: 'status --config penstock.yaml',
    run: async (options) => (await import('./status.ts')).showStatus(await connect(options, statusTimeoutMs)),
  },
  {
    name: 'environment',
    summary: 'Show the environments of a running gateway, and which one is active',
    options: gatewayOptions,
    example: 'environment --config penstock.yaml',
    run: async (options) => (await import('./environment.ts')).showEnvironments(await connect(options)),
  },
  {
    name: 'environment use',
    summary: 'Switch the active environment: new payments go there',
    arguments: [{ syntax: '<name>', description: 'the environment' }],
    usage: ['<name> --reason <text> [options]'],
    options: ['reason', 'confirm', 'force', 'acknowledgeDifferences', ...gatewayOptions],
    example: "environment use production --confirm production --reason 'go-live'",
    run: async (options, environment = '') => {
      const change = { ...options, environment, reason: reasonIn(options) };
      return (await import('./environment.ts')).useEnvironment(await connect(options), change);
    },
  },
  {
    name: 'environment moved',
    summary: 'Accept another address for the payments of an environment: the bank has moved',
    arguments: [{ syntax: '<name>', description: 'the environment' }],
    usage: ['<name> --to <url> --reason <text> [options]'],
    options: ['to', 'reason', ...gatewayOptions],
    example:
      "environment moved production --to https://api.bank.example/psd2 --reason 'announced by the bank'",
    run: async (options, name = '') => changeIdentities(options, 'move environment', name, options.to),
  },
  {
    name: 'environment rename',
    summary: 'Add a name to an environment; the former ones stay valid',
    arguments: [
      { syntax: '<old>', description: 'a name of the environment' },
      { syntax: '<new>', description: 'its new name' },
    ],
    usage: ['<old> <new> --reason <text> [options]'],
    options: ['reason', ...gatewayOptions],
    example: "environment rename bank-a bank-b --reason 'new name of the bank'",
    run: async (options, name = '', to = '') => changeIdentities(options, 'rename environment', name, to),
  },
  {
    name: 'tenants rename',
    summary: 'Add a name to a tenant; the former ones stay valid',
    arguments: [
      { syntax: '<old>', description: 'a name of the tenant' },
      { syntax: '<new>', description: 'its new name' },
    ],
    usage: ['<old> <new> --reason <text> [options]'],
    options: ['reason', ...gatewayOptions],
    example: "tenants rename shop store --reason 'new brand, ticket 4711'",
    run: async (options, name = '', to = '') => changeIdentities(options, 'rename tenant', name, to),
  },
  {
    name: 'tenants move-credential',
    summary:
      'Give the key and the certificate of a client to another tenant; its payments stay with the former one',
    arguments: [
      { syntax: '<client>', description: 'the client in the configuration' },
      { syntax: '<tenant>', description: 'the tenant that it works for from now on' },
    ],
    usage: ['<client> <tenant> --reason <text> [options]'],
    options: ['reason', ...gatewayOptions],
    example: "tenants move-credential checkout store --reason 'sold to another company'",
    run: async (options, name = '', to = '') => changeIdentities(options, 'move credential', name, to),
  },
  {
    name: 'contract report',
    summary: 'List the deviations of requests and answers from the standard, of all instances',
    options: ['environment', 'direction', 'level', 'days', ...gatewayOptions],
    example: 'contract report --environment sandbox --level harmful',
    run: async (options) => (await import('./contract.ts')).showReport(await connect(options), options),
  },
  {
    name: 'contract compare',
    summary: 'Show what an environment would do with the requests that another one has received',
    arguments: [
      { syntax: '<from>', description: 'the environment with the requests' },
      { syntax: '<to>', description: 'the environment that might get them' },
    ],
    options: ['days', 'strict', ...gatewayOptions],
    example: 'contract compare sandbox production --days 7',
    run: async (options, from = '', to = '') =>
      (await import('./contract.ts')).compare(await connect(options), { ...options, between: [from, to] }),
  },
  {
    name: 'circuits',
    summary: 'Show the circuits of a running gateway',
    options: gatewayOptions,
    example: 'circuits --json',
    run: async (options) => (await import('./circuits.ts')).showCircuits(await connect(options)),
  },
  {
    name: 'circuits hold',
    summary: 'Hold a circuit open or closed for some time, on all instances',
    arguments: [
      ...circuitArguments,
      {
        syntax: '<state>',
        description: 'open: send no call; closed: send every call',
        choices: ['open', 'closed'],
      },
    ],
    usage: ['<environment> <lane> <state> --reason <text> [options]'],
    options: ['reason', 'for', ...gatewayOptions],
    example: "circuits hold production write open --for 30min --reason 'the bank is in maintenance'",
    run: async (options, environment = '', lane = '', hold = '') => {
      const change = { environment, lane, hold, reason: reasonIn(options), duration: options.for };
      return (await import('./circuits.ts')).holdCircuit(await connect(options), change);
    },
  },
  {
    name: 'circuits release',
    summary: 'Release a circuit that is held, on all instances',
    arguments: circuitArguments,
    usage: ['<environment> <lane> --reason <text> [options]'],
    options: ['reason', ...gatewayOptions],
    example: "circuits release production write --reason 'the maintenance has ended'",
    run: async (options, environment = '', lane = '') => {
      const change = { environment, lane, reason: reasonIn(options) };
      return (await import('./circuits.ts')).releaseCircuit(await connect(options), change);
    },
  },
  {
    name: 'cache purge',
    summary: 'Remove cached payment statuses on all instances: of one payment, of an environment, or all',
    options: ['payment', 'environment', 'reason', ...gatewayOptions],
    example: 'cache purge --payment 8f2c1d --environment production',
    run: async (options) => (await import('./cache.ts')).purgeCache(await connect(options), options),
  },
  {
    name: 'explain',
    summary:
      'Show what the instances of a running gateway did with the requests of an X-Request-ID, step by step',
    arguments: [{ syntax: '<x-request-id>', description: 'the X-Request-ID' }],
    options: gatewayOptions,
    example: 'explain 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    run: async (options, id = '') => (await import('./explain.ts')).explain(await connect(options), id),
  },
  {
    name: 'search',
    summary: 'List the requests of all instances that match a filter, newest first',
    options: [
      ...([
        'payment',
        'tenant',
        'client',
        'operation',
        'environment',
        'product',
        'status',
        'outcome',
      ] as const),
      ...(['bankError', 'error', 'servedFrom', 'minDuration', 'from', 'to', 'limit'] as const),
      ...gatewayOptions,
    ],
    example: 'search --tenant merchants --error CIRCUIT_OPEN --from 2026-11-21T01:00:00Z',
    run: async (options) => (await import('./search.ts')).search(await connect(options), options),
  },
  {
    name: 'payments',
    summary: 'List the payments that match a filter, newest first, with their last transaction status',
    options: [
      ...(['environment', 'tenant', 'product', 'status', 'outcome', 'from', 'to', 'cursor'] as const),
      ...gatewayOptions,
    ],
    example: 'payments --tenant merchants --outcome rejected --from 2026-11-21T01:00:00Z',
    run: async (options) => (await import('./payments.ts')).listPayments(await connect(options), options),
  },
  {
    name: 'payment',
    summary: 'Show a payment and its history: requests, statuses, what is in doubt, and what operators did',
    arguments: [{ syntax: '<payment-id>', description: "the bank's id of the payment" }],
    options: ['environment', ...gatewayOptions],
    example: 'payment 8f2c1d --environment production',
    run: async (options, id = '') =>
      (await import('./payments.ts')).showPayment(await connect(options), id, options),
  },
  {
    name: 'in-doubt',
    summary: 'List the requests that the bank may or may not have executed, and record what the bank says',
    arguments: [
      { syntax: '[request]', description: 'id or X-Request-ID of a request in doubt, or all' },
      { syntax: '[outcome]', description: 'what the bank says', choices: outcomes },
    ],
    usage: [
      '[filter] [--csv] [options]',
      '<request> [options]',
      '<request> <outcome> --reason <text> [options]',
      'all <outcome> --environment <name> [filter] --selection <selection> --reason <text> [options]',
    ],
    options: ['reason', 'payment', ...filterOptions, 'selection', 'confirm', 'csv', ...gatewayOptions],
    example: "in-doubt 99391c7e-ad88-49ec-a2ad-99ddcb1f7721 did-not-happen --reason 'the bank, ticket 4711'",
    run: async (options, request, outcome) =>
      (await import('./in-doubt.ts')).inDoubt(await connect(options), options, request, outcome),
  },
  {
    name: 'notifications',
    summary:
      'List subscriptions of webhooks and their dead letters, send messages again, or end a subscription',
    arguments: [
      { syntax: '[subscription]', description: 'id of a subscription, or all' },
      {
        syntax: '[action]',
        description: 'send its message again now, or end the subscription',
        choices: ['resend', 'end'],
      },
    ],
    usage: [
      '[--state <state>] [--tenant <name>] [--payment <payment-id>] [options]',
      '<subscription> [options]',
      '<subscription> <action> --reason <text> [options]',
      'all resend [--tenant <name>] --reason <text> [options]',
    ],
    options: ['state', 'tenant', 'payment', 'reason', ...gatewayOptions],
    example: "notifications all resend --tenant merchants --reason 'the endpoint works again'",
    run: async (options, subscription, action) =>
      (await import('./notifications.ts')).notifications(
        await connect(options),
        options,
        subscription,
        action,
      ),
  },
  {
    name: 'audit list',
    summary: 'List the newest records of the audit log, at most 100',
    options: gatewayOptions,
    example: 'audit list --json',
    run: async (options) => (await import('./audit.ts')).listAudit(await connect(options)),
  },
  {
    name: 'audit verify',
    summary: 'Verify the hash chain of the audit log',
    options: gatewayOptions,
    example: 'audit verify',
    run: async (options) => (await import('./audit.ts')).verifyAudit(await connect(options)),
  },
  {
    name: 'demo',
    summary: 'Run the gateway in front of two simulated banks, and print what to try',
    options: ['port', 'traffic', 'tour'],
    example: 'demo --tour',
    run: async (options) => (await import('./demo.ts')).runDemo(options),
  },
  {
    name: 'bank',
    summary: 'Run a simulated bank, which counts the requests that it receives and fails on demand',
    options: [
      ...(['like', 'port', 'host', 'name', 'basePath', 'segment', 'links', 'publicOrigin'] as const),
      ...(['tls', 'clientCa'] as const),
    ],
    example: 'bank --port 9101 --base-path /psd2',
    run: async (options) => (await import('./bank.ts')).runBank(options),
  },
  {
    name: 'openapi',
    summary: 'Print the OpenAPI description of the payment API and of the admin API',
    options: ['json'],
    example: 'openapi > penstock-openapi.yaml',
    run: async () => (await import('./openapi.ts')).describeApis(),
  },
  {
    name: 'completion',
    summary: 'Print a script that completes commands and options in a shell',
    arguments: [{ syntax: '<shell>', description: 'the shell', choices: ['bash', 'zsh', 'fish'] }],
    example: 'completion bash > /etc/bash_completion.d/penstock',
    run: async (_options, shell = '') => (await import('./completion-scripts.ts')).completionScript(shell),
  },
  {
    name: 'complete',
    summary: 'List the candidates for the last of the words; the completion scripts call this',
    arguments: [{ syntax: '[words...]', description: 'the words after penstock, the last one incomplete' }],
    example: 'complete -- circuits h',
    isHidden: true,
    run: async (_options, ...words) => (await import('./completion.ts')).complete(commands, words),
  },
];

/** What the words are about that only begin the names of commands. */
export const groupSummaries: Readonly<Record<string, string>> = {
  audit: 'The audit log of a running gateway',
  cache: 'The status cache of a running gateway',
  config: 'The effective configuration',
  tenants: 'The names and credentials of tenants, in a running gateway or its database',
};

async function changeIdentities(
  options: Options,
  action: IdentityAction,
  name: string,
  to: string | undefined,
): Promise<CommandOutput> {
  if (to === undefined) throw new UsageError('Name the new address: --to URL');
  const change = { action, name, to, reason: reasonIn(options) };
  return (await import('./identities.ts')).changeIdentities(options, change);
}

/** @throws CommandError that says what to do, if the address or the token is not known */
const connect = async (options: Options, timeoutMs?: number) =>
  (await import('./admin-client.ts')).connectToGateway(options, timeoutMs);

/** An operator, or a check that runs every minute, waits no longer for a gateway that hangs. */
const statusTimeoutMs = 10_000;

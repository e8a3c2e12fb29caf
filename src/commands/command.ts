/** What a command is: its name, arguments, options and function. The parser, the help and the completion read this. */

import { UsageError } from './command-error.ts';
import type { CommandOutput } from './command-output.ts';

export interface Command {
  /** The words after `penstock`, such as `environment use`. */
  readonly name: string;
  /** One line, without a full stop. */
  readonly summary: string;
  readonly arguments?: readonly CommandArgument[];
  readonly options?: readonly OptionName[];
  /** What follows the name, if the arguments in order and `[options]` do not say enough. One line for each form. */
  readonly usage?: readonly string[];
  /** What follows `penstock` in the example of the help. */
  readonly example: string;
  /** Not in the help: programs call it. */
  readonly isHidden?: true;
  /** @returns what to print; nothing if the command writes its output itself */
  readonly run: (options: Options, ...words: string[]) => Promise<CommandOutput | undefined>;
}

interface CommandArgument {
  /** In the syntax of the parser: `<required>`, `[optional]`, `[several...]`. */
  readonly syntax: string;
  readonly description: string;
  readonly choices?: readonly string[];
}

export interface OptionRow {
  /** In the syntax of the parser: `--name`, or `--name <value>`. */
  readonly flags: `--${string}`;
  /** For commands without their own text. */
  readonly description: string;
  /** By the name of the command. */
  readonly descriptions?: Readonly<Record<string, string>>;
  /** For options whose value may be an empty text. */
  readonly mayBeEmpty?: true;
}

/** Every option. */
const optionRows = {
  config: {
    flags: '--config <file>',
    description: 'configuration file (default: the file named by PENSTOCK_CONFIG)',
  },
  url: {
    flags: '--url <url>',
    description:
      'admin listener of the gateway, such as http://192.0.2.1:9090 (default: admin.host and admin.port of the configuration)',
  },
  tokenFile: {
    flags: '--token-file <file>',
    description:
      "file with the operator's token (default: PENSTOCK_ADMIN_TOKEN, then admin.tokenFile of the configuration)",
  },
  caFile: {
    flags: '--ca-file <file>',
    description: 'trusted CA certificates for an https: address, in PEM format (default: those of Node)',
  },
  json: { flags: '--json', description: 'print JSON' },
  all: {
    flags: '--all',
    description: 'all instances that share the database, and not only the one that is asked',
  },
  live: { flags: '--live', description: 'ask only whether the process responds' },
  csv: { flags: '--csv', description: 'print CSV, for a spreadsheet' },
  strict: {
    flags: '--strict',
    description: 'treat warnings as errors',
    descriptions: {
      'contract compare': 'exit with 1 if a switch must acknowledge a difference, or nothing is known',
    },
  },
  connect: {
    flags: '--connect',
    description: 'also connect to PostgreSQL and Redis, without a change, and report what may lose payments',
  },
  reason: { flags: '--reason <text>', description: 'reason for the change, for the audit log' },
  confirm: {
    flags: '--confirm <name>',
    description: 'name of the environment again, as confirmation; required for production',
  },
  force: { flags: '--force', description: 'switch although the pre-flight test failed' },
  acknowledgeDifferences: {
    flags: '--acknowledge-differences',
    description: 'switch although requests would be refused there, or executed in another way',
  },
  for: { flags: '--for <duration>', description: 'how long, such as 10min; at most 24h (default: 10min)' },
  payment: { flags: '--payment <payment-id>', description: "the bank's id of the payment" },
  environment: { flags: '--environment <name>', description: 'only this environment' },
  tenant: { flags: '--tenant <name>', description: 'only this tenant' },
  operation: { flags: '--operation <name>', description: 'only this operation, such as initiatePayment' },
  product: {
    flags: '--product <product>',
    description: 'only this product, such as sepa-credit-transfers or payments/sepa-credit-transfers',
  },
  client: {
    flags: '--client <name>',
    description: 'only this client',
    descriptions: { init: 'name of the TPP system that may call the gateway' },
  },
  bankError: {
    flags: '--bank-error <code>',
    description: 'only this code of an error of the bank, such as CERTIFICATE_REVOKED',
  },
  servedFrom: {
    flags: '--served-from <source>',
    description: 'only answers from this source: bank, cache, stale-cache, shared or ledger',
  },
  minDuration: {
    flags: '--min-duration <duration>',
    description: 'only requests that took at least so long, such as 2s',
  },
  status: {
    flags: '--status <code>',
    description: 'only this status of the response',
    descriptions: { payments: 'only this last transaction status' },
  },
  outcome: {
    flags: '--outcome <outcome>',
    description: 'only this outcome: succeeded, refused-by-bank, failed, refused or in-doubt',
    descriptions: {
      payments: 'only this outcome: executed, rejected, cancelled, pending, unknown or in-doubt',
    },
  },
  cursor: { flags: '--cursor <cursor>', description: 'continue the list, as the page before said' },
  level: { flags: '--level <level>', description: 'only this level: harmful, notable or usual' },
  direction: { flags: '--direction <direction>', description: 'only request, or only response' },
  days: {
    flags: '--days <number>',
    description: 'how many days of UTC, today included (default: 30)',
    descriptions: { 'contract compare': 'how many days of UTC, today included (default: 7)' },
  },
  olderThan: {
    flags: '--older-than <duration>',
    description: 'only requests older than this, such as 10min',
  },
  from: {
    flags: '--from <time>',
    description: 'only requests or payments since this time, such as 2026-11-21T01:00:00Z',
  },
  to: {
    flags: '--to <value>',
    description: 'only requests or payments until this time',
    descriptions: { 'environment moved': 'the new baseUrl of the bank' },
  },
  error: {
    flags: '--error <code>',
    description:
      'only this error code, of the gateway or the bank, this status of an error response of the bank, or any',
  },
  state: {
    flags: '--state <state>',
    description: 'only subscriptions in this state: active, failing, undelivered or dead',
  },
  limit: { flags: '--limit <number>', description: 'how many requests at most (default: 50)' },
  why: { flags: '--why <text>', description: 'only requests whose reason contains this text' },
  selection: {
    flags: '--selection <selection>',
    description: 'the selection that the list with the same filter printed',
  },
  output: {
    flags: '--output <file>',
    description: 'file to write; it must not exist (default: penstock.yaml)',
  },
  bankLike: {
    flags: '--bank-like <bank>',
    description: 'interface of the bank: a name in config/banks, such as ing, or a file of this form',
  },
  sandboxUrl: {
    flags: '--sandbox-url <url>',
    description: "URL of the bank's sandbox, as for the setting baseUrl; this or the next one is required",
  },
  productionUrl: {
    flags: '--production-url <url>',
    description: "URL of the bank's production API",
  },
  certificates: {
    flags: '--certificates <folder>',
    description:
      'folder with the client certificates for the bank: sandbox/qwac.crt and qwac.key, production/qwac.crt and qwac.key',
  },
  operator: {
    flags: '--operator <name>',
    description: 'name of the operator for whom a token is created (default: operator)',
  },
  database: {
    flags: '--database <database>',
    description:
      'sqlite, sqlite:FILE, memory, or the URL of a PostgreSQL without a password (default: sqlite, a file beside the configuration)',
  },
  redis: { flags: '--redis <url>', description: 'URL of a Redis without a password' },
  publicUrl: {
    flags: '--public-url <url>',
    description: 'URL of the gateway in links for TPP systems (default: its own address)',
  },
  traffic: { flags: '--traffic', description: 'send payments of two tenants until it is stopped' },
  tour: { flags: '--tour', description: 'play a scripted tour on free ports, and exit' },
  like: {
    flags: '--like <file>',
    description:
      'profile of a real bank, such as examples/banks/ing.yaml: its paths, links, answers and demands',
  },
  port: {
    flags: '--port <port>',
    description: 'port to listen on; 0 takes any free one (default: 9101)',
    descriptions: {
      demo: 'first of five ports, one after the other (default: 8080 for TPP systems, 9090 for operators, 9101 to 9103)',
    },
  },
  host: { flags: '--host <address>', description: 'address to listen on (default: 127.0.0.1)' },
  name: {
    flags: '--name <name>',
    description: 'prefix of payment ids: lower-case letters, digits (default: bank)',
  },
  basePath: {
    flags: '--base-path <path>',
    description: 'path before the segment, such as /psd2 (default: none)',
    mayBeEmpty: true,
  },
  segment: {
    flags: '--segment <path>',
    description: 'path before /v1 (default: berlingroup)',
    mayBeEmpty: true,
  },
  links: {
    flags: '--links <style>',
    description:
      'links in responses: absolute, relative, relative-without-segment or relative-without-base (default: absolute)',
  },
  publicOrigin: {
    flags: '--public-origin <url>',
    description: 'origin in absolute links, if clients use another one than the bank listens on',
  },
  tls: {
    flags: '--tls',
    description:
      'listen with TLS; key and certificate are made at the start, and the settings for the gateway printed',
  },
  clientCa: {
    flags: '--client-ca <file>',
    description: 'demand a client certificate that this CA has issued, in PEM format; requires --tls',
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

export type OptionName = keyof typeof optionRows;

/** The options of a command line: text, or true for those without a value. */
export type Options = {
  readonly [Name in OptionName]?: (typeof optionRows)[Name]['flags'] extends `${string}<${string}`
    ? string
    : boolean;
};

/** The reason for a change. @throws UsageError if there is none */
export function reasonIn({ reason }: Options): string {
  if (reason !== undefined) return reason;
  throw new UsageError('Give a reason, for the audit log: --reason TEXT');
}

/** The row of an option, with its optional members. */
export const optionRow = (name: OptionName): OptionRow => optionRows[name];

/** What the option means for a command. */
export const descriptionFor = (
  { description, descriptions }: OptionRow,
  command: Pick<Command, 'name'> | undefined,
): string => descriptions?.[command?.name ?? ''] ?? description;

export const allOptionRows: readonly OptionRow[] = Object.values(optionRows);

/** `--config` of `--config <file>`. */
export const flagOf = ({ flags }: OptionRow): string => flags.replace(/ .*/, '');

/** Whether an option has a value. */
export const hasValue = ({ flags }: OptionRow): boolean => flags.includes('<');

/** The command with the longest name that these words begin with. */
export const commandNamed = (commands: readonly Command[], words: readonly string[]): Command | undefined =>
  commands
    .filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `))
    .toSorted((one, other) => other.name.length - one.name.length)[0];

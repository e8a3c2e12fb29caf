/** The configuration that `penstock init` writes: its text with comments, and the option that each setting comes from. */

import { hash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { Document, isMap, isScalar, type Node, type Pair, Scalar, type YAMLMap } from 'yaml';
import type { ConfigError } from '../config/config-errors.ts';
import { saysSecret } from '../config/fixed-values.ts';
import { errorsInText } from '../config/load.ts';
import type { SettingPath } from '../config/object-path.ts';
import type { BankExample } from './bank-example.ts';
import type { OptionName, Options } from './command.ts';

/** What the options or the user say, without empty texts. */
export type InitAnswers = Pick<
  Options,
  | 'output'
  | 'sandboxUrl'
  | 'productionUrl'
  | 'certificates'
  | 'client'
  | 'operator'
  | 'database'
  | 'redis'
  | 'publicUrl'
> & { readonly bank?: BankExample | undefined };

/** A file with a new secret, to which the configuration refers by its hash or its path. */
export interface SecretFile {
  readonly file: string;
  readonly content: string;
  /** What the secret is for. */
  readonly purpose: string;
  /** Which option gives the file another name. */
  readonly option: OptionName;
}

/** Random texts that a header can contain. */
export interface NewSecrets {
  readonly apiKey: string;
  readonly operatorToken: string;
  /** 32 bytes in base64. */
  readonly encryptionKey: string;
}

/** The secrets of this configuration, in the folder of its file. */
export function secretFiles(answers: InitAnswers, secrets: NewSecrets): readonly SecretFile[] {
  const { client, operator } = answers;
  const { keyFile, tokenFile, encryptionKeyFile } = pathsOf(answers);
  const files: SecretFile[] = [];
  if (client)
    files.push({
      file: keyFile,
      content: secrets.apiKey,
      purpose: `the API key of ${client}`,
      option: 'client',
    });
  if (operator)
    files.push({
      file: tokenFile,
      content: secrets.operatorToken,
      purpose: `the token of the operator ${operator}`,
      option: 'operator',
    });
  if (isStored(answers))
    files.push({
      file: encryptionKeyFile,
      content: secrets.encryptionKey,
      purpose: 'the key that encrypts stored responses, for all instances; keep a copy',
      option: 'output',
    });
  return files;
}

/** Whether a restart keeps the data. */
export const isStored = ({ database }: InitAnswers): boolean => database !== 'memory';

export const isPostgres = ({ database = '' }: InitAnswers): boolean => /^postgres(ql)?:/.test(database);

/** The file of a SQLite database; `undefined` for another database. */
export const sqliteFile = (answers: InitAnswers): string | undefined =>
  isStored(answers) && !isPostgres(answers) ? pathsOf(answers).databaseFile : undefined;

function pathsOf({ output = '', client, operator, database = '' }: InitAnswers) {
  const folder = dirname(resolve(output));
  const file = database.replace(/^sqlite:?/, '');
  return {
    folder,
    keyFile: join(folder, `${client}.api-key`),
    tokenFile: join(folder, `${operator}.token`),
    encryptionKeyFile: join(folder, 'encryption.key'),
    databaseFile: file === '' ? join(folder, 'penstock.db') : resolve(file),
  };
}

/** The errors of this configuration, each with the option that can correct it. */
export const problemsOf = (answers: InitAnswers, secrets: NewSecrets) =>
  errorsInText(configText(answers, secrets)).map((error: ConfigError) => ({
    ...error,
    option: optionOf(error.path),
  }));

const optionOf = (path: SettingPath): OptionName | undefined =>
  optionsOfSettings.find(([setting]) =>
    setting.split('.').every((key, index) => key === path[index] || (key === '*' && index < path.length)),
  )?.[1];

/** The first row that matches. */
const optionsOfSettings: readonly (readonly [setting: string, OptionName])[] = [
  ['environments.sandbox.baseUrl', 'sandboxUrl'],
  ['environments.production.baseUrl', 'productionUrl'],
  ['environments.*.tls', 'certificates'],
  ['environments.*', 'bankLike'],
  ['standard', 'bankLike'],
  ['clients', 'client'],
  ['admin.operators', 'operator'],
  ['state.redis', 'redis'],
  ['state.encryptionKeyFile', 'output'],
  ['state', 'database'],
  ['listen.publicUrl', 'publicUrl'],
];

/** The text of the file. */
export function configText(answers: InitAnswers, secrets: NewSecrets): string {
  const { client, operator, publicUrl, bank, sandboxUrl, productionUrl } = answers;
  const document = new Document();
  document.contents = document.createNode({
    listen: { host: '127.0.0.1', port: 8080, ...(publicUrl && { publicUrl }) },
    admin: {
      host: '127.0.0.1',
      port: 9090,
      operators: [
        { name: operator, role: 'operate', tokenSha256: hash('sha256', secrets.operatorToken.trim()) },
      ],
    },
    ...(client && { clients: [{ name: client, apiKeySha256: hash('sha256', secrets.apiKey.trim()) }] }),
    ...(bank?.standard && { standard: bank.standard.clone() }),
    environments: {
      ...((sandboxUrl || productionUrl) && { active: sandboxUrl ? 'sandbox' : 'production' }),
      ...(sandboxUrl && { sandbox: environmentOf('sandbox', sandboxUrl, answers, document) }),
      ...(productionUrl && { production: environmentOf('production', productionUrl, answers, document) }),
    },
    ...stateOf(answers),
  }) as typeof document.contents; // of a mapping, a mapping
  document.commentBefore = [...header, ...(bank?.notes ?? [])].map((line) => ` ${line}`).join('\n');
  addComments(document.contents, []);
  const added = document.getIn(['clients', 0]);
  if (isMap(added)) added.comment = notificationsComment(answers);
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}

const header = [
  'Written by penstock init. After each change: penstock check --config FILE',
  '',
  'All other settings have their defaults: docs/configuration.md. Those that most installations change sooner or later: shaping.rate,',
  "the bank's rate limit (docs/operations/shaping.md); listen.tls (docs/operations/proxies.md); environments.NAME.signing",
  '(docs/operations/certificates.md). config/production.example.yaml shows them.',
  'The pages under docs/ are at https://github.com/penstock-gateway/penstock/tree/main/docs',
];

/** The settings with which the client may have webhooks. */
const notificationsComment = (answers: InitAnswers) =>
  [
    'notifications: # webhooks with the status of payments: docs/operations/webhooks.md',
    '  urls: [https://tpp.example/psd2] # where the client may have them sent',
    `  secretFile: ${JSON.stringify(join(pathsOf(answers).folder, `${answers.client}.whsec`))} # echo "whsec_$(openssl rand -base64 32)"`,
  ]
    .map((line) => ` ${line}`)
    .join('\n');

function stateOf(answers: InitAnswers) {
  const { database, redis } = answers;
  const { databaseFile, encryptionKeyFile } = pathsOf(answers);
  const state = {
    ...(isPostgres(answers) ? { postgres: database } : isStored(answers) && { file: databaseFile }),
    ...(redis && { redis }),
    ...(isStored(answers) && { encryptionKeyFile }),
  };
  return Object.keys(state).length > 0 ? { state } : {};
}

/** The environment of the example with another address, or a new one. */
function environmentOf(name: string, baseUrl: string, answers: InitAnswers, document: Document): YAMLMap {
  const { bank, certificates } = answers;
  const environment = bank?.environment.clone() as YAMLMap | undefined; // of a mapping, a mapping
  const map = environment ?? (document.createNode({ baseUrl }) as YAMLMap); // of a mapping, a mapping
  map.set('baseUrl', new Scalar(baseUrl)); // a new node: the comment of the former one says CHANGE
  for (const section of ['headers', 'query']) {
    const fields = map.get(section);
    if (isMap<unknown, Node | null>(fields))
      for (const pair of fields.items) keepSecretOutside(pair, join(pathsOf(answers).folder, name), document);
  }
  if (!map.has('standardVersion')) map.add(document.createPair('standardVersion', '1.3.11'));
  if (certificates && baseUrl.startsWith('https:') && !map.has('tls')) {
    const file = (ending: string) => join(resolve(certificates), name, `qwac.${ending}`);
    map.add(document.createPair('tls', { certFile: file('crt'), keyFile: file('key') }));
  }
  return map;
}

/** A key of the bank's portal becomes a file that the user creates. */
function keepSecretOutside(pair: Pair<unknown, Node | null>, folder: string, document: Document): void {
  const { value } = pair;
  if (!isScalar(value) || value.value !== 'CHANGE') return;
  const field = String(isScalar(pair.key) ? pair.key.value : pair.key);
  if (!saysSecret(field) && !value.comment?.includes('{ file: PATH }')) return;
  const file = join(folder, field.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'));
  pair.value = document.createNode({ file });
  if (isMap(pair.value)) pair.value.flow = true;
}

/** Puts the comment of each setting above it, and an empty line above each section. */
function addComments(node: unknown, path: readonly string[]): void {
  if (!isMap<unknown, Node | null>(node)) {
    const items = (node as { readonly items?: readonly unknown[] } | null)?.items ?? [];
    for (const item of items) addComments(item, [...path, '0']);
    return;
  }
  for (const [index, { key, value }] of node.items.entries()) {
    if (!isScalar<string>(key)) continue;
    const own = [...path, key.value];
    const names = own.map((part, index) =>
      index === 1 && own[0] === 'environments' && part !== 'active' ? 'NAME' : part,
    );
    const comment = comments[names.join('.')];
    if (comment !== undefined) key.commentBefore = ` ${comment}`;
    if (path.length === 0 && index > 0) key.spaceBefore = true;
    addComments(value, own);
  }
}

/** One sentence for each setting, and the page of the documentation. */
const comments: Readonly<Record<string, string>> = {
  listen: 'The listener for TPP systems: docs/configuration.md#listen',
  'listen.host':
    'The address for TPP systems; 0.0.0.0 is every address of this host, and then set listen.tls: docs/operations/proxies.md',
  'listen.port': 'The port for TPP systems: docs/configuration.md#listen',
  'listen.publicUrl':
    'The URL under which TPP systems reach the gateway, for links in responses: docs/operations/proxies.md',
  admin:
    'The listener for operators, with the console, the admin API, health checks and metrics: docs/operations/run.md',
  'admin.host':
    'Other hosts do not reach this address; operators use an SSH tunnel or a proxy: docs/operations/sign-in.md',
  'admin.port': 'The port of the admin listener: docs/configuration.md#admin',
  'admin.operators':
    'Each operator has a token, of which only the SHA-256 is here (printf %s "$TOKEN" | sha256sum): docs/operations/sign-in.md',
  clients:
    'The TPP systems that may call; each sends its key as X-API-Key, of which only the SHA-256 is here: docs/configuration.md#clients',
  standard: 'What the gateway offers of the standard: docs/configuration.md#standard',
  'standard.alsoOffer': 'Operations beyond the eight that every gateway offers: docs/operations/banks.md',
  environments: 'The APIs of the bank: docs/operations/banks.md',
  'environments.active':
    'The environment that gets new payments at first; operators switch it later: docs/operations/switch-environment.md',
  'environments.NAME.baseUrl':
    'Requests go to <baseUrl>/<segment>/<pathVersion>/payments/..: docs/operations/banks.md',
  'environments.NAME.segment': "The bank's path between baseUrl and the version: docs/operations/banks.md",
  'environments.NAME.pathVersion': "The version in the bank's path: docs/operations/banks.md",
  'environments.NAME.headers': 'Fields that the gateway adds to every request: docs/operations/banks.md',
  'environments.NAME.query': 'Parameters that the gateway adds to every request: docs/operations/banks.md',
  'environments.NAME.queryParameters':
    'The parameters that TPP systems may send: docs/configuration.md#environments',
  'environments.NAME.callerHeaders':
    'Fields of the TPP system that select the bank or authorise the request: docs/operations/banks.md#header-fields-that-polls-need',
  'environments.NAME.pollHeaders':
    'Fields of the TPP system that polls need: docs/operations/banks.md#header-fields-that-polls-need',
  'environments.NAME.standardVersion':
    "The version of the Berlin Group's NextGenPSD2 that the bank implements: docs/operations/contract.md",
  'environments.NAME.tls':
    'The client certificate (QWAC); the gateway loads renewed files without a restart: docs/operations/certificates.md',
  state: 'Where payments are recorded before they are sent: docs/operations/state.md',
  'state.file': 'The SQLite database of a single instance: docs/operations/state.md',
  'state.postgres':
    'The database of all instances; with a password, set PENSTOCK_STATE_POSTGRES to the whole URL, which replaces this one: docs/operations/failover.md',
  'state.redis':
    'Cached statuses and shared rates; with a password, set PENSTOCK_STATE_REDIS to the whole URL, which replaces this one: docs/operations/redis.md',
  'state.encryptionKeyFile':
    'The key that encrypts stored responses, which may contain personal data: docs/operations/state.md#encryption',
};

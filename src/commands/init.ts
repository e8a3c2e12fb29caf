/** `penstock init`: writes a configuration from options, and from answers if there is a terminal. Never overwrites a file. */

import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { loadConfigAndFiles } from '../config/load.ts';
import { bankNames, readBankExample } from './bank-example.ts';
import { flagOf, type OptionName, type Options, optionRow } from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import {
  configText,
  type InitAnswers,
  isPostgres,
  isStored,
  type NewSecrets,
  problemsOf,
  type SecretFile,
  secretFiles,
  sqliteFile,
} from './init-config.ts';

/** Where questions are asked. */
export interface Terminal {
  readonly input: Readable;
  readonly output: Writable;
}

/**
 * @param terminal `undefined` if nothing can be asked
 * @throws CommandError if an option is wrong or missing, a file exists, or the user ends the questions; then nothing is written
 */
export async function init(options: Options, terminal = processTerminal()): Promise<CommandOutput> {
  const secrets = newSecrets();
  const given = Object.fromEntries(
    questions.flatMap(({ name }) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
  const answers = terminal
    ? await askForRest(given, secrets, terminal)
    : { ...Object.fromEntries(questions.map(({ name, fallback }) => [name, fallback()])), ...given };
  const problems = problemsIn(answers, secrets);
  if (problems.length > 0) throw nothingWritten(problems);

  const complete = completed(answers);
  writeNewFiles(filesOf(complete, secrets));
  return report(resolve(complete.output ?? ''), complete, secretFiles(complete, secrets));
}

const nothingWritten = (problems: readonly string[]) =>
  new UsageError([...problems, 'Nothing was written.'].join('\n'));

function processTerminal(): Terminal | undefined {
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  return isTerminal ? { input: process.stdin, output: process.stderr } : undefined;
}

const newSecrets = (): NewSecrets => ({
  apiKey: `${randomBytes(32).toString('base64url')}\n`,
  operatorToken: `${randomBytes(32).toString('base64url')}\n`,
  encryptionKey: `${randomBytes(32).toString('base64')}\n`,
});

/** What was answered, under the names of the options; an empty text means: none. */
type Answers = Readonly<Partial<Record<OptionName, string>>>;

interface Question {
  readonly name: OptionName;
  readonly text: string;
  /** The answer if nothing is said. */
  readonly fallback: () => string;
}

const questions: readonly Question[] = [
  { name: 'output', text: 'File to write', fallback: () => 'penstock.yaml' },
  {
    name: 'bankLike',
    text: 'Interface of the bank. Press Enter if your bank is not in the list',
    fallback: () => '',
  },
  { name: 'sandboxUrl', text: "URL of the bank's sandbox, or nothing", fallback: () => '' },
  { name: 'productionUrl', text: "URL of the bank's production API, or nothing", fallback: () => '' },
  {
    name: 'certificates',
    text: 'Folder with the client certificates for the bank (sandbox/qwac.crt, ..), or nothing',
    fallback: () => '',
  },
  { name: 'client', text: 'Name of the TPP system that may call', fallback: () => '' },
  { name: 'operator', text: 'Name of the operator', fallback: () => 'operator' },
  {
    name: 'database',
    text: 'Database: sqlite, memory, or postgres://user@host:5432/database?sslmode=verify-full',
    fallback: () => 'sqlite',
  },
  { name: 'redis', text: 'Redis, such as rediss://host:6379/0, or nothing', fallback: () => '' },
  {
    name: 'publicUrl',
    text: 'URL under which TPP systems reach the gateway, or nothing for its own address',
    fallback: () => '',
  },
];

/** Asks for what was not given, and again after a wrong answer. @throws CommandError if an option is wrong, the input ends, or on Ctrl-C */
async function askForRest(given: Answers, secrets: NewSecrets, terminal: Terminal): Promise<Answers> {
  const isGiven = ({ name }: Question) => given[name] !== undefined;
  const wrong = problemsIn(
    given,
    secrets,
    questions.filter(isGiven).map(({ name }) => name),
  );
  if (wrong.length > 0) throw nothingWritten(wrong);
  const lines = createInterface({
    ...terminal,
    terminal: 'isTTY' in terminal.input && terminal.input.isTTY === true,
  });
  lines.once('SIGINT', () => lines.close());
  const input = lines[Symbol.asyncIterator]();
  const say = (text: string) => void terminal.output.write(`${text}\n`);
  const ask = async (prompt: string) => {
    lines.setPrompt(prompt);
    lines.prompt();
    const { value, done } = await input.next();
    if (!done) return value.trim();
    say('');
    throw new CommandError(
      exitCodes.refused,
      'The questions were not answered to their end. Nothing was written.',
    );
  };
  try {
    let answers: Answers = { ...given };
    const open = questions.filter((question) => !isGiven(question));
    for (let index = 0; index < open.length; ) {
      const { name, text, fallback } = open[index] as Question; // the condition of the loop
      if (name === 'bankLike') say(`Interfaces with an example: ${bankNames().join(', ')}`);
      const usual = name === 'operator' ? (userName() ?? fallback()) : fallback();
      const answer = (await ask(`${text}${usual === '' ? '' : ` [${usual}]`}: `)) || usual;
      if (name === 'productionUrl' && !answer && !answers.sandboxUrl) {
        say('Penstock needs the URL of the sandbox, of the production API, or both.');
        if (given.sandboxUrl === undefined) index -= 1;
        continue;
      }
      const tried = { ...answers, [name]: answer };
      const [problem] = problemsIn(tried, secrets, [name]);
      if (problem !== undefined) {
        say(problem);
        continue;
      }
      answers = tried;
      index += 1;
    }
    return answers;
  } finally {
    lines.close();
  }
}

/** The name of the user, if an operator may have it. */
function userName(): string | undefined {
  const { username } = userInfo();
  return /^[A-Za-z0-9][\w.-]{0,63}$/.test(username) && !['root', 'admin', 'gateway'].includes(username)
    ? username
    : undefined;
}

interface Problem {
  /** The option that can solve it. */
  readonly option: OptionName | undefined;
  readonly text: string;
}

/**
 * What is wrong with the answers, or missing, one line each.
 *
 * @param only the options that matter: a later answer may solve the other problems
 */
function problemsIn(answers: Answers, secrets: NewSecrets, only?: readonly OptionName[]): readonly string[] {
  const found = allProblems(answers, secrets).filter(
    ({ option }) => !only || (option !== undefined && only.includes(option)),
  );
  return [...new Set(found.map(({ text }) => text))];
}

function allProblems(answers: Answers, secrets: NewSecrets): readonly Problem[] {
  const problemOf = (option: OptionName, what: string): Problem => ({
    option,
    text: `${flagOf(optionRow(option))}: ${what}`,
  });
  const unreadable = questions.flatMap(({ name }) => {
    const what = textProblem(answers[name] ?? '');
    return what === undefined ? [] : [problemOf(name, what)];
  });
  if (unreadable.length > 0) return unreadable;

  const { client, sandboxUrl, productionUrl, database = 'sqlite' } = answers;
  const problems = [
    ...(sandboxUrl || productionUrl
      ? []
      : [
          {
            option: 'productionUrl' as const,
            text: '--sandbox-url or --production-url: missing; name a URL of the bank',
          },
        ]),
    ...(client ? [] : [problemOf('client', 'missing; name the TPP system that may call the gateway')]),
    ...(databases.test(database) ? [] : [problemOf('database', `expected ${databaseExpected}`)]),
  ];
  const databaseProblem = (what: string) => problemOf('database', what);
  try {
    const complete = completed(answers);
    const wrong = problemsOf(complete, secrets)
      .filter(({ path }) => !['environments', 'state,file'].includes(path.join())) // see above, and below
      .map(({ option, path, message }) =>
        option === undefined ? { option, text: `${path.join('.')}: ${message}` } : problemOf(option, message),
      );
    const taken = filesOf(complete, secrets)
      .filter(({ file }) => existsSync(file))
      .map(({ option, file }) => problemOf(option, `${file} exists, and is not overwritten; ${otherFile}`));
    const shared = sharedFiles(complete, secrets).map(({ option, what }) => problemOf(option, what));
    return [...problems, ...wrong, ...shared, ...taken, ...formerDatabase(complete).map(databaseProblem)];
  } catch (thrown) {
    if (thrown instanceof CommandError) return [...problems, { option: 'bankLike', text: thrown.message }];
    throw thrown;
  }
}

const otherFile =
  'name another one with --output, in another folder if it is a key of a former configuration';

const databaseExpected =
  'sqlite, sqlite:FILE, memory, or postgres://user@host:5432/database?sslmode=verify-full';

const databases = /^(sqlite|sqlite:.+|memory|postgres(ql)?:.+)$/s;

/** Nothing that a terminal or an editor would not show, or that nobody types. */
function textProblem(text: string): string | undefined {
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'control characters and line breaks are not allowed';
  return text.length > 1024 ? 'at most 1,024 characters are allowed' : undefined;
}

/** Without empty texts. @throws CommandError if the example of the bank cannot be used */
function completed({ bankLike, ...others }: Answers): InitAnswers {
  const said = Object.fromEntries(Object.entries(others).filter(([, answer]) => answer !== ''));
  return { ...said, ...(bankLike && { bank: readBankExample(bankLike) }) };
}

/** Everything to write, the configuration first. */
const filesOf = (answers: InitAnswers, secrets: NewSecrets) => [
  {
    file: resolve(answers.output ?? ''),
    content: configText(answers, secrets),
    option: 'output' as const,
  },
  ...secretFiles(answers, secrets),
];

/** With a new encryption key, the gateway could not read the stored responses, so it could not replay them. */
function formerDatabase(answers: InitAnswers): readonly string[] {
  const file = sqliteFile(answers);
  if (file === undefined || !existsSync(file)) return [];
  return [
    `${file} exists, and the new encryption key does not fit a former database; name another file with --database sqlite:FILE, or another folder with --output`,
  ];
}

/** Files that would have two purposes, each with the option that can change the second one. */
function sharedFiles(answers: InitAnswers, secrets: NewSecrets) {
  const database = sqliteFile(answers);
  const files: readonly Omit<SecretFile, 'content'>[] = [
    { file: resolve(answers.output ?? ''), purpose: 'the configuration', option: 'output' },
    ...secretFiles(answers, secrets),
    // SQLite has two more files beside the database.
    ...(database === undefined ? [] : ['', '-wal', '-shm']).map((ending) => ({
      file: `${database}${ending}`,
      purpose: 'the database',
      option: 'database' as const,
    })),
  ];
  const paths = files.map(({ file }) => withRealFolder(file));
  return files.flatMap(({ file, option, purpose }, index) => {
    const first = paths.indexOf(paths[index] ?? '');
    const other = files[first];
    if (!other || first === index) return [];
    const names = [...new Set([option, other.option, 'output' as const])].map((name) =>
      flagOf(optionRow(name)),
    );
    const what = `${file} cannot be both ${withoutAdvice(other.purpose)} and ${withoutAdvice(purpose)}; change ${names.join(' or ')}`;
    return [{ option, what }];
  });
}

const withoutAdvice = (purpose: string) => purpose.replace(/[,;].*/, '');

/** Two names of one folder are the same. */
function withRealFolder(file: string): string {
  try {
    return join(realpathSync(dirname(file)), basename(file));
  } catch {
    return file; // a folder that does not exist has one name
  }
}

/**
 * Creates all files, or none. They are for the user alone.
 *
 * @throws CommandError if one exists, or cannot be created
 */
function writeNewFiles(files: readonly { readonly file: string; readonly content: string }[]): void {
  const created: string[] = [];
  let current = '';
  try {
    for (const { file, content } of files) {
      current = file;
      const descriptor = openSync(file, 'wx', 0o600);
      created.push(file);
      try {
        writeFileSync(descriptor, content);
      } finally {
        closeSync(descriptor);
      }
    }
  } catch (cause) {
    for (const file of created) rmSync(file, { force: true });
    const { code = '' } = cause as NodeJS.ErrnoException; // node:fs throws no other errors
    throw new CommandError(exitCodes.refused, `${writeProblem(code, current)}. Nothing was written.`, {
      cause,
    });
  }
}

function writeProblem(code: string, file: string): string {
  if (code === 'EEXIST') return `${file} exists, and is not overwritten; ${otherFile}`;
  const advice = ['ENOENT', 'ENOTDIR', 'EACCES', 'EROFS'].includes(code)
    ? '; name a file in a folder that exists, and in which you may write, with --output'
    : '';
  return `${code}: ${file}${advice}`;
}

/** What was written, and what to do next. */
function report(file: string, answers: InitAnswers, created: readonly SecretFile[]): CommandOutput {
  const loaded = loadConfigAndFiles(file, {});
  const missing = loaded.kind === 'invalid' ? loaded.errors : [];
  const keyFile = created[0]?.file ?? '';
  const next = [
    ...(missing.length > 0 ? [['Put these files there:', ...missing]] : []),
    ...(loaded.warnings.length > 0 ? [['Change what the check warns of:', ...loaded.warnings]] : []),
    ...addressAdvice(answers),
    ...passwordAdvice(answers),
    ['Check the configuration:', commandLine('check', file)],
    ...(isStored(answers) ? [['Create the tables:', commandLine('migrate', file)]] : []),
    ['Start the gateway:', commandLine('serve', file)],
    [
      'Ask it in another shell whether customers can pay:',
      `${commandLine('status', file)} --token-file ${shellWord(created[1]?.file ?? '')}`,
    ],
    ...(answers.sandboxUrl
      ? [['Send a payment to the sandbox; some banks require other fields:', ...paymentWith(keyFile)]]
      : []),
    [`Give ${answers.client} its API key, and delete the file: ${shellWord(keyFile)}`],
  ];
  const lines = [
    'Written, readable for you only:',
    `  ${file}`,
    ...created.map((secret) => `  ${secret.file}: ${secret.purpose}`),
    '',
    'Next:',
    ...next.flatMap(([first, ...others], index) => [
      `${index + 1}. ${first}`,
      ...others.map((line) => `   ${line}`),
    ]),
  ];
  return success(lines, {
    file,
    secrets: created.map(({ file: path, purpose }) => ({ file: path, purpose })),
    next,
  });
}

/** A payment that a sandbox accepts which follows the standard. A repeat of the command pays nothing: the id is the same. */
const paymentWith = (keyFile: string) => [
  'curl -si http://127.0.0.1:8080/berlingroup/v1/payments/sepa-credit-transfers \\',
  `  -H "X-API-Key: $(cat ${shellWord(keyFile)})" -H 'X-Request-ID: ${randomUUID()}' \\`,
  "  -H 'PSU-IP-Address: 192.0.2.1' -H 'Content-Type: application/json' -w '\\n' \\",
  `  -d '{"instructedAmount":{"currency":"EUR","amount":"1.00"},"debtorAccount":{"iban":"DE40100100103307118608"},`,
  `       "creditorName":"Shop","creditorAccount":{"iban":"DE02100100109307118603"}}'`,
];

/** If the example has a path that the address lacks. */
function addressAdvice({ bank, sandboxUrl, productionUrl }: InitAnswers): readonly (readonly string[])[] {
  if (!bank || !URL.canParse(bank.baseUrl)) return [];
  const { pathname } = new URL(bank.baseUrl);
  const differs = [sandboxUrl, productionUrl].some(
    (url) => url && new URL(url).pathname.replace(/\/$/, '') !== pathname.replace(/\/$/, ''),
  );
  return differs
    ? [[`Compare baseUrl with the documentation of the bank: in the example, its path is ${pathname}`]]
    : [];
}

function passwordAdvice(answers: InitAnswers): readonly (readonly string[])[] {
  const stores = [
    ...(isPostgres(answers) ? [['PostgreSQL', 'PENSTOCK_STATE_POSTGRES']] : []),
    ...(answers.redis ? [['Redis', 'PENSTOCK_STATE_REDIS']] : []),
  ];
  return stores.map(([name, variable]) => [
    `If ${name} needs a password, set ${variable} to the whole URL with it, for each of the next commands`,
  ]);
}

/** As the user runs it: from a checkout, or from an installed package. */
function commandLine(name: string, file: string): string {
  const program = import.meta.filename.endsWith('.ts')
    ? 'npm exec penstock --'
    : `node ${shellWord(join(dirname(import.meta.dirname), '../bin/penstock.cjs'))}`;
  return `${program} ${name} --config ${shellWord(file)}`;
}

const shellWord = (text: string) => (/^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

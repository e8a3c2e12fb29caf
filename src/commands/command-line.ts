/** The command line: parses the arguments, runs the command, prints its output. Only this file knows the parser library. */

import { styleText } from 'node:util';
import { Argument, CommanderError, InvalidArgumentError, Option, Command as Parser } from 'commander';
import { closestName } from '../config/did-you-mean.ts';
import { version } from '../version.ts';
import {
  type Command,
  commandNamed,
  descriptionFor,
  hasValue,
  type OptionName,
  type OptionRow,
  type Options,
  optionRow,
} from './command.ts';
import { CommandError, UsageError } from './command-error.ts';
import type { CommandOutput } from './command-output.ts';
import { commands, groupSummaries } from './command-table.ts';
import { exitCodeMeanings, exitCodes } from './exit-codes.ts';

/** Runs the command and sets the exit code of the process. @param args what follows `penstock` */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await createParser(execute).parseAsync(withHelpOption(args), { from: 'user' });
  } catch (thrown) {
    process.exitCode = reportParserError(thrown, { json: args.includes('--json') });
  }
}

/** `help environment use` as `environment use --help`. Words that name no command become an error about them. */
function withHelpOption(args: readonly string[]): readonly string[] {
  const [first, ...words] = args;
  if (first !== 'help') return args;
  const operands = words.filter((word) => !word.startsWith('-'));
  const command = commandNamed(commands, operands);
  if (command) return [...command.name.split(' '), '--help'];
  const isGroup = operands.length === 1 && Object.hasOwn(groupSummaries, operands.join());
  return isGroup || operands.length === 0 ? [...operands, '--help'] : operands;
}

type Execute = (command: Command, options: Options, words: readonly string[]) => Promise<void>;

/**
 * The parser for all commands. It prints help and version itself; it throws `UsageError` for a wrong command line, and
 * otherwise `CommanderError` where the process would exit.
 *
 * @param execute is called with the command that the arguments name
 */
export function createParser(execute: Execute): Parser {
  const program = new Parser('penstock')
    .description("Penstock: gateway between TPP platforms and a bank's PSD2 payment-initiation API")
    .version(`penstock ${version}`, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .enablePositionalOptions() // a command refuses the options of other commands
    .configureOutput({
      writeOut: (text) => write(process.stdout, text),
      writeErr: (text) => write(process.stderr, text),
      outputError: () => {}, // the caller prints the error that is thrown
    })
    .configureHelp({
      visibleCommands: (parser) => parser.commands.flatMap(withSubcommands).filter(isShown),
      subcommandTerm: pathOf,
      commandUsage: formatUsage,
      styleTitle: (title) => styleText('bold', title, { validateStream: false }), // the parser removes it if not supported
    })
    .addOption(parserOption('config').hideHelp()) // also accepted before the command
    .addHelpText('after', `\n${helpEpilogue}`);
  throwErrors(program);
  for (const command of commands) addCommand(program, command, execute);
  return program;
}

function addCommand(program: Parser, command: Command, execute: Execute): void {
  const { name, summary, arguments: rows = [], options = [], example } = command;
  const words = name.split(' ');
  const parser = words.reduce(subcommandOf, program);
  parser.description(summary).addHelpText('after', `\nExample:\n  penstock ${example}`);
  for (const { syntax, description, choices } of rows) {
    const argument = new Argument(syntax, description);
    parser.addArgument(choices ? argument.choices(choices) : argument);
  }
  for (const option of options) parser.addOption(parserOption(option, command));
  parser.action(() => execute(command, parser.optsWithGlobals<Options>(), wordsOf(parser)));
}

/** The parser of a word that follows another one; creates it if necessary. */
function subcommandOf(parent: Parser, word: string): Parser {
  const existing = parent.commands.find((parser) => parser.name() === word);
  if (existing) return existing;
  const parser = parent
    .command(word)
    .description(groupSummaries[word] ?? '')
    .helpCommand(false);
  throwErrors(parser);
  return parser;
}

/** The arguments that were given; an argument for several words is a list. */
const wordsOf = ({ processedArgs }: Parser): readonly string[] =>
  processedArgs.flat().filter((word) => word !== undefined);

function parserOption(name: OptionName, command?: Command): Option {
  const row = optionRow(name);
  const option = new Option(row.flags, descriptionFor(row, command));
  return hasValue(row) ? option.argParser((value, previous) => parseValue(row, value, previous)) : option;
}

/**
 * Refuses an option that occurs twice, and one without a value: `--reason --confirm production` lacks a reason.
 *
 * @param previous the value of the same option before
 */
function parseValue({ mayBeEmpty }: OptionRow, value: string, previous: unknown): string {
  if (value.startsWith('--') || (value === '' && !mayBeEmpty))
    throw new InvalidArgumentError('The value is missing.');
  if (previous !== undefined) throw new InvalidArgumentError('The option occurs twice.');
  return value;
}

// The help.

const helpEpilogue = `Commands for a running gateway find its admin listener and the operator's token
in the configuration. With --url they need no configuration; the token then
comes from --token-file or PENSTOCK_ADMIN_TOKEN.

Exit codes:
${exitCodeMeanings.map(([code, meaning]) => `  ${String(code).padEnd(3)} ${meaning}`).join('\n')}`;

const withSubcommands = (parser: Parser): readonly Parser[] => [parser, ...parser.commands];

const rowOf = (parser: Parser) => commands.find(({ name }) => name === pathOf(parser));

function isShown(parser: Parser): boolean {
  const row = rowOf(parser);
  return row !== undefined && !row.isHidden;
}

/** The words of a command, without `penstock`. */
const pathOf = (parser: Parser): string =>
  parser.parent ? `${pathOf(parser.parent)} ${parser.name()}`.trim() : '';

/** One line for each form of the command. */
function formatUsage(parser: Parser): string {
  const row = rowOf(parser);
  const [first = '', ...others] = row ? usageOf(row) : ['<command> [options]'];
  const name = `penstock ${pathOf(parser)}`.trim();
  return [`${name} ${first}`, ...others.map((form) => `       ${name} ${form}`)].join('\n');
}

/** What follows the name of a command, one text for each form. */
export const usageOf = ({ usage, arguments: rows = [], options = [] }: Command): readonly string[] =>
  usage ?? [[...rows.map(({ syntax }) => syntax), ...(options.length > 0 ? ['[options]'] : [])].join(' ')];

// Errors.

function throwErrors(parser: Parser): void {
  parser.exitOverride((error) => {
    if (error.exitCode === exitCodes.ok || error.code === 'commander.help') throw error;
    const message = unknownCommandMessage(parser) ?? error.message.replace(/^error: /, '');
    throw new UsageError(withHint(message, pathOf(parser)));
  });
}

/** The message for words that name no command; the parser would complain about an option or about too many arguments. */
function unknownCommandMessage(parser: Parser): string | undefined {
  const [word] = parser.args;
  const known = parser.commands.map((each) => each.name());
  if (known.length === 0 || word === undefined || word.startsWith('-') || known.includes(word))
    return undefined;
  const pathWith = (last: string) => `${pathOf(parser)} ${last}`.trim();
  const names = commands.filter(({ isHidden }) => !isHidden).map(({ name }) => name);
  const similar = closestName(pathWith(word), [...known.map(pathWith), ...names, '--version']);
  return `unknown command '${pathWith(word)}'${similar === undefined ? '' : `\n(Did you mean ${similar}?)`}`;
}

const withHint = (message: string, path: string) => `${message}\nSee '${`penstock ${path}`.trim()} --help'.`;

/** @returns the exit code */
function reportParserError(thrown: unknown, options: Pick<Options, 'json'>): number {
  if (thrown instanceof UsageError) return reportError(thrown, options);
  if (!(thrown instanceof CommanderError)) return reportInternalError(thrown);
  return thrown.exitCode === exitCodes.ok ? exitCodes.ok : exitCodes.usage; // the parser has printed the help
}

function reportInternalError(thrown: unknown): number {
  write(process.stderr, `internal error: ${thrown instanceof Error ? thrown.stack : String(thrown)}\n`);
  return exitCodes.internal;
}

/** @returns the exit code */
function reportError(
  { message, lines, data, exitCode }: CommandError,
  { json }: Pick<Options, 'json'>,
): number {
  if (json) {
    write(process.stderr, `${JSON.stringify({ error: message, ...data }, null, 2)}\n`);
    return exitCode;
  }
  printLines(lines);
  write(process.stderr, `${styleText('red', message, { stream: process.stderr })}\n`);
  return exitCode;
}

// The output.

async function execute(command: Command, options: Options, words: readonly string[]): Promise<void> {
  try {
    const output = await command.run(options, ...words);
    if (output) process.exitCode = print(output, options);
  } catch (thrown) {
    if (!(thrown instanceof CommandError)) throw thrown;
    process.exitCode = reportError(hinted(thrown, command), options);
  }
}

const hinted = (error: CommandError, { name }: Command) =>
  error instanceof UsageError ? new UsageError(withHint(error.message, name)) : error;

/** @returns the exit code */
function print({ lines, data, exitCode }: CommandOutput, { json }: Options): number {
  printLines(json ? [JSON.stringify(data, null, 2)] : lines);
  return exitCode;
}

function printLines(lines: readonly string[]): void {
  if (lines.length > 0) write(process.stdout, `${lines.join('\n')}\n`);
}

function write(stream: NodeJS.WriteStream, text: string): void {
  stream.once('error', endWithoutReader);
  stream.write(text);
}

/** Ends the process without a message if the reader of the pipe has ended, as `head` does. */
function endWithoutReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

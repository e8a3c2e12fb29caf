/** Generates docs/operations/commands.md from the table of commands. */

import { type Command, descriptionFor, optionRow } from '../../src/commands/command.ts';
import { usageOf } from '../../src/commands/command-line.ts';
import { commands } from '../../src/commands/command-table.ts';
import { exitCodeMeanings } from '../../src/commands/exit-codes.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

const shown = commands.filter(({ isHidden }) => !isHidden);

/** The page as Markdown. */
export const commandsPage = (): string =>
  page([
    '# Commands',
    generatedFrom('src/commands/command-table.ts'),
    'In a checkout, write `npm exec penstock --` instead of `penstock`; without an installation, `npx` and the ' +
      '[packed file](install.md#install-the-package). `penstock COMMAND --help` prints what this page says about a command.',
    table(
      ['command', 'what it does'],
      shown.map(({ name, summary }) => [`[\`${name}\`](#${anchorOf(name)})`, `${summary}.`]),
    ),
    '## How does a command find the gateway?',
    'Commands for a running gateway call its admin listener. They read its address (`admin.host`, `admin.port`) from the ' +
      'configuration. With `--url` they read no configuration, and work from another machine:',
    block('PENSTOCK_ADMIN_TOKEN=… penstock circuits --url http://192.0.2.1:9090'),
    "`health` needs no token. For the others, the operator's token comes from `--token-file`, otherwise from " +
      '`PENSTOCK_ADMIN_TOKEN`, otherwise from `admin.tokenFile` of the configuration. Without `admin.tls`, the admin listener speaks ' +
      'plain HTTP: use it in a private network, or through a proxy with TLS. `--ca-file` names the CA certificates for ' +
      '`--url https://…`. The listener accepts IP addresses, `localhost`, and the names in `admin.host`, `admin.hosts` and ' +
      '`admin.publicUrl`.',
    'Every instance has its own admin listener. Changes of the shared state (`environment use`, `circuits hold`, ' +
      '`cache purge`, `in-doubt`, `notifications`) take effect on all instances. `health`, `reload` and `explain` concern ' +
      'the instance that you address.',
    '## Output and exit codes',
    'Results go to standard output, errors to standard error. With `--json`, both are JSON; an error has at least the ' +
      'member `error`.',
    table(
      ['exit code', 'meaning'],
      exitCodeMeanings.map(([exitCode, meaning]) => [String(exitCode), meaning]),
    ),
    'The codes above 1 are those of `sysexits.h`. A supervisor restarts `serve` after 1 and 70, but not after 64 or 78.',
    '## Completion',
    'Load the script for your shell in its start file:',
    table(
      ['shell', 'file', 'line'],
      [
        ['bash', '`~/.bashrc`', '`source <(penstock completion bash)`'],
        ['zsh', '`~/.zshrc`, after `compinit`', '`source <(penstock completion zsh)`'],
        ['fish', '`~/.config/fish/config.fish`', '`penstock completion fish | source`'],
      ],
    ),
    ...shown.flatMap(sectionOf),
  ]);

function sectionOf(command: Command): readonly string[] {
  const { name, summary, arguments: rows = [], options = [], example } = command;
  return [
    `## penstock ${name}`,
    `${summary}.`,
    block(
      usageOf(command)
        .map((form) => `penstock ${name} ${form}`.trimEnd())
        .join('\n'),
    ),
    rows.length + options.length === 0
      ? ''
      : table(
          ['argument or option', 'meaning'],
          [
            ...rows.map(({ syntax, description, choices }) => [
              code(syntax),
              choices ? `${description} (${choices.map(code).join(', ')})` : description,
            ]),
            ...options.map(optionRow).map((row) => [code(row.flags), descriptionFor(row, command)]),
          ],
        ),
    'Example:',
    block(`penstock ${example}`),
  ];
}

const block = (text: string) => `\`\`\`\n${text}\n\`\`\``;

/** As GitHub makes it of the heading. */
const anchorOf = (name: string) => `penstock-${name.replaceAll(' ', '-')}`;

/** Every command in the documents works, or stands here with the reason why it is not run. */

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { describe, test } from 'node:test';
import { blocksOf } from '../docs/blocks.ts';
import { copyOfRepository } from '../docs/demo.ts';
import { root } from '../kit/command.ts';

/** What is not run, and why. */
const notRun: readonly (readonly [RegExp, string])[] = [
  [/^npm ci\b/, 'it was done before the tests'],
  [/^npm cit\b/, 'it runs this'],
  [/^(BENCH_\S+ \S+ )?npm run (check|bench)\b/, 'these are tests themselves'],
  [/^npm run (demo|bank)\b/, 'serves until it is stopped: test/integration/command-line, tutorial.test.ts'],
  [/^npm start\b/, 'serves until it is stopped: test/integration/command-line'],
  [/^penstock bank --tls\b/, 'serves until it is stopped: test/docs/certificates.test.ts'],
  [/^(install|mv)\b/, 'needs a certificate that does not exist: test/fault/certificate-rotation.test.ts'],
  [/^BENCH_NODE_OPTIONS/, 'a measurement'],
  [/^docker\b/, 'there is no container engine: test/package executes the steps of the Dockerfile'],
  [/^curl .*\/_bank\/(?!payments$)/, 'calls a bank in a container: test/package'],
  [/^(npm pack|npm install --prefix|npx|\/opt\/penstock\/)/, 'packs and installs: test/package'],
  [/^curl -N\b/, 'reads events until it is stopped: test/contract/admin-events.test.ts'],
  [/^npm exec penstock -- explain\b/, 'wants a call that was made: test/integration/recent-requests.test.ts'],
  [
    /^npm exec penstock -- in-doubt (all|ID)\b/,
    'wants payments in doubt: test/unit/commands/in-doubt.test.ts',
  ],
  [/^npm exec penstock -- payment /, 'wants a payment: test/unit/commands/payments.test.ts'],
  [/^npm exec penstock -- (tenants rename|environment moved)\b/, 'wants a tenant or a bank that has changed'],
  [/^(kubectl|helm|penstock environment --url)\b/, 'there is no cluster: test/deploy, and the CI workflow'],
  [
    /^(install|mv)\b/,
    'renews certificates that only an installation has: test/fault/certificate-rotation.test.ts',
  ],
  [
    /^(sysctl|systemctl|for i in 1 2; do\n {2}systemctl)\b/,
    'changes the machine: test/fleet/shared-port.test.ts, test/deploy',
  ],
];

const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: root })].filter(
  (page) => !['docs/operations/tutorial.md', 'docs/operations/restore.md'].includes(page), // tests of their own
);

/** The commands of a block, each with the lines that belong to it. */
function commandsIn(block: string): readonly string[] {
  const lines = block.split('\n').filter((line) => line.trim() !== '');
  const commands: string[] = [];
  for (const line of lines) {
    const before = commands.at(-1);
    if (before !== undefined && (before.endsWith('\\') || /^(\s|done\b)/.test(line)))
      commands[commands.length - 1] = `${before}\n${line}`;
    else commands.push(line);
  }
  return commands;
}

/** Placeholders for values of the reader. */
const filledIn = (command: string) =>
  command
    .replaceAll('--config FILE', '--config config/demo.yaml')
    .replaceAll('PENSTOCK_ADMIN_TOKEN=…', 'PENSTOCK_ADMIN_TOKEN=demo')
    .replaceAll('/etc/penstock/', './');

const byNpm = /^npm exec penstock -- /;

/**
 * The commands as the test runs them. npm needs much longer than the command that it starts: only the first one is started by npm, the
 * others by the program that npm finds.
 */
function withFewerStartsOfNpm(commands: readonly string[]): readonly string[] {
  const first = commands.find((command) => byNpm.test(command));
  return commands.map((command) =>
    command === first ? command : command.replace(byNpm, 'bin/penstock.cjs '),
  );
}

/** What the README says of its commands. @param said by them */
function preventsTheDuplicate(said: string): void {
  const answers = said.split('HTTP/1.1 ').slice(1);
  assert.deepEqual(
    answers.map((answer) => [answer.slice(0, 3), answer.includes('Idempotent-Replayed: true')]),
    [
      ['201', false],
      ['201', true],
    ],
    said,
  );
  const [payments = ''] = /^\[\{"paymentId".*?\}\]/m.exec(said) ?? [];
  assert.equal(JSON.parse(payments).length, 1, said);
}

describe('the commands in the documents', () => {
  const all = pages.flatMap((page) =>
    blocksOf(page).flatMap(({ commands }) => commandsIn(commands).map((command) => ({ page, command }))),
  );
  const run = all.filter(({ command }) => !notRun.some(([pattern]) => pattern.test(command)));

  test('work in the order of the pages, before the demo', async (t) => {
    const copy = await copyOfRepository(t);
    const start =
      'npm run demo > demo.log 2>&1 &\nexport PENSTOCK_ADMIN_TOKEN=demo TOKEN=demo\n' +
      'until curl --silent --fail http://127.0.0.1:9090/health/ready; do sleep 0.2; done\n';
    const commands = withFewerStartsOfNpm(run.map(({ command }) => filledIn(command)));
    assert.ok(commands.some((command) => byNpm.test(command)));
    const script = commands.map((command, at) => `echo '--- ${run[at]?.page}'\n${command} || exit 9\n`);
    const { said, code } = await copy.run(copy.here(`${start}${script.join('')}kill %1`));
    assert.equal(code, 0, said);
    preventsTheDuplicate(said.split('--- docs/')[0] ?? '');
    t.diagnostic(`${run.length} of ${all.length} commands were run`);
  });

  test('are omitted for a reason that still holds', () => {
    assert.ok(run.length > 10);
    for (const [pattern] of notRun.filter(([{ source }]) => !/docker|kubectl|check/.test(source)))
      assert.ok(
        all.some(({ command }) => pattern.test(command)),
        `${pattern} leaves nothing out`,
      );
  });
});

/** `penstock serve` as a process of its own, with its two doors and its configuration file at hand. */

import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { type RunningCommand, startCommand, writeConfigFile } from './command.ts';
import { adminToken, type Sections, unlimited } from './gateway.ts';
import type { Life } from './life.ts';

export interface Served {
  readonly command: RunningCommand;
  readonly port: number;
  readonly url: string;
  readonly adminUrl: string;
  /** Runs another command of the same installation beside it, against its operators' door. */
  run(...args: readonly string[]): RunningCommand;
  /** Writes another configuration, or any text, into the file; nothing is told to the process. */
  rewrite(content: Sections | string): void;
}

const main = 'src/main.ts';

/** What differs from the process that most tests want. */
interface Wishes {
  /** Environment variables besides. */
  readonly variables?: Readonly<Record<string, string>>;
  /** A shell's words before the program, such as `ulimit -n 60; exec`. */
  readonly shell?: string;
}

/** A serving gateway on free ports; killed when the test ends, if it still runs. */
export async function startServed(
  t: Life,
  sections: Sections,
  { variables: besides = {}, shell = 'exec' }: Wishes = {},
): Promise<Served> {
  const file = writeConfigFile(t, stringify(onFreePorts(sections)));
  const variables = { PENSTOCK_ADMIN_TOKEN: adminToken, ...besides };
  const words = [process.execPath, main, 'serve', '--config', file];
  const command = startCommand(t, 'sh', ['-c', `${shell} "$@"`, 'sh', ...words], variables);
  await command.waitForOutput('"serving"');
  const [tppPort, adminPort] = ['tppSystems', 'operators'].map((door) => portIn(command, door));
  return {
    command,
    port: Number(tppPort),
    url: `http://127.0.0.1:${tppPort}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    run: (...args) =>
      startCommand(t, process.execPath, [main, ...args, '--config', file], {
        ...variables,
        PENSTOCK_ADMIN_PORT: String(adminPort),
      }),
    rewrite: (content) => {
      writeFileSync(file, typeof content === 'string' ? content : stringify(onFreePorts(content)));
    },
  };
}

const onFreePorts = (sections: Sections): Sections => ({
  listen: { port: 0 },
  admin: { port: 0 },
  ...unlimited(sections),
});

const portIn = (command: RunningCommand, door: string) =>
  new RegExp(`"${door}":"[^"]*:(\\d+)"`).exec(command.stdout())?.[1];

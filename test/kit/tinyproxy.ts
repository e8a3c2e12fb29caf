/** tinyproxy: the HTTP proxy between a gateway and banks. */

import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type LaunchedChild, launchChild } from './child-launcher.ts';
import { howToGetTinyproxy, tinyproxyIsRequired, tinyproxyProgram } from './find-tinyproxy.ts';
import { temporaryFolder } from './folder.ts';
import { freePort } from './ports.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export const skipWithoutTinyproxy: string | false =
  tinyproxyProgram() || tinyproxyIsRequired()
    ? false
    : `there is no tinyproxy; get one: ${howToGetTinyproxy}`;

export interface Tinyproxy {
  readonly url: string;
  /** Ends it at once, and with it all tunnels. */
  kill(): void;
}

/** @param lines further lines of its configuration, such as `BasicAuth user password` */
export async function startTinyproxy(life: TestScope, ...lines: readonly string[]): Promise<Tinyproxy> {
  const program = tinyproxyProgram();
  if (!program) throw new Error(`no tinyproxy to start: ${howToGetTinyproxy}`);
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const folder = temporaryFolder(life);
    const file = join(folder, 'tinyproxy.conf');
    const settings = [`Port ${port}`, 'Listen 127.0.0.1', 'Timeout 60', 'MaxClients 100', ...lines];
    writeFileSync(file, `${settings.join('\n')}\n`);
    const child = await launchChild(program, ['-d', '-c', file], folder);
    life.after(() => child.kill('SIGKILL'));
    if (await listens(port, child))
      return { url: `http://127.0.0.1:${port}`, kill: () => child.kill('SIGKILL') };
    if (tries === 3) throw new Error('tinyproxy ends as soon as it is started');
  }
}

async function listens(port: number, child: LaunchedChild): Promise<boolean> {
  let isOpen = false;
  await until(10_000, `tinyproxy listens on port ${port}`, async () => {
    isOpen = await canConnect(port);
    return isOpen || child.hasEnded();
  });
  return isOpen && !child.hasEnded();
}

const canConnect = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      resolve(true);
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
  });

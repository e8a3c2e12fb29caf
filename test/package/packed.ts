/** The image and the package of this checkout, built and installed once for all tests of this process. */

import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { textOf } from '../deploy/files.ts';
import { temporaryFolder } from '../kit/folder.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { buildImage, runShell } from './dockerfile.ts';

export interface Installation {
  /** The folder of the project. */
  readonly folder: string;
  /** What npm printed. */
  readonly output: string;
}

const untilExit: TestScope = { after: (end) => void process.once('exit', () => void end()) };

/** A folder for each stage of the Dockerfile, in place of its root directory, by the name of the stage. */
export const builtImage = once(() => buildImage(untilExit));

/** The file that `npm pack` creates in the first stage. */
export const packedFile = once((): string => {
  const folder = join(builtImage().get('package') ?? '', 'tmp');
  const [file, ...others] = globSync('*.tgz', { cwd: folder });
  if (file === undefined || others.length > 0)
    throw new Error('the first stage does not create one packed file');
  return join(folder, file);
});

/**
 * A project in which npm has installed the packed file, as its only dependency.
 *
 * Its lock file has the versions of this repository: a new release of a library must not change the result of a test.
 */
export const installation = once((): Installation => {
  const folder = temporaryFolder(untilExit);
  const { name, version, bin, engines, dependencies } = JSON.parse(textOf('package.json'));
  const resolved = `file:${packedFile()}`;
  const project = { private: true, type: 'module', dependencies: { [name]: resolved } };
  const locked = Object.entries<Locked>(JSON.parse(textOf('package-lock.json')).packages);
  const packages = {
    '': project,
    [`node_modules/${name}`]: { version, resolved, bin, engines, dependencies },
    ...Object.fromEntries(locked.filter(([path, { dev, link }]) => path !== '' && !dev && !link)),
  };
  const lock = { lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(project));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  return { folder, output: runShell('npm ci', folder) };
});

interface Locked {
  readonly dev?: boolean;
  readonly link?: boolean;
}

function once<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

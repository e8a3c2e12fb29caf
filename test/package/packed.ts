/** The image and the package of this checkout, built and installed once for all tests of this process. */

import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../kit/folder.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { buildImage, runShell } from './dockerfile.ts';

export interface Installation {
  /** The folder in which the packed file was installed, as its only dependency. */
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

/** An empty project in which the packed file was installed with npm. */
export const installation = once((): Installation => {
  const folder = temporaryFolder(untilExit);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  return { folder, output: runShell(`npm install ${packedFile()}`, folder) };
});

function once<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

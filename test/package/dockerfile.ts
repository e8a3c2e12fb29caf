/**
 * Reads the Dockerfile and executes its steps by hand: no container engine is needed.
 *
 * Each stage gets a folder in place of its root directory. The base image is this machine, and environment variables do not
 * apply to `RUN`. One step is replaced: the first `npm ci` would install what the repository has already installed, so
 * `node_modules` is linked.
 */

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { textOf } from '../deploy/files.ts';
import { root } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import type { TestScope } from '../kit/test-scope.ts';

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

export interface Stage {
  /** Such as `package`; empty for the last one. */
  readonly name: string;
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

/** The stages, with continued lines joined. */
export const stages: readonly Stage[] = stagesIn(textOf('Dockerfile'));

/** The values of all instructions of a name in a stage. */
export const valuesOf = (stage: Stage | undefined, wanted: string): readonly string[] =>
  (stage?.instructions ?? []).filter(({ name }) => name === wanted).map(({ rest }) => rest);

/** The variables or labels that `ENV` or `LABEL` sets. */
export const pairsOf = (
  stage: Stage | undefined,
  wanted: 'ENV' | 'LABEL',
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    valuesOf(stage, wanted).flatMap((line) =>
      Array.from(line.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g), ([, name, quoted, bare]) => [
        name,
        quoted ?? bare,
      ]),
    ),
  );

/** The words of an instruction in JSON form: `CMD ["serve"]`. */
export const wordsOf = (text = ''): readonly string[] => JSON.parse(text.slice(text.indexOf('[')));

/** The first `npm ci`, with the packages for development. */
const replacedStep = 'npm ci';

/**
 * Executes the steps of all stages.
 *
 * @returns a folder for each stage, in place of its root directory, by the name of the stage
 */
export function buildImage(scope: TestScope): ReadonlyMap<string, string> {
  const roots = new Map<string, string>();
  for (const stage of stages) {
    const stageRoot = temporaryFolder(scope);
    roots.set(stage.name, stageRoot);
    let folder = '/';
    for (const { name, rest } of stage.instructions) {
      if (name === 'WORKDIR') folder = rest;
      const here = join(stageRoot, folder);
      mkdirSync(here, { recursive: true });
      if (name === 'COPY') copy(rest, here, roots);
      if (name === 'RUN') run(rest, here, stageRoot);
    }
  }
  return roots;
}

function stagesIn(text: string): readonly Stage[] {
  const instructions = text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .flatMap((line) => {
      const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line.trim()) ?? [];
      return name === undefined || rest === undefined ? [] : [{ name, rest }];
    });
  const starts = instructions.flatMap(({ name }, index) => (name === 'FROM' ? [index] : []));
  return starts.map((start, index) => {
    const [, base = '', name = ''] = /^(\S+)(?: AS (\S+))?$/.exec(instructions[start]?.rest ?? '') ?? [];
    return { base, name, instructions: instructions.slice(start + 1, starts[index + 1]) };
  });
}

/**
 * `COPY` from the repository, or of one folder from another stage. A folder's contents are copied, not the folder itself.
 * What comes from another stage is moved: a copy of 10,000 files takes seconds.
 */
function copy(rest: string, here: string, roots: ReadonlyMap<string, string>): void {
  const [, stage, words = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
  const [target = '', ...sources] = words.split(' ').reverse();
  if (stage !== undefined) {
    renameSync(join(roots.get(stage) ?? '', sources.join(' ')), join(here, target));
    return;
  }
  for (const source of sources) {
    const path = join(root, source);
    const name = statSync(path).isDirectory() ? '' : basename(source);
    cpSync(path, join(here, target, name), { recursive: true });
  }
}

function run(command: string, here: string, stageRoot: string): void {
  if (command === replacedStep) {
    symlinkSync(join(root, 'node_modules'), join(here, 'node_modules'));
    return;
  }
  mkdirSync(join(stageRoot, 'tmp'), { recursive: true });
  const inStage = command.replaceAll(/(?<=[\s=])\/(?=(build|opt|tmp)\b)/g, `${stageRoot}/`);
  runShell(inStage, here);
}

/**
 * Runs a command of npm without the variables of the npm that runs the tests, and without requests that no test needs.
 *
 * @returns its output
 * @throws Error with the output, if it fails
 */
export function runShell(command: string, folder: string): string {
  const quiet = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true' };
  const variables = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_(registry|cache)$)/.test(name),
  );
  const { status, stdout } = spawnSync('sh', ['-c', `{ ${command}; } 2>&1`], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...Object.fromEntries(variables), ...quiet },
    timeout: 60_000,
  });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stdout}`);
  return stdout;
}

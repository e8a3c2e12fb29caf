/**
 * Everything that users see is in standard terms: documents, the files of a deployment, the console, and the texts of errors,
 * log lines and commands. Words of the project's first edition, which named things by metaphors, do not come back.
 */

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { root } from '../kit/command.ts';

/** Each with the standard term. */
const firstEdition: readonly (readonly [RegExp, string])[] = [
  [/\banew\b/i, 'again'],
  [/\bin vain\b/i, 'without success'],
  [/\bas it were\b/i, '(omit)'],
  [/\bmeanwhile\b/i, 'in the meantime, or a clause with "while"'],
  [/\bbesides\b/i, 'also'],
  [/\b(was|were|is|are|where .{1,20}) born\b/i, 'created'],
  [/\bpayments? liv(es|ed?)\b|\bwhere .{1,20} lives\b/i, 'belongs to'],
  [/\b(door|doors)\b/i, 'listener'],
  [/\boperators['’] (port|door|listener)\b|\bport for operators\b/i, 'admin listener'],
  [/\b(its|their) turn\b|\b(waits?|waiting) for (a|the) turn\b/i, 'permit, queue'],
  [/\b(owe[sd]?|owing)\b/i, 'pending'],
  [/\bbreath\b/i, 'batch, tick'],
  [/\b(heart|pulse)\b/i, 'heartbeat'],
  [/\b(is|are|was|were|been|be|get|gets) told\b(?! apart)|\btold (that|in)\b/i, 'is notified, gets'],
  [/\bhears?\b|\bheard\b/i, 'receives'],
  [/\bbeliev(e|es|ed|ing)\b/i, 'trust, accept'],
  [/\bwhoever\b|\bwho (waits|shows|falls|can do harm)\b/i, 'a noun'],
  [/\bnobody (knows|remembers|reads|can tell)\b/i, 'it is unknown; no instance has a record'],
  [/\bstand(s|ing)? (there|in (the|every|an?|links)\b)|\bwhat stands\b/i, 'is'],
  [/\bbecame of\b|\bbecomes of\b/i, 'the result of'],
  [
    /\b(faults?|mistakes?) (in|of) (the|a) configuration\b|\b(is|are) (one|\d+|\$\{[^}]*\}) faults?\b|\bevery fault\b/i,
    'error',
  ],
  [/\bfaulty\b(?! or compromised)/i, 'invalid'],
  [/\bthere is no such (setting|key)\b|\bone that is there\b/i, 'unknown key; ENOENT'],
  [/\b(is|are|be) over since\b|\bcertificate is over\b/i, 'expired'],
  [/\blet end\b|\blets? (running|all) requests end\b/i, 'drain'],
  [/\bmay look\b/i, 'read-only'],
  [/\bgive the order\b/i, 'apply'],
  [/\bin trouble\b|\bout of reach\b/i, 'unavailable'],
  [/\bforget(s|ting)? (cached|statuses|which)\b/i, 'purge, lose'],
  [/\bQSEAL\b/, 'QSealC'],
  [/\balarms?\b/i, 'alert'],
  [/\b(a|as a|the|several|all) doubts?\b|\bdoubts\b/i, 'in doubt'],
  [/\btr(y|ies|ied) (it|the bank|that bank|an environment|the environment) out\b/i, 'pre-flight, test'],
  [/\ball the same\b/i, 'anyway'],
  [/\bcaller (has )?left\b/i, 'client disconnected'],
  [/\basked of\b/i, 'requirements of'],
  [/\bWhy it is so\b|\bit is so\b/i, 'Decisions'],
];

/** Names that contracts or stored data fix, and quotations of what must be avoided. */
const allowed: readonly (readonly [file: RegExp, text: RegExp, reason: string])[] = [];

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const filesOf = (...patterns: readonly string[]) =>
  patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).toSorted();

/** Comments, and strings in single quotes, double quotes and backticks. */
const commentsAndStrings =
  /\/\/.*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

/** The string literals that are texts: those with a space, without the code in `${}`. */
const stringsIn = (code: string): readonly string[] =>
  [...code.matchAll(commentsAndStrings)]
    .map(([found]) => found)
    .filter((found) => /^['"`]/.test(found) && found.includes(' '))
    .map((found) => found.replaceAll(/\$\{[^}]*\}/g, '…'));

/** What users see, as lines. */
const seen: readonly (readonly [file: string, line: string])[] = [
  ...filesOf(
    '*.md',
    'docs/**/*.md',
    'docs/{openapi,tpp-openapi}.yaml',
    'config/**/*.{yaml,json}',
    'examples/banks/*.yaml',
    'deploy/**/*.{yaml,json,md,tpl,conf,service}',
  )
    .concat(filesOf('compose.yaml', 'Dockerfile', 'deploy/systemd/*', 'src/admin/console/*.html'))
    .flatMap((file) =>
      textOf(file)
        .split('\n')
        .map((line) => [file, line] as const),
    ),
  ...filesOf('src/**/*.{ts,js}', 'bin/*', 'scripts/*.ts').flatMap((file) =>
    stringsIn(textOf(file)).map((text) => [file, text] as const),
  ),
];

describe('the texts that users see', () => {
  test('contain no words of the first edition', () => {
    const found = seen.flatMap(([file, line]) =>
      firstEdition
        .filter(([pattern]) => pattern.test(line))
        .filter(() => !allowed.some(([inFile, text]) => inFile.test(file) && text.test(line)))
        .map(([pattern, instead]) => `${file}: "${pattern.exec(line)?.[0]}" (${instead}): ${line.trim()}`),
    );
    assert.ok(seen.length > 5_000, 'the texts were found');
    assert.deepEqual(found, []);
  });

  test('need the exceptions that are listed', () => {
    const unused = allowed.filter(
      ([file, text]) => !seen.some(([name, line]) => file.test(name) && text.test(line)),
    );
    assert.deepEqual(unused, []);
  });
});

/** The error reference: both pages, and the links to them. */

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { errorDescriptions } from '../../scripts/docs/error-descriptions.ts';
import { errorResponse } from '../../src/http/write-error.ts';
import { type ErrorCode, errorTable, GatewayError } from '../../src/request/errors.ts';
import { root } from '../kit/command.ts';

const codes = Object.keys(errorTable) as ErrorCode[]; // the keys of a record are its keys
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** The string literals of the source, with adjacent ones joined. */
const source = globSync('src/**/*.ts', { cwd: root })
  .map((file) => textOf(file).replaceAll(/['`] \+\s*['`]/g, ''))
  .join('\n')
  .replaceAll('\\', '');

describe('the error reference', () => {
  test('has the anchor that each error links to, as Markdown and as HTML', () => {
    const headings = [...textOf('docs/errors.md').matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading);
    const ids = [...textOf('src/admin/console/errors.html').matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    for (const code of codes) {
      const { headers } = errorResponse(new GatewayError(code, 'No.'), {
        requestId: '',
        accept: undefined,
        errorPageUrl: 'https://tpp.example/errors',
      });
      const link = headers.find(([field]) => field === 'Link')?.[1] ?? '';
      const [, anchor = ''] = /^<https:\/\/tpp\.example\/errors#(.+)>; rel="help"$/.exec(link) ?? [];
      assert.equal(anchor, code.toLowerCase());
      assert.ok(
        headings.some((heading) => heading.toLowerCase() === anchor),
        code,
      );
      assert.ok(ids.includes(anchor), code);
    }
    assert.equal(headings.length, codes.length);
  });

  test('shows texts that the gateway uses', () => {
    const reserved: readonly ErrorCode[] = ['DRAINING'];
    const unknown = codes
      .filter((code) => !reserved.includes(code))
      .flatMap((code) => errorDescriptions[code].example.text.split(/[;:,.] ?/))
      .map((part) => part.trim())
      // Numbers and names are inserted by the source.
      .filter(
        (part) => part.length > 10 && !/\d|\b(GET|sandbox|production|content-type)\b|\ba query\b/.test(part),
      )
      .filter((part) => !source.includes(part));
    assert.deepEqual(unknown, []);
  });
});

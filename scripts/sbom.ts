/**
 * Writes `penstock.cdx.json`: the bill of materials, made of `package.json` and `package-lock.json`.
 *
 * The same lock file gives the same bytes: it can be compared, signed, and made again by whoever doubts it.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOf } from './supply/bill-of-materials.ts';

const root = join(import.meta.dirname, '..');
const file = 'penstock.cdx.json';

const bill = billOf(
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')),
  JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')),
);
writeFileSync(join(root, file), `${JSON.stringify(bill, null, 2)}\n`);
console.log(`wrote ${file}: ${bill.components.length} components`);

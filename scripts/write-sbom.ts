/** Writes the bill of materials that npm creates (ADR 61) to penstock.cdx.json. */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const options = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];

const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const bill = JSON.parse(execFileSync('npm', ['sbom', ...options], { cwd: root, encoding: 'utf8' }));
bill.metadata.component.name = name; // npm writes the name of the folder
writeFileSync(join(root, 'penstock.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);

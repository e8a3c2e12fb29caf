/**
 * Writes every file that is generated from the source.
 *
 * `--check` writes nothing, lists the stale files, and exits with 1 if there are any.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { alertsPage, prometheusAlerts } from './docs/alerts.ts';
import { commandsPage } from './docs/commands.ts';
import { configurationPage, configurationSchema } from './docs/configuration.ts';
import { errorsHtml, errorsPage } from './docs/errors.ts';
import { chartDashboard, chartValuesSchema } from './docs/helm.ts';
import { ledgerPage } from './docs/ledger.ts';
import { metricsPage } from './docs/metrics.ts';
import { openapiPage, tppOpenapiPage } from './docs/openapi.ts';

interface GeneratedFile {
  readonly file: string;
  readonly content: () => string;
}

const generated: readonly GeneratedFile[] = [
  { file: 'docs/configuration.md', content: configurationPage },
  { file: 'config/penstock.schema.json', content: configurationSchema },
  { file: 'docs/operations/commands.md', content: commandsPage },
  { file: 'docs/errors.md', content: errorsPage },
  { file: 'src/admin/console/errors.html', content: errorsHtml },
  { file: 'docs/metrics.md', content: metricsPage },
  { file: 'docs/architecture/ledger.md', content: ledgerPage },
  { file: 'docs/openapi.yaml', content: openapiPage },
  { file: 'docs/tpp-openapi.yaml', content: tppOpenapiPage },
  { file: 'deploy/helm/penstock/values.schema.json', content: chartValuesSchema },
  { file: 'docs/operations/alerts.md', content: alertsPage },
  { file: 'deploy/prometheus/alerts.yaml', content: prometheusAlerts },
  { file: 'deploy/helm/penstock/files/alerts.yaml', content: prometheusAlerts },
  { file: 'deploy/helm/penstock/files/dashboard.json', content: chartDashboard },
];

const stale = generated.filter(({ file, content }) => textOf(file) !== content());

if (process.argv.includes('--check')) {
  for (const { file } of stale) console.error(`${file} is stale; run: npm run docs`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  stale.forEach(write);
}

function write({ file, content }: GeneratedFile): void {
  mkdirSync(dirname(inRepository(file)), { recursive: true });
  writeFileSync(inRepository(file), content());
  console.log(`wrote ${file}`);
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(inRepository(file), 'utf8');
  } catch {
    return undefined;
  }
}

function inRepository(file: string): string {
  return fileURLToPath(new URL(`../${file}`, import.meta.url));
}

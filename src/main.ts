#!/usr/bin/env node
/** The command line: parses the arguments, loads the configuration and runs the command. */

import { parseArgs } from 'node:util';
import { type AdminClient, createAdminClient } from './commands/admin-client.ts';
import { verifyAudit } from './commands/audit.ts';
import { checkState } from './commands/check-state.ts';
import { showCircuits } from './commands/circuits.ts';
import type { CommandOutput } from './commands/command-output.ts';
import { showEnvironments, useEnvironment } from './commands/environment.ts';
import { explain } from './commands/explain.ts';
import { previewInDoubt, resolveInDoubt, resolveSeveralInDoubt, showInDoubt } from './commands/in-doubt.ts';
import { acceptLoss, showState } from './commands/state.ts';
import { describeDerived } from './config/derive-defaults.ts';
import { configSource, loadConfig, loadConfigAndFiles } from './config/load.ts';
import type { ValidConfig } from './config/validate.ts';

const usage = `Usage: penstock COMMAND [--config FILE]

  serve                       run the gateway; SIGHUP reloads the configuration
  check                       validate the configuration, show which defaults follow other settings, and report
                              whether its Redis may lose data
  environment                 show the environments of the running gateway, and which one is active
  environment use NAME --reason TEXT [--confirm NAME] [--force]
                              send new payments to NAME; production must be confirmed by its name
  circuits                    show the circuits of the running gateway
  explain X-REQUEST-ID        show what the running gateway did with a request, step by step
  in-doubt                    list the requests for which it is unknown whether the bank carried them out
  in-doubt ID happened --reason TEXT [--payment PAYMENT-ID]
  in-doubt ID did-not-happen --reason TEXT
                              record what the bank says about one of them
  in-doubt --environment NAME [--tenant NAME] [--from TIME] [--to TIME] [--why TEXT]
                              list those that match a filter
  in-doubt all happened|did-not-happen --environment NAME [...] --selection SELECTION --reason TEXT [--confirm NAME]
                              record what the bank says about all that match, as listed before
  state                       show whether the shared state has lost data, and what new payments wait for
  state accept-loss --reason TEXT
                              accept new payments although the state may have lost earlier ones
  audit verify                check the chain of the audit log
  openapi                     print the OpenAPI description of the public API and the admin API

The configuration is FILE, or the file that PENSTOCK_CONFIG names; an environment variable can override any
setting (docs/configuration.md). Commands for a running gateway find its admin listener in the configuration
and authenticate with PENSTOCK_ADMIN_TOKEN or admin.tokenFile.`;

/** Exit codes of sysexits.h: wrong usage, wrong configuration. */
const exitUsage = 64;
const exitConfig = 78;

// `serve` and `openapi` load their modules themselves: the other commands start in half of the time without them.
const { words, values } = commandLine();
switch (words.join(' ')) {
  case 'serve': {
    const { serve } = await import('./commands/serve.ts');
    await serve(validConfig(loadConfigAndFiles), () => loadConfigAndFiles(configSource(values.config)));
    break;
  }
  case 'check': {
    const { config, derived } = validConfig(loadConfigAndFiles);
    const { lines, exitCode } = await checkState(config.state);
    console.log(['The configuration is valid.', ...derived.map(describeDerived), ...lines].join('\n'));
    process.exitCode = exitCode;
    break;
  }
  case 'environment':
    await runCommand(showEnvironments);
    break;
  case `environment use ${words[2]}`:
    await runCommand((call) =>
      useEnvironment(call, { ...values, environment: words[2] ?? '', reason: reason() }),
    );
    break;
  case 'circuits':
    await runCommand(showCircuits);
    break;
  case `explain ${words[1]}`:
    await runCommand((call) => explain(call, words[1] ?? ''));
    break;
  case 'in-doubt':
    await runCommand((call) =>
      values.environment === undefined ? showInDoubt(call) : previewInDoubt(call, filter()),
    );
    break;
  case 'in-doubt all happened':
  case 'in-doubt all did-not-happen': {
    const {
      selection = exit(exitUsage, 'List the requests first, and name what it shows: --selection SELECTION'),
    } = values;
    const { confirm } = values;
    const resolution = { ...filter(), outcome: words[2] ?? '', selection, confirm, reason: reason() };
    await runCommand((call) => resolveSeveralInDoubt(call, resolution));
    break;
  }
  case `in-doubt ${words[1]} happened`:
  case `in-doubt ${words[1]} did-not-happen`:
    await runCommand((call) =>
      resolveInDoubt(call, { ...values, id: words[1] ?? '', outcome: words[2] ?? '', reason: reason() }),
    );
    break;
  case 'state':
    await runCommand(showState);
    break;
  case 'state accept-loss':
    await runCommand((call) => acceptLoss(call, reason()));
    break;
  case 'audit verify':
    await runCommand(verifyAudit);
    break;
  case 'openapi': {
    const { openapiYaml } = await import('./admin/openapi/document.ts');
    console.log(openapiYaml().trimEnd());
    break;
  }
  default:
    exit(exitUsage, usage);
}

function commandLine() {
  try {
    const { positionals, values: given } = parseArgs({
      allowPositionals: true,
      options: {
        config: { type: 'string' },
        reason: { type: 'string' },
        payment: { type: 'string' },
        confirm: { type: 'string' },
        environment: { type: 'string' },
        tenant: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        why: { type: 'string' },
        selection: { type: 'string' },
        force: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    });
    if (given.help) exit(0, usage);
    return { words: positionals, values: given };
  } catch (cause) {
    return exit(exitUsage, `${messageOf(cause)}\n\n${usage}`);
  }
}

function reason(): string {
  return values.reason ?? exit(exitUsage, 'Say why, for the audit log: --reason TEXT');
}

function filter() {
  const { environment, tenant, from, to, why } = values;
  const missing = 'Say in which environment: --environment NAME';
  return { environment: environment ?? exit(exitUsage, missing), tenant, from, to, why };
}

/** Does not read the files that the configuration names by default: an operator may not be allowed to read the keys. */
function validConfig(load = loadConfig): ValidConfig {
  const loaded = load(configSource(values.config));
  if (loaded.kind === 'valid') return loaded;
  const count = loaded.errors.length === 1 ? 'is one fault' : `are ${loaded.errors.length} faults`;
  return exit(exitConfig, [`There ${count} in the configuration:`, ...loaded.errors].join('\n'));
}

/** Runs a command that calls the admin API of the running gateway. */
async function runCommand(command: (call: AdminClient) => Promise<CommandOutput>): Promise<void> {
  try {
    const { lines, exitCode } = await command(createAdminClient(validConfig().config));
    console.log(lines.join('\n'));
    process.exitCode = exitCode;
  } catch (cause) {
    exit(1, messageOf(cause));
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function exit(code: number, text: string): never {
  (code === 0 ? process.stdout : process.stderr).write(`${text}\n`);
  process.exit(code);
}

#!/usr/bin/env node
/** The command line: serve, check. */

import { parseArgs } from 'node:util';
import { configSource, loadConfig } from './config/load.ts';
import { notInEffectYet } from './config/not-in-effect.ts';
import type { Config } from './config/schema.ts';
import { createGateway } from './gateway.ts';
import { createLog } from './telemetry/log.ts';

const usage = `Usage: penstock COMMAND [--config FILE]

  serve    run the gateway
  check    say what is wrong with the configuration, and do nothing else

The configuration is FILE, or the file that PENSTOCK_CONFIG names; any setting can be overridden by an
environment variable. See docs/configuration.md.`;

/** Exit codes of sysexits.h: the command line is wrong, the configuration is wrong. */
const exitUsage = 64;
const exitConfig = 78;

const commands: Readonly<Record<string, (config: Config) => Promise<void>>> = {
  serve,
  check: async () => console.log('The configuration is valid.'),
};

const { name, configFile } = commandLine();
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (!command) leave(exitUsage, usage);
await command(validConfig(configFile));

async function serve(config: Config): Promise<void> {
  const log = createLog(config.log);
  for (const sentence of notInEffectYet(config)) log('warn', sentence);

  const gateway = createGateway(config, log);
  const { tppPort, adminPort } = await gateway.start().catch((cause: unknown): never => {
    log('error', 'the gateway cannot start', { why: String(cause) });
    process.exit(1);
  });
  log('info', 'serving', {
    tppSystems: `${config.listen.host}:${tppPort}`,
    operators: `${config.admin.host}:${adminPort}`,
    publicUrl: config.listen.publicUrl,
    environment: config.environments.active,
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, async () => {
      log('info', 'stopping', { signal });
      await gateway.stop();
      log('info', 'stopped');
    });
  }
}

function commandLine(): { readonly name: string; readonly configFile: string | undefined } {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
    if (values.help) leave(0, usage);
    return { name: positionals.length === 1 ? (positionals[0] ?? '') : '', configFile: values.config };
  } catch (cause) {
    return leave(exitUsage, `${cause instanceof Error ? cause.message : cause}\n\n${usage}`);
  }
}

function validConfig(file: string | undefined): Config {
  const loaded = loadConfig(configSource(file));
  if (loaded.kind === 'valid') return loaded.config;
  const count = loaded.faults.length === 1 ? 'is one fault' : `are ${loaded.faults.length} faults`;
  return leave(exitConfig, [`There ${count} in the configuration:`, ...loaded.faults].join('\n'));
}

function leave(code: number, text: string): never {
  (code === 0 ? process.stdout : process.stderr).write(`${text}\n`);
  process.exit(code);
}

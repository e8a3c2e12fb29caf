#!/usr/bin/env node
// The command line. On a Node too old to run TypeScript it starts itself again with the Node of this installation.
'use strict';
const { spawn } = require('node:child_process');
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const main = join(__dirname, '..', 'src', 'main.ts');
const [major, minor] = process.versions.node.split('.').map(Number);

if (major > 24 || (major === 24 && minor >= 14)) {
  process.argv[1] = main;
  import(main);
} else {
  const newer = join(__dirname, '..', 'node_modules', '.bin', 'node');
  if (!existsSync(newer)) {
    console.error(
      `penstock needs Node 24.14 or newer; this is ${process.version}, and no newer one is installed beside it.`,
    );
    process.exit(1);
  }
  const child = spawn(newer, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code) => process.exit(code ?? 1));
}

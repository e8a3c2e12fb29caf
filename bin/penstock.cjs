#!/usr/bin/env node
// The command. Runs the compiled files of the package, or the sources of a checkout. On a Node too old for the gateway, a
// checkout starts itself again with the Node that `npm ci` has installed.
'use strict';
const { spawn } = require('node:child_process');
const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

const root = join(__dirname, '..');
const source = join(root, 'src', 'main.ts');
const main = existsSync(source) ? source : join(root, 'dist', 'main.js');
const [major, minor] = process.versions.node.split('.').map(Number);

// npx passes no signal on: without this, the command would continue to run after `kill` has ended npx.
if (process.env.npm_lifecycle_event === 'npx') {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  watch.unref();
}

if (major > 24 || (major === 24 && minor >= 14)) {
  process.argv[1] = main;
  import(pathToFileURL(main));
} else {
  const newer = join(root, 'node_modules', '.bin', 'node');
  if (!existsSync(newer)) {
    console.error(
      `penstock needs Node 24.14 or newer (24 or 26); this is ${process.version}. Install a newer Node, or use the container image.`,
    );
    process.exit(1);
  }
  const child = spawn(newer, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  // Ctrl-C reaches both processes. Two SIGINT would make the gateway exit at once, instead of draining.
  const isFromTerminal = (signal) => signal === 'SIGINT' && process.stdin.isTTY;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => isFromTerminal(signal) || child.kill(signal));
  child.on('exit', (code) => process.exit(code ?? 1));
}

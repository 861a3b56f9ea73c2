#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';

// The entry that any Node can read: it says one sentence where TypeScript sources would die with a riddle.
// Node would open its debugger at this signal, and with it every key in memory; `--disable-sigusr1` says the same where it is given.
process.on('SIGUSR1', () => {});
const [major] = process.versions.node.split('.').map(Number);
if (major < 24) {
  console.error(
    `transitd needs Node.js 24, this is ${process.versions.node}; start it by "npm start" or with node_modules/.bin/node`,
  );
  process.exit(1);
}
// Crypto, TLS and the file system share libuv's pool; it reads its size when it is first used (design: at least 8).
process.env.UV_THREADPOOL_SIZE ??= '8';
process.umask(0o077);
// Types are stripped and code is compiled once, not at every start (decision 71). Where that folder cannot be written, nothing is stored.
module.enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/transitd'));
await import('./src/main.ts');

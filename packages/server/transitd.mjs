#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';

// Every version of Node can run this file. A version that is too old prints one clear sentence here; TypeScript sources would fail with a
// confusing syntax error.

// By default SIGUSR1 opens Node's debugger, which exposes every key in memory. Node's flag `--disable-sigusr1` has the same effect as this
// line, where the flag is set.
process.on('SIGUSR1', () => {});
// Earlier releases of Node 24 lack ML-DSA and the contexts of Ed25519. A test compares this with the release that a checkout installs.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 21)) {
  console.error(
    `transitd needs Node.js 24.21 or later, this is ${process.versions.node}; "npm start" in a checkout uses it, and the release archives include it`,
  );
  process.exit(1);
}
// Cryptography, the file system and the storage share libuv's pool, with all gateway threads. Cryptography uses at most half of 32 threads
// (native-signature.ts), so that the log is synced at once. The pool reads its size when it is first used.
process.env.UV_THREADPOOL_SIZE ??= '32';
process.umask(0o077);
// The sources are compiled once, not at every start (README.md). If the process cannot write to this folder, nothing is stored.
module.enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/transitd'));
await import('./src/main.ts');

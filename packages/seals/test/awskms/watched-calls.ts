// Calls an awskms seal in a process of its own, and prints which files outside this repository it opened, where it connected, and which
// packages of AWS it had loaded before its first call. Arguments: the addresses of the mocks of AWS KMS and AWS STS.
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { join, resolve } from 'node:path';

const [, , kms = '', sts = ''] = process.argv;
const root = resolve(import.meta.dirname, '../../../..');
const [files, connections] = [new Set<string>(), new Set<string>()];

/** Replaces the functions that take a path by ones that record it. */
function watch(functions: object): void {
  for (const [name, original] of Object.entries(functions)) {
    if (typeof original !== 'function' || !/^(access|createReadStream|exists|open|read|realpath|stat|lstat)/.test(name)) continue;
    const watched = (...args: readonly unknown[]): unknown => {
      const [path] = args;
      if ((typeof path === 'string' || path instanceof URL) && !resolve(String(path)).startsWith(root)) files.add(String(path));
      return Reflect.apply(original, functions, args);
    };
    Reflect.set(functions, name, Object.assign(watched, original));
  }
}
watch(fs);
watch(fs.promises);
syncBuiltinESMExports();
const { connect: connectSocket } = net.Socket.prototype;
net.Socket.prototype.connect = function (this: net.Socket, ...args: never[]) {
  const [options] = [args[0]].flat() as unknown as { readonly host?: string; readonly port?: number }[];
  connections.add(`http://${options?.host}:${options?.port}`);
  return Reflect.apply(connectSocket, this, args);
} as typeof connectSocket;

const { cloudSeal } = await import('../../src/cloud-seal.ts');
const { exchangeWith } = await import('../../src/http/exchange.ts');
const seal = cloudSeal(
  { type: 'awskms', region: 'eu-central-1', kms_key_id: 'one', endpoint: kms, role_arn: 'arn:aws:iam::111122223333:role/unseal' },
  {
    env: process.env,
    connect: (address) => exchangeWith(address.includes('//sts.') ? sts : address, { skipVerify: false }),
    nowMs: () => Date.now(),
  },
);
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => /@(aws-sdk|smithy)/.test(path));
files.clear();
const key = Buffer.alloc(32, 7);
const opened = await seal.unwrap(await seal.wrap(key));
if (!opened.equals(key)) throw new Error('another key');
await seal.random?.(32);
const home = join(process.env['HOME'] ?? '', '.aws');
console.log(
  JSON.stringify({ loaded, files: [...files].map((path) => path.replace(home, '~/.aws')), connections: [...connections] }),
);

// `npm run cluster [-- --data-dir .transitd] [--port 8200]`: three nodes in one terminal that initialize, unseal and join by themselves.
// NOT FOR PRODUCTION: the seal key and the root token are stored beside the data. A second run continues with the same data.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { 'data-dir': { type: 'string', default: '.transitd' }, port: { type: 'string', default: '8200' } },
});
const firstPort = Number(values.port);
const folder = resolve(values['data-dir']);
const data = join(folder, 'cluster');
const secrets = join(folder, 'dev-cluster');
const sealKeyFile = join(secrets, 'seal.key');
const tokenFile = join(secrets, 'root-token');
const root = join(import.meta.dirname, '..');

interface DevNode {
  readonly name: string;
  readonly address: string;
  readonly color: number;
  child: ChildProcess | undefined;
}

const nodes: readonly DevNode[] = [36, 33, 35].map((color, i) => ({
  name: `n${i + 1}`,
  address: `http://127.0.0.1:${firstPort + 10 * i}`,
  color,
  child: undefined,
}));
let stopping = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
try {
  prepare();
  for (const node of nodes) start(node);
  const rootToken = await found();
  await Promise.all(nodes.map(({ address }) => answers(address, 200, 473)));
  welcome(rootToken);
} catch (error) {
  if (!stopping) console.error(`cluster: ${error instanceof Error ? error.message : error}`);
  await stop(1);
}

/** Creates folders, seal key and configurations of the nodes. @throws if a part of an earlier run is missing */
function prepare(): void {
  if (!Number.isInteger(firstPort) || firstPort < 1 || firstPort > 65_000)
    throw new Error('--port is not a port number below 65000');
  const isFirstRun = !existsSync(data);
  mkdirSync(secrets, { recursive: true, mode: 0o700 });
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (!existsSync(sealKeyFile)) {
    if (!isFirstRun) throw new Error(`${sealKeyFile} is missing: without it the data in ${data} cannot be opened`);
    writeFileSync(sealKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  }
  for (const [index, { name, address }] of nodes.entries()) {
    const port = firstPort + 10 * index;
    const config = {
      node_id: name,
      data_dir: join(data, name),
      api_addr: address,
      cluster_addr: `127.0.0.1:${port + 1}`,
      listeners: [{ address: `127.0.0.1:${port}`, tls_disable: true }],
      seal: { type: 'static', key_id: 'dev', key_file: sealKeyFile },
      // The first node creates the cluster; the others try all nodes until one admits them.
      ...(index > 0 && { retry_join: nodes.filter((node) => node.name !== name).map((node) => node.address) }),
      log: { format: 'pretty', level: 'info' },
    };
    writeFileSync(configOf(name), `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
  }
}

function configOf(name: string): string {
  return join(secrets, `${name}.json`);
}

/** Starts a node in its own process group: Ctrl-C reaches only this process, which sends the signal to the node once. */
function start(node: DevNode): void {
  const command = [join(root, 'packages/server/transitd.mjs'), 'server', '--config', configOf(node.name)];
  const child = spawn(process.execPath, ['--disable-sigusr1', '--max-semi-space-size=8', ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  node.child = child;
  const label = process.stdout.isTTY ? `\u001b[${node.color}m${node.name} │\u001b[0m` : `${node.name} │`;
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => console.log(`${label} ${line}`));
  child.on('exit', (code, signal) => {
    if (stopping) return;
    console.error(`cluster: ${node.name} ended by itself (${code ?? signal}); the others are stopped`);
    void stop(1);
  });
}

/** Initializes the first node unless it is initialized. Returns the root token. */
async function found(): Promise<string> {
  const address = nodes[0]?.address ?? '';
  const code = await answers(address, 200, 429, 473, 474, 501);
  if (code !== 501) {
    if (existsSync(tokenFile)) return readFileSync(tokenFile, 'utf8').trim();
    throw new Error(`${tokenFile} is missing: write the root token into it, or remove ${data} and ${secrets} and start again`);
  }
  const body = JSON.stringify({ recovery_shares: 1, recovery_threshold: 1 });
  const response = await fetch(`${address}/v1/sys/init`, { method: 'PUT', body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`init: ${response.status} ${text}`);
  const { root_token } = JSON.parse(text) as { root_token: string };
  writeFileSync(tokenFile, `${root_token}\n`, { mode: 0o600, flush: true });
  return root_token;
}

/** Waits until health answers one of these codes, or until this process is stopped. */
async function answers(address: string, ...codes: readonly number[]): Promise<number> {
  while (!stopping) {
    const code = await fetch(`${address}/v1/sys/health`).then(
      ({ status }) => status,
      () => undefined,
    );
    if (code !== undefined && codes.includes(code)) return code;
    await delay(50);
  }
  throw new Error('stopped');
}

function welcome(rootToken: string): void {
  const curl = `curl -s -H "X-Service-Token: ${rootToken}"`;
  const [first, second] = nodes.map(({ address }) => address);
  process.stdout.write(`
Three nodes are running. They initialized, unsealed and joined by themselves: NOT FOR PRODUCTION.
Their seal key and root token are in ${secrets}: whoever can read this folder has every key.

  addresses   ${nodes.map(({ name, address }) => `${name} ${address}`).join('   ')}
  root token  ${rootToken}

Try it: encrypt through one node, decrypt through another, and stop the active one in between.

  ${curl} ${first}/v1/transit/encrypt/my-key -d "{\\"plaintext\\": \\"$(printf 'hello' | base64)\\"}"
  ${curl} ${second}/v1/transit/decrypt/my-key -d '{"ciphertext": "…paste it here…"}'
  ${curl} -X PUT ${second}/v1/sys/step-down
  curl -s ${first}/v1/sys/health

Ctrl-C stops all three.

`);
}

async function stop(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  const ends = nodes.map(({ child }) => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return undefined;
    child.kill('SIGTERM');
    return new Promise((resolve) => child.once('close', resolve));
  });
  await Promise.all(ends);
  process.exit(code);
}

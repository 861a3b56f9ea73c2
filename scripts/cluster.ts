// `npm run cluster [-- --load] [--data-dir .transitd] [--port 8200] [--log-level error]`: three nodes in one terminal that initialize,
// unseal and join by themselves. A node that dies is started again. Key presses kill a node, pause it, disconnect it or slow its disk. With
// `--load`, a small load runs beside it and shows its figures. NOT FOR PRODUCTION: the seal key and the root token are stored beside the
// data. A second run continues with the same data.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isFree } from '../test/cluster/harness/free-port.ts';
import { LinkProxy } from '../test/cluster/harness/link-proxy.ts';
import { entry } from '../test/process/live-server.ts';
import { DevNode, sourceOf } from './cluster/dev-node.ts';
import { Load } from './cluster/load.ts';
import { readKeys, Screen } from './cluster/terminal.ts';
import { healthOf, Watch } from './cluster/watch.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string', default: '.transitd' },
    port: { type: 'string', default: '8200' },
    load: { type: 'boolean', default: false },
    'log-level': { type: 'string', default: 'error' },
  },
});
const firstPort = Number(values.port);
const folder = resolve(values['data-dir']);
const data = join(folder, 'cluster');
const secrets = join(folder, 'dev-cluster');
const sealKeyFile = join(secrets, 'seal.key');
const tokenFile = join(secrets, 'root-token');
/** A cluster port behind a proxy needs a loopback address of its own for each node, which only Linux has without setup. */
const withProxies = values.load && process.platform === 'linux';

const screen = new Screen(process.stdout);
const nodes: readonly DevNode[] = [36, 33, 35].map((color, i) => {
  const name = `n${i + 1}`;
  return new DevNode({
    name,
    address: `http://127.0.0.1:${firstPort + 10 * i}`,
    color: process.stdout.isTTY ? color : undefined,
    command: [entry, 'server', '--config', configOf(name)],
    print: (line) => screen.print(line),
    onFailed: () => void stop(1),
  });
});
const watch = new Watch(nodes);
let load: Load | undefined;
let stopping = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
try {
  prepare();
  await requireFreePorts();
  if (withProxies) for (const node of nodes) node.proxy = await proxyOf(node);
  for (const node of nodes) node.start();
  const rootToken = await found();
  void watch.run();
  while (!watch.hasSeenAll && !stopping) await delay(50);
  if (!stopping) {
    welcome(rootToken);
    listenForKeys();
    if (values.load) {
      load = new Load({ nodes, token: rootToken, show: (figures) => screen.show(figures) });
      void load.run();
    }
  }
} catch (error) {
  if (!stopping) console.error(`cluster: ${error instanceof Error ? error.message : error}`);
  await stop(1);
}

/** Creates folders, seal key and configurations of the nodes. @throws if a part of an earlier run is missing or had another port */
function prepare(): void {
  if (!Number.isInteger(firstPort) || firstPort < 1 || firstPort > 65_000)
    throw new Error('--port is not a port number below 65000');
  requireSamePort();
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
      // Behind a proxy, the address also tells the proxies of the other nodes which node calls.
      ...(withProxies && { cluster_listen: `${sourceOf({ name })}:${port + 1}` }),
      listeners: [{ address: `127.0.0.1:${port}`, tls_disable: true }],
      ui: true,
      seal: { type: 'static', key_id: 'dev', key_file: sealKeyFile },
      // The first node creates the cluster; the others try all nodes until one admits them.
      ...(index > 0 && { retry_join: nodes.filter((node) => node.name !== name).map((node) => node.address) }),
      log: { format: 'pretty', level: values['log-level'] },
    };
    writeFileSync(configOf(name), `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
  }
}

/** The members know each other by the addresses of the first run, and would not find each other elsewhere. @throws if the port differs */
function requireSamePort(): void {
  const [first] = nodes;
  if (first === undefined || !existsSync(tokenFile) || !existsSync(configOf(first.name))) return;
  const { api_addr } = JSON.parse(readFileSync(configOf(first.name), 'utf8')) as { readonly api_addr: string };
  if (api_addr === first.address) return;
  const { port } = new URL(api_addr);
  throw new Error(`the cluster in ${folder} was created with --port ${port}: use this port, or another --data-dir`);
}

/** Another server at the address of a node would be taken for this node. @throws if a port is in use */
async function requireFreePorts(): Promise<void> {
  for (const [index, { name }] of nodes.entries()) {
    const port = firstPort + 10 * index;
    const behindProxy = withProxies ? ([[sourceOf({ name }), port + 1]] as const) : [];
    for (const [host, wanted] of [['127.0.0.1', port], ['127.0.0.1', port + 1], ...behindProxy] as const)
      if (!(await isFree(host, wanted)))
        throw new Error(`${host}:${wanted}, which ${name} needs, is in use: stop the other program, or use another --port`);
  }
}

function configOf(name: string): string {
  return join(secrets, `${name}.json`);
}

/** Opens the proxy at a node's cluster address. */
async function proxyOf({ name }: DevNode): Promise<LinkProxy> {
  const port = firstPort + 10 * nodes.findIndex((node) => node.name === name) + 1;
  return LinkProxy.listen({ host: sourceOf({ name }), port }, nodes.map(sourceOf), '127.0.0.1', port);
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
    const code = await healthOf(address);
    if (code !== undefined && codes.includes(code)) return code;
    await delay(50);
  }
  throw new Error('stopped');
}

function welcome(rootToken: string): void {
  const curl = `curl -s -H "X-Service-Token: ${rootToken}"`;
  const [first, second] = nodes.map(({ address }) => address);
  const { name, pid } = watch.active ?? {};
  screen.print(`
Three nodes are running. They initialized, unsealed and joined by themselves: NOT FOR PRODUCTION.
Their seal key and root token are in ${secrets}: whoever can read this folder has every key.

  addresses   ${nodes.map((node) => `${node.name} ${node.address}`).join('   ')}
  consoles    ${nodes.map((node) => `${node.address}/ui/`).join('   ')}
  root token  ${rootToken}

Try it: encrypt through one node, kill the active one, and decrypt through another.

  ${curl} ${first}/v1/transit/encrypt/my-key -d "{\\"plaintext\\": \\"$(printf 'hello' | base64)\\"}"
  kill -9 ${pid}   # ${name}, the active node; it comes back after a moment
  ${curl} ${second}/v1/transit/decrypt/my-key -d '{"ciphertext": "…paste it here…"}'
  ${curl} -X PUT ${second}/v1/sys/step-down
  curl -s ${first}/v1/sys/health

Keys: k kill, p pause, c cut off, s slow disk: the active node, or 1, 2, 3 first for n1, n2, n3. The same key ends p, c and s.
${values.load ? '' : 'With `npm run cluster -- --load`, a small load runs beside and shows its figures. '}q or Ctrl-C stops all three.
`);
}

/** Injects or ends the fault of a key. A digit chooses the node for this. */
function listenForKeys(): void {
  let chosen: DevNode | undefined;
  /** The node that a key has paused, disconnected or slowed. The same key ends the fault, even if another node is active by then. */
  const affected = new Map<string, DevNode>();
  readKeys(process.stdin, (key) => {
    if (key === 'q' || key === '\u0003') return void stop(0);
    if (/^[123]$/.test(key)) {
      chosen = nodes[Number(key) - 1];
      return;
    }
    const node = chosen ?? affected.get(key) ?? watch.active;
    if (node === undefined || !'kpcs'.includes(key)) return;
    if (key === 'k') node.kill();
    else if (affected.get(key) === node) affected.delete(key);
    else affected.set(key, node);
    if (key === 'p') node.pause();
    if (key === 'c') node.cutOff(nodes.filter((other) => other !== node));
    if (key === 's') node.slowDisk();
    chosen = undefined;
  });
}

async function stop(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  watch.stop();
  load?.stop();
  await Promise.all(nodes.map((node) => node.stop()));
  process.exit(code);
}

// @live
// The container that points the Service of the active node to its pod, against a stub of the node's health and of the Kubernetes API.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { root } from '../process/live-server.ts';

const script = join(root, 'deploy/helm/transitd/files/active-endpoint.mjs');
const path = '/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/transitd-active';

interface Slice {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly endpoints: readonly { readonly addresses: readonly string[] }[];
}

/** One EndpointSlice, and the health of any number of nodes. */
class Stub {
  slice: Slice = { metadata: { name: 'transitd-active', resourceVersion: '1' }, endpoints: [] };
  /** Status of the API when it is not 200. */
  failure = 0;
  puts = 0;
  gets = 0;
  authorization: string | undefined;
  readonly active = new Set<string>();
  /** Called before the next question for health is answered. */
  onHealth: () => void = () => undefined;
  readonly #server = createServer(async (req, res) => {
    if (req.url?.startsWith('/health/')) {
      this.onHealth();
      res.writeHead(this.active.has(req.url.slice(8)) ? 200 : 473).end('{}');
      return;
    }
    this.authorization = req.headers.authorization;
    const status =
      this.failure > 0 ? this.failure : req.url === path ? this.#answer(req.method, await json(req).catch(() => 0)) : 404;
    res.writeHead(status).end(JSON.stringify(this.slice));
  });

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  get addresses(): readonly string[] {
    return this.slice.endpoints.flatMap(({ addresses }) => addresses);
  }

  /** Replaces the addresses, as another client would. */
  set(addresses: readonly string[]): void {
    this.slice = { ...this.slice, ...this.#next(), endpoints: addresses.length === 0 ? [] : [{ addresses }] };
  }

  #answer(method: string | undefined, body: unknown): number {
    if (method === 'GET') this.gets += 1;
    if (method !== 'PUT') return 200;
    this.puts += 1;
    const { metadata, endpoints } = body as Slice;
    if (metadata.resourceVersion !== this.slice.metadata.resourceVersion) return 409;
    this.slice = { ...this.slice, ...this.#next(), endpoints };
    return 200;
  }

  #next(): Pick<Slice, 'metadata'> {
    return { metadata: { ...this.slice.metadata, resourceVersion: String(Number(this.slice.metadata.resourceVersion) + 1) } };
  }
}

describe('the container of the active Service', () => {
  let stub: Stub;
  let api: string;
  let account: string;
  const children: ChildProcess[] = [];

  const start = (ip: string): ChildProcess => {
    const env = {
      ...process.env,
      POD_IP: ip,
      SLICE: 'ns/transitd-active',
      HEALTH: `${api}/health/${ip}`,
      ACCOUNT: account,
      API: api,
    };
    const child = spawn(process.execPath, [script], { env, stdio: 'ignore' });
    children.push(child);
    return child;
  };

  beforeEach(async () => {
    stub = new Stub();
    api = await stub.listen();
    account = mkdtempSync(join(tmpdir(), 'transitd-account-'));
    writeFileSync(join(account, 'token'), 'first\n');
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    }
    stub.close();
    rmSync(account, { recursive: true, force: true });
  });

  it('writes the address of the pod whose node is active, and follows a transfer', async () => {
    start('10.0.0.1');
    start('10.0.0.2');
    stub.active.add('10.0.0.1');
    await until('the first pod is written', () => stub.addresses[0] === '10.0.0.1');
    expect(stub.authorization).to.equal('Bearer first');
    writeFileSync(join(account, 'token'), 'second\n');
    stub.active.delete('10.0.0.1');
    stub.active.add('10.0.0.2');
    await until('the second pod is written', () => stub.addresses.length === 1 && stub.addresses[0] === '10.0.0.2');
    expect(stub.authorization).to.equal('Bearer second');
  });

  it('removes its own address when its node is not active, and no other', async () => {
    start('10.0.0.1');
    stub.active.add('10.0.0.1');
    await until('the pod is written', () => stub.addresses[0] === '10.0.0.1');
    stub.active.clear();
    await until('the pod is removed', () => stub.addresses.length === 0);
    stub.active.add('10.0.0.1');
    await until('the pod is written again', () => stub.addresses[0] === '10.0.0.1');
    let [gets, puts] = [Number.POSITIVE_INFINITY, 0];
    // Between two rounds of the container: in the middle of one, it could still write its address.
    stub.onHealth = () => {
      stub.onHealth = () => undefined;
      ({ gets, puts } = stub);
      stub.set(['10.0.0.2']);
      stub.active.clear();
    };
    await until('the slice was read', () => stub.gets > gets);
    expect(stub.addresses).to.deep.equal(['10.0.0.2']);
    expect(stub.puts).to.equal(puts);
  });

  it('writes again after an upgrade of the chart emptied the slice, and after errors', async () => {
    stub.failure = 500;
    start('10.0.0.1');
    stub.active.add('10.0.0.1');
    await until('the failing API was called', () => stub.authorization !== undefined);
    stub.failure = 0;
    await until('the pod is written', () => stub.addresses[0] === '10.0.0.1');
    stub.set([]);
    await until('the pod is written again', () => stub.addresses[0] === '10.0.0.1');
  });

  it('ends at once at SIGTERM', async () => {
    const child = start('10.0.0.1');
    stub.active.add('10.0.0.1');
    await until('the pod is written', () => stub.addresses[0] === '10.0.0.1');
    child.kill('SIGTERM');
    const [code] = await once(child, 'exit');
    expect(code).to.equal(0);
  });
});

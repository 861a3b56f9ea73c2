// An etcd cluster of real processes on loopback. Each link between two members, and from each node to each member, has its own mode.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess } from '../../../../packages/storage-etcd/test/etcd-process.ts';
import { freePort } from '../free-port.ts';
import { type LinkMode, LinkProxy } from '../link-proxy.ts';
import { until } from '../until.ts';
import { type PeerLinkMode, PeerProxy } from './peer-proxy.ts';

const loopback = '127.0.0.1';
const callMs = 2000;
const prefix = 'test';

/** One member of the etcd cluster. */
export interface EtcdMember {
  readonly name: string;
  /** The address that it advertises to the others, at which nothing listens. */
  readonly host: string;
  /** For calls of the test, past all proxies. */
  readonly url: string;
  readonly process: EtcdProcess;
  /** Its way to the other members. */
  readonly peers: PeerProxy;
  /** The proxies in front of it, by the names of the nodes that call it. */
  readonly doors: ReadonlyMap<string, LinkProxy>;
}

interface MemberStatus {
  readonly header: { readonly member_id: string; readonly revision: string };
  readonly leader?: string;
}

interface KeyAnswer {
  readonly kvs?: readonly { readonly lease?: string }[];
}

export class EtcdCluster {
  readonly members: readonly EtcdMember[];
  readonly #folder: string;

  private constructor(folder: string, members: readonly EtcdMember[]) {
    this.#folder = folder;
    this.members = members;
  }

  /** Starts the members; resolves when they have a leader. @param nodes - names of the nodes that will use it */
  static async start(nodes: readonly string[], size = 3): Promise<EtcdCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'etcd-cluster-'));
    const hosts = Array.from({ length: size }, (_, index) => `192.0.2.${index + 1}`); // for documentation, so used by nobody
    const ports = new Map<string, number>();
    for (const host of hosts) ports.set(host, await freePort(loopback));
    const members: EtcdMember[] = [];
    const initial = hosts.map((host, index) => `m${index + 1}=http://${host}:2380`).join(',');
    for (const [index, host] of hosts.entries()) {
      const name = `m${index + 1}`;
      const own = join(folder, name);
      mkdirSync(own);
      const client = { host: loopback, port: await freePort(loopback) };
      const url = `http://${client.host}:${client.port}`;
      const doors = new Map<string, LinkProxy>();
      for (const node of nodes) doors.set(node, await LinkProxy.listen(client, [loopback]));
      const peers = await PeerProxy.listen(ports);
      const proxied = { HTTP_PROXY: peers.url, http_proxy: peers.url, NO_PROXY: '', no_proxy: '' };
      const listen = `http://${loopback}:${ports.get(host)}`;
      const process = new EtcdProcess({
        folder: own,
        args: [
          ...['--name', name, '--listen-client-urls', url, '--advertise-client-urls', url, '--listen-peer-urls', listen],
          ...['--initial-advertise-peer-urls', `http://${host}:2380`, '--initial-cluster', initial],
        ],
        env: proxied,
        connection: { endpoint: url, timeoutMs: callMs },
      });
      members.push({ name, host, url, process, peers, doors });
    }
    const cluster = new EtcdCluster(folder, members);
    try {
      await cluster.startAll();
    } catch (error) {
      await cluster.end();
      throw error;
    }
    return cluster;
  }

  /** The configuration of this node's storage. Each node begins with another member. */
  storageOf(node: string): object {
    const endpoints = this.members.flatMap(({ doors }) => {
      const { host, port } = doors.get(node)?.address ?? {};
      return port === undefined ? [] : [`http://${host}:${port}`];
    });
    const first = [...(this.members[0]?.doors.keys() ?? [])].indexOf(node) % Math.max(1, endpoints.length);
    return { type: 'etcd', prefix, endpoints: [...endpoints.slice(first), ...endpoints.slice(0, first)] };
  }

  /** Starts the members that do not run; resolves when all serve. */
  async startAll(): Promise<void> {
    for (const { process } of this.members) if (!process.isRunning) await process.launch();
    await Promise.all(this.members.map(({ process }) => process.serves()));
  }

  async killAll(): Promise<void> {
    await Promise.all(this.members.map(({ process }) => process.kill()));
  }

  /** Copies the data of all members, which must not run. Returns a function that puts this copy in the place of later data. */
  backup(): () => void {
    const copy = join(this.#folder, 'backup');
    for (const { name, process } of this.members) cpSync(process.dataFolder, join(copy, name), { recursive: true });
    return () => {
      for (const { name, process } of this.members) {
        rmSync(process.dataFolder, { recursive: true });
        cpSync(join(copy, name), process.dataFolder, { recursive: true });
      }
    };
  }

  /** Resolves with the member that leads, as most of the running members see it. */
  leader(): Promise<EtcdMember> {
    return until(
      'etcd has a leader',
      async () => {
        const running = this.members.filter(({ process }) => process.isRunning);
        const seen = await Promise.all(running.map((member) => this.#status(member)));
        const votes = seen.filter((status) => status?.leader !== undefined && status.leader === seen.find(isLeader)?.leader);
        return votes.length > this.members.length / 2 && running[seen.findIndex(isLeader)];
      },
      { explain: () => this.tails() },
    );
  }

  async follower(): Promise<EtcdMember> {
    const leader = await this.leader();
    const [follower = leader] = this.members.filter((member) => member.process.isRunning && member !== leader);
    return follower;
  }

  /** Sets the mode of all links between this member and the others, both ways. */
  isolate(member: EtcdMember, mode: PeerLinkMode): void {
    for (const other of this.members) {
      if (other === member) continue;
      member.peers.setMode(other.host, mode);
      other.peers.setMode(member.host, mode);
    }
  }

  /** Sets the mode of all links from this node to etcd. */
  isolateNode(node: string, mode: LinkMode): void {
    for (const { doors } of this.members) doors.get(node)?.setMode(loopback, mode);
  }

  /** Forgets all revisions before the present one. */
  async compact(): Promise<void> {
    const leader = await this.leader();
    const status = await this.#status(leader);
    await call(leader, 'kv/compaction', { revision: status?.header.revision });
  }

  /** Ends the lease of the active node, as etcd does when that node is silent. */
  async endActiveLease(): Promise<void> {
    const leader = await this.leader();
    const key = Buffer.from(`${prefix}/m/active`).toString('base64');
    const { kvs = [] } = (await call(leader, 'kv/range', { key })) as KeyAnswer;
    for (const { lease } of kvs) await call(leader, 'lease/revoke', { ID: lease });
  }

  /** Deletes the id of the cluster, as an operator does after a restore. */
  async forgetClusterId(): Promise<void> {
    await call(await this.leader(), 'kv/deleterange', { key: Buffer.from(`${prefix}/m/cluster`).toString('base64') });
  }

  tails(): string {
    return this.members.map(({ name, process }) => `${name}:\n${process.log.split('\n').slice(-5).join('\n')}`).join('\n');
  }

  /** Ends every process and removes every folder. */
  async end(): Promise<void> {
    await this.killAll();
    for (const { peers, doors } of this.members) await Promise.all([peers, ...doors.values()].map((proxy) => proxy.close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #status(member: EtcdMember): Promise<MemberStatus | undefined> {
    return (await call(member, 'maintenance/status', {}).catch(() => undefined)) as MemberStatus | undefined;
  }
}

const isLeader = (status: MemberStatus | undefined): boolean =>
  status?.leader !== undefined && status.leader === status.header.member_id;

/** Calls etcd by its JSON gateway. @throws unless it answers with success */
async function call({ url }: EtcdMember, path: string, body: object): Promise<unknown> {
  const response = await fetch(`${url}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(callMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd answered ${path} with ${response.status}: ${text}`);
  return JSON.parse(text);
}

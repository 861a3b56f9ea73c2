// Faults of the etcd cluster that has the records, and of a node's links to it.
import type { EtcdCluster, EtcdMember } from '../cluster/harness/etcd/etcd-cluster.ts';
import type { Fault } from '../cluster/harness/faults.ts';
import type { LinkMode } from '../cluster/harness/link-proxy.ts';
import { attachStrace, type Detach } from '../cluster/harness/strace.ts';

/** A fault of one member of etcd. */
interface MemberFault {
  readonly what: string;
  readonly strike: (etcd: EtcdCluster, member: EtcdMember) => unknown;
  readonly mend: (etcd: EtcdCluster, member: EtcdMember) => unknown;
}

const tracers = new Map<EtcdMember, Detach>();

async function detach(member: EtcdMember): Promise<void> {
  const end = tracers.get(member);
  tracers.delete(member);
  await end?.();
}

const slowSync = (ms: number): MemberFault => ({
  what: `need ${ms} ms for a sync`,
  strike: async (_, member) => {
    const inject = `inject=fdatasync,fsync:delay_enter=${ms * 1000}`;
    const args = ['-o', '/dev/null', '-e', 'trace=fdatasync,fsync', '-e', inject];
    tracers.set(member, await attachStrace({ name: member.name, pid: member.process.pid }, args));
  },
  mend: (_, member) => detach(member),
});

const memberFaults: readonly MemberFault[] = [
  { what: 'killed', strike: (_, { process }) => process.kill(), mend: (_, { process }) => process.launch() },
  { what: 'frozen', strike: (_, { process }) => process.pause(), mend: (_, { process }) => process.resume() },
  {
    what: 'cut off from the other members',
    strike: (etcd, member) => etcd.isolate(member, 'hold'),
    mend: (etcd, member) => etcd.isolate(member, 'open'),
  },
  slowSync(300),
  slowSync(4000),
];

/** Returns the fault of the member that leads at that time, or of another one. */
function faultOf(place: 'leader' | 'follower', { what, strike, mend }: MemberFault): Fault {
  let struck: EtcdMember | undefined;
  return {
    what: `sees the ${place} of etcd ${what}`,
    isShared: true,
    strike: async ({ etcd }) => {
      struck = place === 'leader' ? await etcd.leader() : await etcd.follower();
      await strike(etcd, struck);
    },
    mend: async ({ etcd }) => {
      if (struck === undefined) return;
      await mend(etcd, struck);
      await struck.process.serves();
    },
  };
}

const nodeLink = (what: string, mode: LinkMode): Fault => ({
  what,
  strike: async ({ etcd }, { name }) => etcd.isolateNode(name, mode),
  mend: async ({ etcd }, { name }) => etcd.isolateNode(name, 'open'),
});

/** Each strikes one node, or something that all nodes see. */
export const etcdFaults: readonly Fault[] = [
  ...memberFaults.flatMap((fault) => [faultOf('leader', fault), faultOf('follower', fault)]),
  nodeLink('does not reach etcd', 'blackhole'),
  nodeLink('gets no answers of etcd', 'swallow-answers'),
  nodeLink('reaches etcd after 300 ms', { delayMs: 300 }),
  {
    what: 'has its watch held back while etcd is compacted',
    isShared: true,
    strike: async ({ etcd }, { name }) => etcd.isolateNode(name, 'hold'),
    mend: async ({ etcd }, { name }) => {
      await etcd.compact();
      etcd.isolateNode(name, 'open');
    },
  },
  {
    what: 'sees the lease of the active node end',
    isShared: true,
    strike: ({ etcd }) => etcd.endActiveLease(),
    mend: async () => undefined,
  },
];

/** Strikes all members of etcd at once. */
export const etcdOutages: readonly Fault[] = [
  {
    what: 'sees all of etcd killed',
    strike: ({ etcd }) => etcd.killAll(),
    mend: ({ etcd }) => etcd.startAll(),
  },
  {
    what: 'sees all of etcd frozen',
    strike: async ({ etcd }) => {
      for (const { process } of etcd.members) process.pause();
    },
    mend: async ({ etcd }) => {
      for (const { process } of etcd.members) process.resume();
      await etcd.leader();
    },
  },
];

/** Detaches every strace, so that a failed run leaves no process. */
export async function detachFromEtcd(): Promise<void> {
  await Promise.all([...tracers.keys()].map(detach));
}

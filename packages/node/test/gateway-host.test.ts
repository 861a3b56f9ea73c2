import type { Barrier } from '@transitd/barrier';
import { MemberEvents } from '@transitd/cluster';
import { parseConfig } from '@transitd/configuration';
import { memoryStore, type Replica } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { NodeClock } from '../src/clock/node-clock.ts';
import { GatewayHost } from '../src/gateway-host.ts';
import type { ReadEligibility } from '../src/read-eligibility.ts';
import { deadlinesIn } from '../src/threads/shared/deadline.ts';

const config = parseConfig({
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
  seal: { type: 'shamir' },
  workers: 1,
});

/** A host of a node that may read until this time because of a heartbeat that it sent now, and its deadlines. */
function hostOf(
  readUntilMs: () => number | undefined,
  { workers = 1, clockJumpedMs = Number.NEGATIVE_INFINITY }: { readonly workers?: number; readonly clockJumpedMs?: number } = {},
) {
  const sentMs = performance.now();
  const host = new GatewayHost({ ...config, workers }, { steadyMs: 0 } as NodeClock);
  const eligibility = {
    ...{ mayServeInGateways: true, replication: undefined, clockJumpedMs },
    get heartbeat() {
      const endMs = readUntilMs();
      return endMs === undefined ? undefined : { sentMs, endMs };
    },
  } as unknown as ReadEligibility;
  const events = new MemberEvents();
  const status = {
    ...{ nodeId: 1, role: 'follower', ready: false, term: 1, leader: 0, valuesWritten: 0, diskLow: false },
    ...{ lastIndex: 0, commitIndex: 0, appliedIndex: 0, flushedIndex: 0 },
  };
  host.follow(Object.assign(memoryStore(), { status: () => status }) as unknown as Replica, events);
  const barrier = { onStateChange: () => undefined, sharedKeyring: { onChange: () => undefined } } as unknown as Barrier;
  host.serve({ barrier, eligibility, events });
  return { host, read: deadlinesIn(host.memory).read, lease: deadlinesIn(host.memory).lease };
}

describe('the deadlines of gateways', () => {
  it('let a standby read until the time that the main thread knows, and no longer', () => {
    let untilMs: number | undefined = performance.now() + 10_000;
    const { host, read } = hostOf(() => untilMs);
    const holdsIn = (ms: number): boolean => read.holds(process.hrtime.bigint() + BigInt(ms) * 1_000_000n);
    host.lease(undefined);
    expect([holdsIn(0), holdsIn(9000), holdsIn(10_000)]).to.deep.equal([true, true, false]);
    for (const over of [undefined, performance.now(), Number.NEGATIVE_INFINITY]) {
      untilMs = performance.now() + 10_000;
      host.lease(undefined);
      untilMs = over;
      host.lease(undefined);
      expect(holdsIn(0), String(over)).to.equal(false);
    }
  });

  it('are those of the active node while it has the lease, and those of a standby otherwise', () => {
    const { host, read, lease } = hostOf(() => performance.now() + 10_000);
    host.lease(performance.now() + 1000);
    expect([lease.holds(), read.holds()]).to.deep.equal([true, false]);
    host.lease(undefined);
    expect([lease.holds(), read.holds()]).to.deep.equal([false, true]);
    host.endDeadlines();
    expect([lease.holds(), read.holds()]).to.deep.equal([false, false]);
  });
});

describe('the deadlines of gateways after a jump of a clock', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = performance.now();
  });
  const heldAfter = (clockJumpedMs: number): readonly boolean[] => {
    const { host, read, lease } = hostOf(() => nowMs + 60_000, { clockJumpedMs });
    host.lease(nowMs + 60_000);
    return [lease.holds(), read.holds()];
  };

  it('are over if the jump came after the lease and the heartbeat were requested', () => {
    expect(heldAfter(nowMs + 60_000)).to.deep.equal([false, false]);
  });

  it('hold if the lease was requested after the jump', () => {
    expect(heldAfter(nowMs + 60_000 - config.raft.lease - 1)).to.deep.equal([true, false]);
    expect(heldAfter(nowMs + 60_000 - config.raft.lease)).to.deep.equal([false, false]);
  });

  it('hold for reads if only the heartbeat was sent after the jump', () => {
    const { host, read, lease } = hostOf(() => nowMs + 60_000, { clockJumpedMs: nowMs - 1 });
    host.lease(nowMs - 1 + config.raft.lease);
    expect([lease.holds(), read.holds()]).to.deep.equal([false, true]);
  });
});

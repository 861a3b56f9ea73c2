import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { type Engine, MemberEvents, type Peers, type StateComparison } from '@transitd/cluster';
import { parseConfig } from '@transitd/configuration';
import { noObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { NoPeers } from '../src/no-peers.ts';
import { ReadEligibility } from '../src/read-eligibility.ts';
import type { ServiceLoader } from '../src/service-loader.ts';
import { ServingRole } from '../src/serving-role.ts';

const config = parseConfig({
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
  seal: { type: 'shamir' },
});

const host = { config, observer: noObserver };

const roleOf = (
  engine: Engine,
  { isUnsealed, verdict }: { readonly isUnsealed: boolean; readonly verdict: StateComparison['verdict'] },
): ServingRole => new ServingRole(engine, { services: isUnsealed ? {} : undefined } as unknown as ServiceLoader, { verdict });

/** A leader with a lease by default, whose last heartbeat was answered a moment ago. */
function leading({
  verdict = 'same' as StateComparison['verdict'],
  isUnsealed = true,
  isAwake = true,
  lease = true,
  awaitedUntilMs = Number.POSITIVE_INFINITY,
  ready = (): boolean => true,
  clockJumpedMs = Number.NEGATIVE_INFINITY,
  fresh = async (): Promise<void> => undefined,
}): ReadEligibility {
  const sentMs = performance.now();
  const heartbeats = { appliedSentMs: () => sentMs };
  const engine = {
    status: () => ({ ready: ready(), role: 'leader', appliedIndex: 7 }),
    electedWithinMs: 2000,
    isAwake: () => isAwake,
    lease: () => (lease ? { sentMs, endMs: Number.POSITIVE_INFINITY } : undefined),
    clockJumpedMs: () => clockJumpedMs,
    replica: { fresh },
  } as unknown as Engine;
  return new ReadEligibility(host, {
    engine,
    role: roleOf(engine, { isUnsealed, verdict }),
    peers: { heartbeats, awaitedUntilMs } as unknown as Peers,
    events: new MemberEvents(),
  });
}

/** A standby without an active node, whose last heartbeat was answered `sinceAnswerMs` ago. */
function leaderless(sinceAnswerMs: number) {
  const status = { term: 7, leader: 0, nodeId: 1, ready: false, role: 'follower', appliedIndex: 7 };
  const heartbeats = { intervalMs: 1000, sinceMs: Number.NEGATIVE_INFINITY, answeredSentMs: performance.now() - sinceAnswerMs };
  const engine = { status: () => status, electedWithinMs: 2000 } as unknown as Engine;
  const events = new MemberEvents();
  const node = new ReadEligibility(host, {
    engine,
    role: roleOf(engine, { isUnsealed: true, verdict: 'same' }),
    peers: { canForward: true, heartbeats: { times: heartbeats } } as unknown as Peers,
    events,
  });
  return { node, status, heartbeats, events };
}

describe('ReadEligibility', () => {
  for (const { what, node, active } of [
    { what: 'whose state digest matches', node: leading({}), active: true },
    {
      what: 'whose state digest was not compared yet',
      node: leading({ verdict: 'unknown' }),
      active: true,
    },
    { what: 'whose state digest differs', node: leading({ verdict: 'different' }), active: false },
    {
      what: 'that is sealed',
      node: leading({ isUnsealed: false }),
      active: false,
    },
  ])
    it(`says that a leader ${what} is ${active ? '' : 'not '}the active node`, async () => {
      expect(node.active).to.equal(active);
      expect(node.activeForCertain).to.equal(active);
      expect(node.readRole).to.equal(active ? 'active' : undefined);
      expect(await node.confirmLeadership()).to.equal(active);
      expect(await node.becomesActive()).to.equal(active);
    });

  it('waits until a newly elected leader is ready', async () => {
    let looks = 0;
    const node = leading({
      ready: () => {
        looks += 1;
        return looks > 3;
      },
    });
    expect(node.active).to.equal(false);
    expect(node.mayLead).to.equal(true);
    expect(await node.becomesActive()).to.equal(true);
  });

  it('requires a quorum to confirm a leader without a lease', async () => {
    const refused = async (): Promise<void> => {
      throw new StoreError('not_leader', 'this node does not lead');
    };
    expect(await leading({ lease: false }).becomesActive()).to.equal(true);
    expect(await leading({ lease: false, fresh: refused }).becomesActive()).to.equal(false);
  });

  it('neither counts a failed forward nor waits for an active node where no other node exists', async () => {
    const engine = { status: () => ({ ready: false, role: 'follower', term: 7, leader: 0 }), electedWithinMs: 2000 };
    let failed = 0;
    const observer = { ...noObserver, forwardFailed: () => (failed += 1) };
    const member = {
      engine,
      role: { mayServe: true },
      peers: new NoPeers(1000, { services: undefined }),
      events: new MemberEvents(),
    };
    const node = new ReadEligibility({ config, observer }, member as never);
    expect(await node.hasActiveNodeAgain(7)).to.equal(false);
    const refusal = await node.forward({} as never, {} as never, {} as never).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(StoreError).with.property('code', 'not_leader');
    expect(failed).to.equal(0);
  });

  it('does not report a leader as active for certain after a pause of the process', () => {
    expect(leading({ isAwake: false }).activeForCertain).to.equal(false);
  });

  it('lets a standby read only while the active node waits for it before it answers a revocation', () => {
    const standby = { ready: () => false };
    expect(leading({ ...standby, awaitedUntilMs: performance.now() + 60_000 }).readRole).to.equal('reader');
    expect(leading({ ...standby, awaitedUntilMs: performance.now() }).readRole).to.equal(undefined);
  });

  it('ignores heartbeats that a standby sent before a clock jumped', () => {
    expect(leading({ ready: () => false }).readRole).to.equal('reader');
    expect(leading({ ready: () => false, clockJumpedMs: Number.POSITIVE_INFINITY }).readRole).to.equal(undefined);
    expect(leading({ ready: () => false, clockJumpedMs: Number.POSITIVE_INFINITY }).appliedSentMs).to.equal(undefined);
  });

  it('ignores the lease of a leader from before a clock jumped', () => {
    expect(leading({ clockJumpedMs: performance.now() + 1 }).readRole).to.equal(undefined);
    expect(leading({ clockJumpedMs: performance.now() - 60_000 }).readRole).to.equal('active');
  });

  it('finds an active node again when another node is elected in a later term, or this one', async () => {
    const others = leaderless(0);
    const found = others.node.hasActiveNodeAgain(7);
    Object.assign(others.status, { leader: 2 });
    setImmediate(() => Object.assign(others.status, { term: 8 }));
    expect(await found).to.equal(true);
    const own = leaderless(0);
    setImmediate(() => Object.assign(own.status, { term: 8, leader: 1, ready: true, role: 'leader' }));
    expect(await own.node.hasActiveNodeAgain(7)).to.equal(true);
  });

  it('finds it in the event-loop turn in which its status changes', async () => {
    const { node, status, events } = leaderless(0);
    const found = [node.hasActiveNodeAgain(7), node.hasActiveNodeAfter(7)];
    Object.assign(status, { term: 8, leader: 2 });
    events.emit('status', status as DriverStatus);
    expect(await Promise.race([Promise.all(found), turn('still waiting')])).to.deep.equal([true, true]);
  });

  it('finds the same active node again when it answers a heartbeat', async () => {
    const { node, status, heartbeats } = leaderless(0);
    status.leader = 2;
    setImmediate(() => Object.assign(heartbeats, { answeredSentMs: performance.now() + 1 }));
    expect(await node.hasActiveNodeAgain(7)).to.equal(true);
  });

  it('does not wait for an active node after the time of a failover has passed since its last contact', async () => {
    const failoverMs = 2 * config.raft.election_timeout + 1000 + config.cluster_heartbeat_interval;
    const { node } = leaderless(failoverMs + 1);
    expect(await Promise.race([node.hasActiveNodeAgain(0), pause(500, 'still waiting', { ref: false })])).to.equal(false);
    expect(await leaderless(failoverMs - 20).node.hasActiveNodeAgain(0)).to.equal(false);
  });

  it('gives a leader without a lease no read role until a quorum has confirmed it', async () => {
    const node = leading({ lease: false, clockJumpedMs: Number.POSITIVE_INFINITY });
    expect(node.readRole).to.equal(undefined);
    expect(await node.confirmLeadership()).to.equal(true);
  });
});

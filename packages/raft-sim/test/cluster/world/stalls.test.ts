import { expect } from 'chai';
import { Cluster, configOf, type Member, Trace } from '../../../src/index.ts';

function until(cluster: Cluster, condition: () => boolean): void {
  for (let events = 0; !condition(); events++) {
    expect(events, 'the awaited condition holds in time').to.be.below(20_000);
    cluster.step();
  }
}

/** Three nodes with a leader, and no faults but those of the test. */
function led(profile: 'core' | 'driver'): { readonly cluster: Cluster; readonly leader: Member } {
  const config = configOf(3, profile, 0);
  const sizes = { ...config.sizes, uncommittedBytes: 2 ** 20, committedBytes: 2 ** 20, messageBytes: 2 ** 16, windowCount: 20 };
  const cluster = new Cluster({ ...config, nodes: 3, skew: 0, sizes }, new Trace());
  cluster.network.heal();
  until(cluster, () => cluster.leader?.observed.status?.commitIndex === 1);
  if (cluster.leader === undefined) throw new Error('no leader');
  return { cluster, leader: cluster.leader };
}

/** Plays the event during which the leader stalls; returns how much time it took. */
function stall({ cluster, leader }: ReturnType<typeof led>, durationMs: number): number {
  leader.stall = { calls: 0, durationMs, stopsClock: false };
  let beganMs = cluster.clock.now();
  until(cluster, () => {
    if (leader.stall === undefined) return true;
    beganMs = cluster.clock.now();
    return false;
  });
  return cluster.clock.now() - beganMs;
}

describe('a stall inside a turn', () => {
  for (const profile of ['core', 'driver'] as const) {
    it(`lets the rest of the cluster elect another leader (${profile})`, () => {
      const { cluster, leader } = led(profile);
      expect(stall({ cluster, leader }, 4_000)).to.be.at.least(4_000);
      expect(cluster.leader).not.to.equal(leader);
      until(cluster, () => leader.observed.status?.leader === cluster.leader?.id);
      expect(leader.observed.status?.role).to.equal('follower');
    });

    it(`never ends if the process is killed meanwhile (${profile})`, () => {
      const { cluster, leader } = led(profile);
      cluster.clock.after(100, () => {
        cluster.kill(leader);
        cluster.clock.after(10, () => cluster.start(leader));
      });
      stall({ cluster, leader }, 4_000);
      expect(cluster.coverage.counts().get('ended inside a turn')).to.equal(1);
      const restarted = leader.incarnation;
      const untilMs = cluster.clock.now() + 3_000;
      until(cluster, () => cluster.clock.now() >= untilMs);
      expect(leader.incarnation).to.equal(restarted).and.not.to.equal(undefined);
      expect(leader.observed.status?.leader).to.equal(cluster.leader?.id);
    });
  }

  it('lets a turn of the driver apply only a part of what is committed', () => {
    const { cluster, leader } = led('driver');
    leader.slowApply = { untilMs: Number.POSITIVE_INFINITY, entryMs: 7 };
    const behind = (): number => (leader.observed.status?.commitIndex ?? 0) - (leader.incarnation?.machine.applied ?? 0);
    cluster.clients.burst(20);
    until(cluster, () => behind() >= 2);
    until(cluster, () => behind() === 0);
  });
});

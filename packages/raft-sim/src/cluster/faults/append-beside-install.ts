import type { Message, SnapshotMeta } from '@transitd/raft-core';
import type { Member } from '../node/member.ts';
import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';
import { pickFollower } from './scenarios.ts';
import { inTurn, type Step } from './steps.ts';

/** How long the scenario waits for each step. */
const PATIENCE_MS = 2_500;
/** How long the disks hang; longer than all steps usually take together. */
const HANG_MS = 8_000;
/** After this time, any ordinary sync that began before a hang has ended. */
const SETTLED_MS = 150;

type Append = Extract<Message, { type: 'Append' }>;

/**
 * Delivers a snapshot to a follower whose log hangs, and in the same event-loop turn the Appends that follow the snapshot, with a commit
 * index above it. Applying may run ahead of the local disk then, but must wait until the snapshot is installed.
 */
export function appendBesideInstall(cluster: Cluster, pick: number): void {
  const { leader, members, network, clients, clock } = cluster;
  const behind = pickFollower(cluster, pick);
  if (leader === undefined || behind === undefined || members.length < 3) return;
  const lastIndexOf = ({ observed }: Member): number => observed.status?.lastIndex ?? 0;
  const isHanging = (): boolean => behind.incarnation !== undefined && lastIndexOf(behind) > behind.storage.durable.lastIndex;
  let isHolding = false;
  const kept: Append[] = [];
  const release = network.hold((message) => {
    const isHeld = isHolding && message.type === 'Append' && message.to === behind.id;
    if (isHeld) kept.push(message);
    return isHeld;
  });
  const follow = (index: number): boolean =>
    kept.some(({ prevIndex }) => prevIndex === index) && kept.some(({ commit }) => commit > index);
  let hungAtMs = clock.now();
  const since = (ms: number): boolean => clock.now() >= hungAtMs + ms;

  cluster.undisturbedUntilMs = clock.now() + HANG_MS;
  behind.beforeSnapshot = ({ index }: SnapshotMeta) => {
    if (isHanging() && follow(index)) cluster.coverage.met('snapshot and the next entries arrived while the log hung');
    leader.hangs.delete('state');
    release();
  };
  behind.hangs.set('log', clock.now() + HANG_MS);
  const holdsAppends: Step = {
    once: () => since(SETTLED_MS) && isHanging(),
    act: () => {
      // Only the write under way hangs: the fetched snapshot is synced at the ordinary pace.
      behind.hangs.delete('log');
      isHolding = true;
      for (let atMs = 0; atMs < PATIENCE_MS; atMs += 50) later(cluster, atMs, () => isHolding && clients.burst(3));
    },
  };
  const hangsLeaderState: Step = {
    once: () => (leader.observed.status?.baseIndex ?? 0) > lastIndexOf(behind),
    act: () => {
      hungAtMs = clock.now();
      leader.hangs.set('state', clock.now() + HANG_MS);
    },
  };
  const letsAppendsPass: Step = {
    once: () => since(SETTLED_MS) && follow(leader.incarnation?.machine.flushed ?? Number.POSITIVE_INFINITY),
    act: () => {
      isHolding = false;
      behind.streaming = { untilMs: clock.now() + PATIENCE_MS, pieceMs: 20 };
      clients.burst(2);
    },
  };
  clients.burst(3);
  inTurn(cluster, [holdsAppends, hangsLeaderState, letsAppendsPass], PATIENCE_MS);
  later(cluster, HANG_MS, () => {
    isHolding = false;
    behind.hangs.delete('log');
    behind.beforeSnapshot = undefined;
    release();
  });
}

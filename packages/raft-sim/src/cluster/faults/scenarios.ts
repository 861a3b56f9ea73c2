import { isVoter, type NodeId } from '@transitd/raft-core';
import type { Member } from '../node/member.ts';
import type { DiskPart } from '../storage/storage.ts';
import type { Cluster } from '../world/cluster.ts';
import { both, cut, later } from '../world/links.ts';
import { inTurn, type Step } from './steps.ts';

/** How long a scenario waits for each step. */
const PATIENCE_MS = 4_000;

const roleOf = ({ observed }: Member): string | undefined => observed.status?.role;
const termOf = ({ observed }: Member): number => observed.status?.term ?? 0;
const lastOf = ({ observed }: Member): number => observed.status?.lastIndex ?? 0;
const leads = (member: Member): boolean => roleOf(member) === 'leader' && member.incarnation !== undefined;
const followers = ({ leader, running }: Cluster): readonly Member[] => running.filter((member) => member !== leader);

function transfer(cluster: Cluster, leader: Member, to: NodeId): void {
  const { incarnation } = leader;
  if (incarnation !== undefined) cluster.enter(leader, incarnation, () => incarnation.host.transfer(to));
}

/**
 * Tells a voter to campaign while nobody receives its messages, and removes it. Then delayed messages of the leader reach it, and it
 * answers in its later term although it is no longer the leader's peer.
 */
export function strangerAnswers(cluster: Cluster, pick: number): void {
  const { leader, network, operator } = cluster;
  const stranger = pickFollower(cluster, pick);
  if (leader === undefined || stranger === undefined || !isVoterOf(leader, stranger.id)) return;
  const { id } = stranger;
  const term = termOf(leader);
  let isSilent = true;
  network.hold((message) => isSilent && message.from === id && message.term > term);
  const leadsOn = (): boolean => leads(leader) && termOf(leader) === term;
  let release = (): void => undefined;
  const steps = [
    {
      once: () => termOf(stranger) > term,
      act: () => {
        release = network.hold((message) => message.from === leader.id && message.to === id);
      },
    },
    { once: () => leadsOn() && leader.observed.status?.transferTo === undefined, act: () => operator.remove(id) },
    {
      once: () => leadsOn() && leader.incarnation?.host.matchOf(id) === undefined,
      act: () => {
        isSilent = false;
        release();
      },
    },
  ];
  transfer(cluster, leader, id);
  inTurn(cluster, steps, PATIENCE_MS);
  later(cluster, 3 * PATIENCE_MS, () => {
    isSilent = false;
    release();
  });
}

/**
 * Holds back the answers to a follower's reads, and restarts the follower. The follower then reads again under the same numbers, while it
 * lacks entries that were acknowledged since. Only then delivers the answers to its earlier incarnation.
 */
export function answerToEarlierRun(cluster: Cluster, pick: number): void {
  const { leader, network, clients, coverage } = cluster;
  const asker = pickFollower(cluster, pick);
  if (leader === undefined || asker === undefined) return;
  const toAsker = (type: string) => (message: { readonly from: NodeId; readonly to: NodeId; readonly type: string }) =>
    message.to === asker.id && message.from === leader.id && message.type === type;
  const restart = (): void => {
    cluster.kill(asker);
    cluster.clock.after(1, () => cluster.start(asker));
  };
  const ask = (): void => {
    for (let read = 0; read < 4; read++) clients.readOn(asker);
  };
  const knowsLeader = (): boolean =>
    asker.incarnation !== undefined && asker.observed.status?.leader === leader.id && leads(leader);
  let answers = (): void => undefined;
  let questions = (): void => undefined;
  let entries = (): void => undefined;
  const letGo = (): void => {
    questions();
    entries();
  };
  let lastSeen = 0;
  restart();
  const steps = [
    {
      once: knowsLeader,
      act: () => {
        answers = network.hold(toAsker('ReadIndexResp'));
        later(cluster, 50, ask);
      },
    },
    {
      once: () => knowsLeader() && network.kept(toAsker('ReadIndexResp')) > 0,
      act: () => {
        entries = network.hold(toAsker('Append'));
        lastSeen = lastOf(asker);
        clients.burst(20);
      },
    },
    { once: () => leads(leader) && (leader.observed.status?.commitIndex ?? 0) > lastSeen + 3, act: restart },
    {
      once: knowsLeader,
      act: () => {
        questions = network.hold((message) => message.from === asker.id && message.type === 'ReadIndex');
        later(cluster, 30, ask);
        later(cluster, 60, () => {
          coverage.met('answer to an earlier incarnation delivered');
          answers();
        });
        later(cluster, 200, letGo);
      },
    },
  ];
  inTurn(cluster, steps, PATIENCE_MS);
  later(cluster, 3 * PATIENCE_MS, () => {
    answers();
    letGo();
  });
}

/**
 * Lets the leader of two voters remove itself. The other voter stores that entry and restarts before the leader hears of it. That voter
 * must not lead at once, although it is the only voter of its newest configuration.
 */
export function leaveLastVoter(cluster: Cluster): void {
  const { leader, operator, clients, coverage } = cluster;
  const voters = leader?.observed.status?.conf.voters ?? [];
  const successor = cluster.members.find(({ id }) => id !== leader?.id && voters.includes(id));
  if (leader === undefined || successor === undefined || voters.length !== 2) return;
  const before = lastOf(leader);
  cut(cluster, [[successor, leader]], 700);
  operator.remove(leader.id);
  const isLast = (): boolean => {
    const { entries } = successor.storage.durable;
    return entries.some(({ index, type }) => index > before && type === 'conf');
  };
  const restart = (): void => {
    coverage.met('last voter restarted with its removal of the leader uncommitted');
    cluster.kill(successor);
    cluster.clock.after(1, () => cluster.start(successor));
    for (let step = 1; step < 12; step++) later(cluster, step * 50, () => clients.readOnLeaders());
  };
  inTurn(cluster, [{ once: () => leads(leader) && isLast(), act: restart }], 600);
}

/** Cuts a leader in a joint configuration off from one half, and reads by its lease all the time. */
export function cutOffOneHalf(cluster: Cluster): void {
  const { leader, operator, coverage, clients, members } = cluster;
  if (leader === undefined) return;
  const joint = () => (leads(leader) ? leader.observed.status?.conf : undefined);
  operator.exchangeVoters();
  const act = (): void => {
    const conf = joint();
    if (conf === undefined) return;
    coverage.met('one half of a joint configuration cut off');
    const gone = members.filter(({ id }) => id !== leader.id && !conf.voters.includes(id));
    cut(
      cluster,
      gone.flatMap((member) => both(leader, member)),
      2_500,
    );
    for (let step = 0; step < 40; step++) later(cluster, step * 50, () => clients.readOnLeaders());
  };
  inTurn(cluster, [{ once: () => (joint()?.votersOutgoing.length ?? 0) > 0, act }], 1_000);
}

/** Makes the flush of a follower's state hang while a snapshot arrives that replaces the state. */
export function installBesideFlush(cluster: Cluster, pick: number): void {
  const { clients, coverage } = cluster;
  const behind = pickFollower(cluster, pick);
  if (behind === undefined) return;
  clients.burst(5);
  const steps = [
    { once: () => behind.incarnation?.machine.isFlushing === true, act: () => hang(cluster, behind, 'state') },
    ...fallsBehind(cluster, behind),
    {
      once: () => behind.incarnation?.snapshots.isFetching === true && behind.incarnation.machine.isFlushing,
      act: () => coverage.met('snapshot waited for a flush'),
    },
  ];
  inTurn(cluster, steps, PATIENCE_MS);
}

/** Makes a write of a follower's high-water mark hang, with another one due, while a snapshot arrives that replaces the log. */
export function installBesideMark(cluster: Cluster, pick: number): void {
  const { clients, clock } = cluster;
  const behind = pickFollower(cluster, pick);
  if (behind === undefined) return;
  hang(cluster, behind, 'node');
  const [last, fromMs] = [lastOf(behind), clock.now()];
  clients.burst(5);
  // The mark is raised every 200 ms.
  const isRaised = (): boolean => behind.storage.durable.lastIndex > last && clock.now() > fromMs + 250;
  inTurn(cluster, [{ once: isRaised, act: () => undefined }, ...fallsBehind(cluster, behind)], PATIENCE_MS);
}

export function pickFollower(cluster: Cluster, pick: number): Member | undefined {
  const others = followers(cluster);
  return cluster.leader === undefined ? undefined : others[pick % Math.max(1, others.length)];
}

const hang = ({ clock }: Cluster, { hangs }: Member, part: DiskPart): void => {
  hangs.set(part, clock.now() + 2 * PATIENCE_MS);
};

/** Returns steps that partition the node until the leader's log no longer reaches back to it, and then reconnect it. */
function fallsBehind(cluster: Cluster, behind: Member): readonly Step[] {
  const { leader, members, network, clients } = cluster;
  const links = members.flatMap((member) => both(member, behind));
  const lacks = (): boolean => (leader?.observed.status?.baseIndex ?? 0) > lastOf(behind);
  const cutOff = {
    once: () => true,
    act: () => {
      cut(cluster, links, PATIENCE_MS);
      for (let atMs = 0; atMs < PATIENCE_MS; atMs += 100) later(cluster, atMs, () => lacks() || clients.burst(3));
    },
  };
  const mended = {
    once: lacks,
    act: () => {
      for (const [from, to] of links) network.mend(from.id, to.id);
    },
  };
  return [cutOff, mended];
}

/** Lets a transfer fail, and reads by the leader's lease, if it has one, in the same term. */
export function abortTransfer(cluster: Cluster, pick: number): void {
  const { leader, network, clients } = cluster;
  const others = followers(cluster).filter(({ id }) => leader !== undefined && isVoterOf(leader, id));
  const target = others[pick % Math.max(1, others.length)];
  if (leader === undefined || target === undefined) return;
  const release = network.hold(({ from, to, type }) => from === leader.id && to === target.id && type === 'TimeoutNow');
  transfer(cluster, leader, target.id);
  for (let step = 0; step < 10; step++) later(cluster, 1_100 + step * 50, () => clients.readOnLeaders());
  later(cluster, 1_400 + (pick % 2_000), release);
}

function isVoterOf({ observed: { status } }: Member, id: NodeId): boolean {
  return status !== undefined && isVoter(status.conf, id);
}

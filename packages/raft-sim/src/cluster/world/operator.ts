import type { ConfChange, ConfState, MemberChange, NodeId } from '@transitd/raft-core';
import { isQuorum } from '../checks/quorums.ts';
import type { Member } from '../node/member.ts';
import type { World } from './world.ts';

const MEMBERS_MAX = 8;
const READD_MS = 400;

type ChangeKind =
  | 'addLearner'
  | 'promote'
  | 'demote'
  | 'removeVoter'
  | 'removeLeader'
  | 'replaceVoter'
  | 'jointChange'
  | 'leaveJoint'
  | 'removeAndReadd';

/**
 * Changes the membership like a careful operator: enough healthy voters always remain. Nodes that are lost permanently count as dead from
 * the moment of their loss.
 */
export class Operator {
  readonly #cluster: World;
  /** Configurations that were requested and may still be committed; the outcome of some is never known. */
  readonly #asked = new Set<ConfState>();

  constructor(cluster: World) {
    this.#cluster = cluster;
  }

  /** Returns whether the cluster would keep working without this node: in every configuration that any log holds or may get. */
  canLose(victim: Member): boolean {
    const lives = (id: NodeId): boolean => id !== victim.id && this.#lives(id);
    const confs = [
      ...this.#cluster.members.flatMap(({ observed }) => observed.shadow.confs.map(({ conf }) => conf)),
      ...this.#asked,
    ];
    return confs.every((conf) => conf.voters.length === 0 || isQuorum(conf, lives));
  }

  change(kind: ChangeKind, pick: number): void {
    const leader = this.#cluster.leader;
    const conf = leader?.observed.status?.conf;
    if (leader === undefined || conf === undefined) return;
    const change = this.#changeFor(kind, pick, leader, conf);
    if (change !== undefined) this.#propose(leader, change);
  }

  /** Removes that voter if enough healthy ones remain. */
  remove(id: NodeId): void {
    const { leader } = this.#cluster;
    if (leader !== undefined) this.#propose(leader, { kind: 'change', members: [{ id, to: 'none' }] });
  }

  /** Removes two voters at once and promotes a learner, if there is one. The configuration stays joint until a later step leaves it. */
  exchangeVoters(): void {
    const { leader } = this.#cluster;
    const conf = leader?.observed.status?.conf;
    if (leader === undefined || conf === undefined || conf.votersOutgoing.length > 0) return;
    const leaving = conf.voters.filter((id) => id !== leader.id).slice(0, 2);
    const members = [
      ...leaving.map((id): MemberChange => ({ id, to: 'learner' })),
      ...conf.learners.slice(0, 1).map((id): MemberChange => ({ id, to: 'voter' })),
    ];
    if (members.length > 1) this.#propose(leader, { kind: 'change', members, autoLeave: false });
  }

  /** Adds a node under a new id, to replace the one that was lost. */
  rejoin(): Member {
    const member = this.#cluster.join();
    const { leader } = this.#cluster;
    const learner: ConfChange = { kind: 'change', members: [{ id: member.id, to: 'learner' }] };
    if (leader !== undefined) this.#propose(leader, learner);
    return member;
  }

  /** Returns whether that learner may become a voter: not if it was lost after it caught up. */
  mayPromote(learner: NodeId, conf: ConfState): boolean {
    return this.#canGoOn(targetOf(conf, [{ id: learner, to: 'voter' }]));
  }

  /**
   * Does the remaining work once all faults have ended: removes dead members, leaves a joint configuration. Returns true when no work is
   * left.
   */
  tidy(): boolean {
    const { leader } = this.#cluster;
    const conf = leader?.observed.status?.conf;
    if (leader === undefined || conf === undefined) return false;
    if (conf.votersOutgoing.length > 0) {
      if (!conf.autoLeave) this.#propose(leader, { kind: 'leave' });
      return false;
    }
    const dead = [...conf.voters, ...conf.learners].find((id) => !this.#lives(id));
    if (dead === undefined) return true;
    this.#propose(leader, { kind: 'change', members: [{ id: dead, to: 'none' }] });
    return false;
  }

  #lives(id: NodeId): boolean {
    const member = this.#cluster.member(id);
    return member !== undefined && member.fate === 'healthy' && !member.isDamaged;
  }

  #changeFor(kind: ChangeKind, pick: number, leader: Member, conf: ConfState): ConfChange | undefined {
    const voters = conf.voters.filter((id) => id !== leader.id);
    const voter = voters[pick % Math.max(1, voters.length)];
    const learner = conf.learners[pick % Math.max(1, conf.learners.length)];
    const change = (...members: readonly (MemberChange | undefined)[]): ConfChange | undefined => {
      const known = members.filter((member) => member !== undefined);
      return known.length < members.length ? undefined : { kind: 'change', members: known, autoLeave: pick % 4 !== 0 };
    };
    const to = (id: NodeId | undefined, part: MemberChange['to']): MemberChange | undefined =>
      id === undefined ? undefined : { id, to: part };
    switch (kind) {
      case 'addLearner':
        if (conf.voters.length + conf.learners.length >= MEMBERS_MAX) return undefined;
        return change(to(this.#cluster.join().id, 'learner'));
      case 'promote':
        return change(to(learner, 'voter'));
      case 'demote':
        return change(to(voter, 'learner'));
      case 'removeVoter':
        return change(to(voter, 'none'));
      case 'removeLeader':
        return change(to(leader.id, 'none'));
      case 'replaceVoter':
        return change(to(learner, 'voter'), to(voter, 'none'));
      case 'jointChange':
        return change(
          to(learner, 'voter'),
          to(voter, pick % 3 === 0 ? 'none' : 'learner'),
          to(leader.id, pick % 5 === 0 ? 'learner' : 'voter'),
        );
      case 'leaveJoint':
        return { kind: 'leave' };
      case 'removeAndReadd':
        this.#readd(learner ?? voter);
        return change(to(learner ?? voter, 'none'));
    }
  }

  /** Removes a node and adds it again soon after, with its disk unchanged; only in clusters without tombstones. */
  #readd(id: NodeId | undefined): void {
    const member = id === undefined ? undefined : this.#cluster.member(id);
    if (member === undefined) return;
    this.#cluster.clock.after(READD_MS, () => {
      const { leader } = this.#cluster;
      const conf = leader?.observed.status?.conf;
      const isOut = conf !== undefined && ![...conf.voters, ...conf.votersOutgoing, ...conf.learners].includes(member.id);
      if (leader === undefined || !isOut || member.fate !== 'healthy' || this.#cluster.isHealed) return;
      this.#propose(leader, { kind: 'change', members: [{ id: member.id, to: 'learner' }] });
    });
  }

  #propose(leader: Member, change: ConfChange): void {
    const { incarnation } = leader;
    if (incarnation === undefined) return;
    // The configuration is read when the node runs the task, because a pause and other changes may come before that.
    this.#cluster.enter(leader, incarnation, () => {
      const { conf } = incarnation.host.consensus();
      const target = change.kind === 'leave' ? conf : targetOf(conf, change.members);
      if (!this.#canGoOn(target)) return;
      this.#asked.add(target);
      incarnation.host.proposeConf(change, ({ kind }) => {
        if (kind !== 'unknown') this.#asked.delete(target);
      });
    });
  }

  #canGoOn(conf: ConfState): boolean {
    return conf.voters.length > 0 && isQuorum(conf, (id) => this.#lives(id));
  }
}

/** Returns the joint configuration of a change: the new and the old voters. A quorum of both is needed until the change is done. */
function targetOf(conf: ConfState, members: readonly MemberChange[]): ConfState {
  const part = new Map(members.map(({ id, to }) => [id, to]));
  const stays = conf.voters.filter((id) => (part.get(id) ?? 'voter') === 'voter');
  const comes = members.filter(({ id, to }) => to === 'voter' && !conf.voters.includes(id)).map(({ id }) => id);
  return { ...conf, voters: [...stays, ...comes], votersOutgoing: conf.voters };
}

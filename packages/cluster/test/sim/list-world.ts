import type { NodeId } from '@transitd/raft-core';
import { SimRandom } from '@transitd/raft-sim';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import {
  certificateShown,
  certificateSigned,
  certificatesOf,
  encodeMembership,
  type Member,
  type Membership,
  memberRemoved,
  noCommittedMembers,
} from '../../src/membership/membership.ts';
import { MembershipList } from '../../src/membership/membership-list.ts';
import { judgeList, type ListContent } from '../../src/membership/signed-list.ts';

/** The decisions under test, or copies of them with a fault. */
export interface ListDecisions {
  readonly judge: typeof judgeList;
  /** Whether a node admits a certificate to its cluster port. */
  readonly admits: (node: ListNode, certificate: string) => boolean;
  /** Called when a node takes a list. */
  readonly takes: (node: ListNode, list: ListContent) => void;
  /** Whether the active node signs the list of a new configuration. */
  readonly signs: boolean;
}

export const realListDecisions: ListDecisions = {
  judge: judgeList,
  admits: ({ membershipList }, certificate) => membershipList.memberState(certificate)?.memberState === 'member',
  takes: ({ membershipList }, list) => void membershipList.useSignedList(list),
  signs: true,
};

/** A committed configuration. */
export interface Committed {
  readonly index: number;
  readonly membership: Membership;
}

/** The disk of a node. */
interface Disk {
  readonly log: Committed;
  readonly newest: ListContent | undefined;
  readonly certificate: string;
}

/** A broken rule. */
export class Broken extends Error {}

export function requires(holds: boolean, rule: string, facts: object = {}): asserts holds {
  if (!holds) throw new Broken(`${rule}: ${JSON.stringify(facts)}`);
}

export const clusterId = 'c';

/** A node whose log is abstract: it holds one committed configuration. Its decisions about lists are the real ones. */
export class ListNode {
  readonly id: NodeId;
  disk: Disk;
  /** An earlier state of the disk. */
  kept: Disk;
  isUp = true;
  membershipList: MembershipList;

  constructor(id: NodeId, log: Committed, certificate: string) {
    this.id = id;
    this.disk = { log, newest: undefined, certificate };
    this.kept = this.disk;
    this.membershipList = this.#opened();
  }

  /** Starts again with what is on the disk. */
  restart(disk: Disk = this.disk): void {
    this.disk = disk;
    this.membershipList = this.#opened();
  }

  append(log: Committed): void {
    this.disk = { ...this.disk, log };
    this.membershipList.configurationChanged();
  }

  #opened(): MembershipList {
    const membershipList = new MembershipList('', { membersAtJoin: [] } as Partial<NodeIdentity> as NodeIdentity);
    const consensus = () => {
      const { index, membership } = this.disk.log;
      const conf = { context: encodeMembership(membership) };
      return { conf, confIndex: index, committedConf: conf, committedConfIndex: index };
    };
    membershipList.useLog({ driver: { status: () => ({ nodeId: this.id }), consensus } });
    if (this.disk.newest !== undefined) membershipList.useSignedList(this.disk.newest);
    return membershipList;
  }
}

const certificateOf = (id: NodeId, generation: number): string =>
  `${id.toString(16).padStart(4, '0')}${generation.toString(16).padStart(4, '0')}`.repeat(8);
const memberOf = (id: NodeId): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: certificateOf(id, 0),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});

/** Nodes, links between them and the one history of committed configurations, which consensus guarantees. */
export class ListWorld {
  readonly random: SimRandom;
  readonly nodes = new Map<NodeId, ListNode>();
  readonly certificates = new Map<string, NodeId>();
  /** The committed configurations by index. */
  readonly history = new Map<number, Membership>();
  /** Lists taken by nodes that knew none of the current members before. */
  rescued = 0;
  readonly #decisions: ListDecisions;
  readonly #cut = new Set<NodeId>();
  #newest: Committed;
  #generation = 0;

  constructor(seed: number, decisions: ListDecisions) {
    this.random = new SimRandom(seed);
    this.#decisions = decisions;
    const members = Array.from({ length: this.random.pick([2, 3, 3, 5]) }, (_, at) => memberOf(at + 1));
    this.#newest = { index: 1, membership: { members, removed: [] } };
    this.history.set(1, this.#newest.membership);
    for (const { id } of members) this.#join(id);
  }

  get newest(): Committed {
    return this.#newest;
  }

  admits(node: ListNode, certificate: string): boolean {
    return this.#decisions.admits(node, certificate);
  }

  /** Whether two nodes are connected: the link works, and each admits the other. */
  isConnected(one: ListNode, other: ListNode): boolean {
    return this.#isLinked(one, other) && this.admits(one, other.disk.certificate) && this.admits(other, one.disk.certificate);
  }

  /** The node that leads: it has the newest configuration, and is connected to a majority of it. */
  get leader(): ListNode | undefined {
    const { index, membership } = this.#newest;
    return membership.members
      .flatMap(({ id }) => this.nodes.get(id) ?? [])
      .find((node) => node.isUp && node.disk.log.index === index && this.#isMajority(node, membership));
  }

  /** Adds, removes or renews a member, if the leader reaches a majority before and after the change. */
  change(): void {
    const { leader } = this;
    if (leader === undefined) return;
    const before = this.#newest.membership;
    const { id } = this.random.pick(before.members);
    const after = this.random.pick([this.#added, memberRemoved, memberRemoved, this.#renewed])(before, id);
    if (
      after === before ||
      after.members.length === 0 ||
      after.members.length > 6 ||
      !after.members.some((one) => one.id === leader.id)
    )
      return;
    if (!this.#isMajority(leader, after)) return;
    this.#newest = { index: this.#newest.index + 1, membership: after };
    this.history.set(this.#newest.index, after);
    for (const one of after.members) if (!this.nodes.has(one.id)) this.#join(one.id);
    const reached = [...this.nodes.values()].filter((node) => node === leader || this.isConnected(leader, node));
    for (const node of reached) node.append(this.#newest);
    for (const { id, nextCertificate } of after.members) {
      const node = this.nodes.get(id);
      if (nextCertificate !== undefined && node !== undefined && reached.includes(node))
        node.disk = { ...node.disk, certificate: nextCertificate };
    }
  }

  /** The leader signs the newest configuration, and sends log and list to the members that it is connected to. */
  heartbeats(): void {
    const { leader } = this;
    if (leader === undefined) return;
    const { index, membership } = this.#newest;
    if (this.#decisions.signs && index > (leader.disk.newest?.index ?? 0))
      this.receive(leader, { clusterId, index, members: membership.members }, leader);
    for (const node of this.nodes.values()) {
      if (node === leader || !this.isConnected(leader, node)) continue;
      if (membership.members.some(({ id }) => id === node.id)) node.append(this.#newest);
      if (leader.disk.newest !== undefined) this.receive(node, leader.disk.newest, leader);
    }
  }

  /** A node presents its list to another one that does not admit it. A node without a leader accepts lists from unlisted nodes. */
  present(from: ListNode, to: ListNode): void {
    const { leader } = this;
    const { newest, certificate } = from.disk;
    if (newest === undefined || from === to || !this.#isLinked(from, to) || !this.admits(from, to.disk.certificate)) return;
    const isLeaderless = leader === undefined || (leader !== to && !this.isConnected(leader, to));
    if (isLeaderless || this.admits(to, certificate)) this.receive(to, newest, from);
  }

  receive(node: ListNode, list: ListContent, from: ListNode): void {
    const { newest, log } = node.disk;
    const caller = { id: from.id, certificate: from.disk.certificate };
    const committed = node.membershipList.committed;
    const verdict = this.#decisions.judge(list, { clusterId, newest: newest ?? noCommittedMembers, committed, caller });
    const isOther = newest?.index === list.index && JSON.stringify(newest.members) !== JSON.stringify(list.members);
    requires(!isOther || verdict !== 'take', 'a list with the index of the newest and other members is never taken');
    if (verdict !== 'take') return;
    const rights = () => JSON.stringify([node.membershipList.membership, node.membershipList.committed, node.disk.log]);
    const before = rights();
    const knewNone = !this.#newest.membership.members.some((one) => one.id !== node.id && this.admits(node, one.certificate));
    requires(list.index > (newest?.index ?? 0), 'the index of the newest list never falls', {
      newest: newest?.index,
      list: list.index,
    });
    requires(list.index >= log.index, "no list below the node's log is taken", { log: log.index, list: list.index });
    const named = list.members.find(({ id }) => id === caller.id);
    requires(
      named !== undefined && certificatesOf(named).includes(caller.certificate),
      'a list is taken only from a node that it names',
    );
    node.disk = { ...node.disk, newest: list };
    this.#decisions.takes(node, list);
    requires(rights() === before, 'a list changes no configuration: no vote, quorum or read eligibility', { id: node.id });
    if (knewNone && node !== from) this.rescued += 1;
  }

  isolate(id: NodeId): void {
    this.#cut.add(id);
  }

  mend(): void {
    this.#cut.clear();
  }

  /** Rolls a disk back, unless a majority would lose the newest configuration: consensus does not survive that. */
  rollBack(node: ListNode): void {
    const { index, membership } = this.#newest;
    const have = membership.members.filter(({ id }) => id !== node.id && this.nodes.get(id)?.disk.log.index === index);
    if (2 * have.length > membership.members.length) node.restart(node.kept);
  }

  #isLinked(one: ListNode, other: ListNode): boolean {
    return one.isUp && other.isUp && !this.#cut.has(one.id) && !this.#cut.has(other.id);
  }

  #isMajority(leader: ListNode, { members }: Membership): boolean {
    const reached = members.filter(({ id }) => {
      const node = this.nodes.get(id);
      return node === undefined || node === leader || this.isConnected(leader, node); // a node that joins now is connected
    });
    return 2 * reached.length > members.length;
  }

  #join(id: NodeId): void {
    const certificate = certificateOf(id, 0);
    this.certificates.set(certificate, id);
    this.nodes.set(id, new ListNode(id, this.#newest, certificate));
  }

  readonly #added = (membership: Membership): Membership => ({
    ...membership,
    members: [...membership.members, memberOf(this.nodes.size + 1)],
  });

  /** Signs a new certificate for a member, or drops the old one of a member that uses the new one. */
  readonly #renewed = (membership: Membership, id: NodeId): Membership => {
    const member = membership.members.find((one) => one.id === id);
    if (member?.nextCertificate !== undefined && member.nextCertificate === this.nodes.get(id)?.disk.certificate)
      return certificateShown(membership, id, member.nextCertificate);
    if (member?.nextCertificate !== undefined) return membership;
    this.#generation += 1;
    const certificate = certificateOf(id, this.#generation);
    this.certificates.set(certificate, id);
    return certificateSigned(membership, id, certificate);
  };
}

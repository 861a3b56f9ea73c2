import { X509Certificate } from 'node:crypto';
import type { LogIndex, NodeId, Status } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { type NodeIdentity, writeIdentity } from './identity.ts';
import {
  type CommittedMembers,
  decodeMembership,
  type ListedNode,
  listedNode,
  type Member,
  type Membership,
  noCommittedMembers,
  noMembers,
} from './membership.ts';
import { namedAuthorities } from './rotation-phase.ts';

/** The configurations in the log of a node. */
interface Log {
  status(): { readonly nodeId: NodeId };
  consensus(): Pick<Status, 'confIndex' | 'committedConfIndex'> &
    Readonly<Record<'conf' | 'committedConf', { readonly context: Uint8Array }>>;
}

/** Of a node whose log is not open yet: it names no member, and not this node. */
const noLog: Log = {
  status: () => ({ nodeId: 0 }),
  consensus: () => ({
    ...{ conf: { context: new Uint8Array() }, confIndex: 0 },
    ...{ committedConf: { context: new Uint8Array() }, committedConfIndex: 0 },
  }),
};

const noReport = { ...noCommittedMembers, from: 0 };

/** The members of the cluster as this node knows them, and this node's identity. */
export class MembershipList {
  readonly #directory: string;
  #identity: NodeIdentity | undefined;
  #membership: Membership = noMembers;
  #committed: Membership & { readonly index: LogIndex } = { index: 0, ...noMembers };
  /** Committed members that a member reported while this node had no leader. */
  #reported: CommittedMembers & { readonly from: NodeId } = noReport;
  /** The newest membership list signed by the cluster's authority. */
  #signedList = noCommittedMembers;
  /** The lists of members that are in use, in order of precedence. */
  #lists: readonly (readonly Member[])[] = [];
  #log = noLog;
  /** The trusted authorities, by PEM. */
  #authorities = new Map<string, X509Certificate>();

  constructor(directory: string, identity: NodeIdentity | undefined) {
    this.#directory = directory;
    this.#identity = identity;
    this.configurationChanged();
  }

  /** Undefined on a founder that has not been active since `cluster_addr` was configured. */
  get identity(): NodeIdentity | undefined {
    return this.#identity;
  }

  requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new StoreError('stopped', 'this node has no certificate for the cluster port yet');
    return this.#identity;
  }

  /** Stores an identity and puts it in force. @throws errors of the file system */
  async setIdentity(identity: NodeIdentity): Promise<void> {
    await writeIdentity(this.#directory, identity);
    this.#identity = identity;
  }

  /** Uses the log's configuration from now on. */
  useLog({ driver }: { readonly driver: Log }): void {
    this.#log = driver;
    this.configurationChanged();
  }

  /** Rereads the configuration in force and the newest committed one. */
  configurationChanged(): void {
    const { conf, confIndex, committedConf, committedConfIndex } = this.#log.consensus();
    this.#membership = decodeMembership(conf.context);
    this.#committed = {
      index: committedConfIndex,
      ...(confIndex === committedConfIndex ? this.#membership : decodeMembership(committedConf.context)),
    };
    const local = [this.members, this.#committed.members, this.#membersAtJoin];
    const isAhead = ({ index }: CommittedMembers): boolean => index > this.#committed.index;
    const isNamed = local.flat().some(({ id }) => id === this.#reported.from);
    if (!isAhead(this.#reported) || !isNamed) this.#reported = noReport;
    const newestFirst = [this.#reported, this.#signedList].filter(isAhead).sort((a, b) => b.index - a.index);
    this.#lists = [
      ...newestFirst.filter(({ index }) => index > confIndex).map(({ members }) => members),
      ...local,
      ...newestFirst.filter(({ index }) => index <= confIndex).map(({ members }) => members),
    ];
  }

  /**
   * From now on also admits and calls the members of a signed list, until the log of this node reaches the index of the list.
   * @returns whether the list names a member that was not known
   */
  useSignedList({ index, members }: CommittedMembers): boolean {
    const before = new Set(this.knownMembers.map(({ id }) => id));
    this.#signedList = { index, members };
    this.configurationChanged();
    return this.knownMembers.some(({ id }) => !before.has(id));
  }

  /**
   * Uses the committed members that another member reports while this node has no leader: this node may have been away while all other
   * members were replaced. Admits the reported members too, in memory only, until this node's log catches up or no longer names the
   * reporting member.
   * @returns whether the report was used
   */
  useReport(from: NodeId, { index, members }: CommittedMembers): boolean {
    if (index <= Math.max(this.#committed.index, this.#reported.index)) return false;
    this.#reported = { from, index, members };
    this.configurationChanged();
    return this.#reported !== noReport;
  }

  /** The members by the newest committed configuration in this node's log. */
  get committed(): CommittedMembers {
    const { index, members } = this.#committed;
    return { index, members };
  }

  /** The membership by the configuration in force, committed or not. */
  get membership(): Membership {
    return this.#membership;
  }

  /** Certificate (PEM) of the signing authority by the newest committed configuration; undefined before the first rotation. */
  get committedAuthority(): string | undefined {
    return this.#committed.authorities?.current;
  }

  /**
   * The trusted authorities: those of the configuration in force, which may be rolled back, and those of the committed configuration. Until
   * the log names this node, and before the first rotation, also the authority of the node's identity.
   */
  get authorities(): readonly X509Certificate[] {
    const named = [this.#membership, this.#committed].flatMap(namedAuthorities);
    const local = this.#identity?.authority;
    const namesAuthorities = this.#committed.authorities !== undefined && !this.#isBeforeOwnJoin;
    const trusted = new Set(namesAuthorities || local === undefined ? named : [...named, local]);
    this.#authorities = new Map([...trusted].map((pem) => [pem, this.#authorities.get(pem) ?? new X509Certificate(pem)]));
    return [...this.#authorities.values()];
  }

  /** The members by the configuration in force. Before the log names any, the members at the time of the join. */
  get members(): readonly Member[] {
    return this.#membership.members.length > 0 ? this.#membership.members : (this.#identity?.membersAtJoin ?? []);
  }

  /** Ids of all nodes that may still serve: known members, and recently removed ones. */
  get possiblyServing(): readonly NodeId[] {
    return [...this.knownMembers, ...this.#membership.removed].map(({ id }) => id);
  }

  /**
   * All members that this node calls and admits. The members of the committed configuration are included, because an uncommitted one may be
   * rolled back and an election may need them. If several lists name a member, its entry in the newest list counts.
   */
  get knownMembers(): readonly Member[] {
    const known = new Map<NodeId, Member>();
    for (const member of this.#all) if (!known.has(member.id)) known.set(member.id, member);
    return [...known.values()];
  }

  member(id: NodeId): Member | undefined {
    return this.#all.find((member) => member.id === id);
  }

  /** Returns the node that a certificate belongs to. A removal counts only once it is committed. */
  memberState(fingerprint: string): ListedNode | undefined {
    return listedNode({ members: this.#all, removed: this.#committed.removed }, fingerprint);
  }

  /** Returns the committed index at which a node is known to be removed; undefined if it is not. */
  removedAt(id: NodeId): LogIndex | undefined {
    return this.#committed.removed.some((one) => one.id === id) ? this.#committed.index : undefined;
  }

  /**
   * The members at the time of the join, until the log names this node: a new node reads the log from its beginning, which names former
   * members.
   */
  get #membersAtJoin(): readonly Member[] {
    return this.#isBeforeOwnJoin ? (this.#identity?.membersAtJoin ?? []) : [];
  }

  get #isBeforeOwnJoin(): boolean {
    const { members, removed } = this.#committed;
    const self = this.#log.status().nodeId;
    return ![...members, ...removed].some(({ id }) => id === self);
  }

  get #all(): readonly Member[] {
    return this.#lists.flat();
  }
}

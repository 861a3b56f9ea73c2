import { X509Certificate } from 'node:crypto';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import type { Storage } from '../ports/storage-port.ts';
import { type NodeIdentity, writeIdentity } from './identity.ts';
import { decodeMembership, type ListedNode, listedNode, type Member, type Membership, nobody } from './membership.ts';
import { namedAuthorities } from './rotation-phase.ts';

/** Members by a committed configuration, and the entry that brought it. */
export interface ToldMembers {
  readonly index: LogIndex;
  readonly members: readonly Member[];
}

/** Who belongs to the cluster, as this node knows it, and by what it is known itself. */
export class MembershipList {
  readonly #directory: string;
  #identity: NodeIdentity | undefined;
  #membership: Membership = nobody;
  #committed: Membership & { readonly index: LogIndex } = { index: 0, ...nobody };
  #told: (ToldMembers & { readonly from: NodeId }) | undefined;
  /** The highest membership list that was seen, signed by the cluster's authority. */
  #signed: ToldMembers | undefined;
  /** Newest first. */
  #lists: readonly (readonly Member[])[] = [];
  #storage: Storage | undefined;
  /** By their PEM, those that are trusted. */
  #authorities = new Map<string, X509Certificate>();

  constructor(directory: string, identity: NodeIdentity | undefined) {
    this.#directory = directory;
    this.#identity = identity;
  }

  /** Absent on a founder that has not been active since it got a cluster address. */
  get identity(): NodeIdentity | undefined {
    return this.#identity;
  }

  requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new StoreError('stopped', 'this node has no certificate yet');
    return this.#identity;
  }

  /** Puts an identity in force, durably. @throws errors of the file system */
  async become(identity: NodeIdentity): Promise<void> {
    await writeIdentity(this.#directory, identity);
    this.#identity = identity;
  }

  /** From now on the log tells. */
  follow(storage: Storage): void {
    this.#storage = storage;
    this.configured();
  }

  /** The configuration in force, or the newest committed one, has changed. */
  configured(): void {
    if (this.#storage === undefined) return;
    const { conf, confIndex, committedConf, committedConfIndex } = this.#storage.driver.consensus();
    this.#membership = decodeMembership(conf.context);
    this.#committed = {
      index: committedConfIndex,
      ...(confIndex === committedConfIndex ? this.#membership : decodeMembership(committedConf.context)),
    };
    const local = [this.members, this.#committed.members, this.#seeds];
    const told = this.#told === undefined || this.#committed.index >= this.#told.index ? undefined : this.#told;
    this.#told = told && local.flat().some(({ id }) => id === told.from) ? told : undefined;
    const newestFirst = [this.#told, this.#signed]
      .flatMap((one) => (one === undefined || one.index <= this.#committed.index ? [] : [one]))
      .sort((a, b) => b.index - a.index);
    this.#lists = [
      ...newestFirst.filter(({ index }) => index > confIndex).map(({ members }) => members),
      ...local,
      ...newestFirst.filter(({ index }) => index <= confIndex).map(({ members }) => members),
    ];
  }

  /**
   * Admits and calls the members of a signed list too, until this node's own log has come as far.
   * @returns whether it names anybody who was not known
   */
  listed({ index, members }: ToldMembers): boolean {
    const before = new Set(this.known.map(({ id }) => id));
    this.#signed = { index, members };
    this.configured();
    return this.known.some(({ id }) => !before.has(id));
  }

  /**
   * A member that the own log names says what is committed, to a node that nobody leads: it may have been away while everybody else was
   * replaced. Whom that names is let in too, in memory, until the own log has come as far, or names the teller no more.
   * @returns whether that is news
   */
  told(from: NodeId, { index, members }: ToldMembers): boolean {
    const newest = Math.max(this.#committed.index, this.#told?.index ?? 0);
    if (this.#storage === undefined || index <= newest) return false;
    this.#told = { from, index, members };
    this.configured();
    return this.#told !== undefined;
  }

  /** What this node's log holds for certain, to be told to others. */
  get committed(): ToldMembers {
    const { index, members } = this.#committed;
    return { index, members };
  }

  get membership(): Membership {
    return this.#membership;
  }

  /** The authority that signs by the newest committed configuration, PEM; undefined before the first rotation. */
  get committedAuthority(): string | undefined {
    return this.#committed.authorities?.current;
  }

  /**
   * The authorities whose signatures count: those of the configuration in force and of the committed one, for the former may be rolled back.
   * Until this node's log tells of the node itself, and before the first rotation, the one told at the join or the renewal.
   */
  get authorities(): readonly X509Certificate[] {
    const named = [this.#membership, this.#committed].flatMap(namedAuthorities);
    const local = this.#identity?.authority;
    const isTold = this.#committed.authorities !== undefined && !this.#isBeforeOwnJoin;
    const trusted = new Set(isTold || local === undefined ? named : [...named, local]);
    this.#authorities = new Map([...trusted].map((pem) => [pem, this.#authorities.get(pem) ?? new X509Certificate(pem)]));
    return [...this.#authorities.values()];
  }

  /** Everybody by the configuration in force; before the log tells, as was told at the join. */
  get members(): readonly Member[] {
    return this.#membership.members.length > 0 ? this.#membership.members : (this.#identity?.seeds ?? []);
  }

  /** Ids of everybody who may still serve: members, and those that were removed of late. */
  get served(): readonly NodeId[] {
    return [...this.known, ...this.#membership.removed].map(({ id }) => id);
  }

  /**
   * Everybody whom this node calls and lets in. A configuration that is not committed may be rolled back: until it is, who belongs to the one
   * before it does so too, for an election may need them. By the newest list where several name one.
   */
  get known(): readonly Member[] {
    const known = new Map<NodeId, Member>();
    for (const member of this.#all) if (!known.has(member.id)) known.set(member.id, member);
    return [...known.values()];
  }

  member(id: NodeId): Member | undefined {
    return this.#all.find((member) => member.id === id);
  }

  /** Whose certificate that is. Removed counts only when it is committed. */
  memberState(fingerprint: string): ListedNode | undefined {
    return listedNode({ members: this.#all, removed: this.#committed.removed }, fingerprint);
  }

  /** As of which entry a node is known to be removed for good. */
  removedAt(id: NodeId): LogIndex | undefined {
    return this.#committed.removed.some((one) => one.id === id) ? this.#committed.index : undefined;
  }

  /** Of a node that follows the log from its beginning: until that tells of the node itself, it tells of those who were there before it. */
  get #seeds(): readonly Member[] {
    return this.#isBeforeOwnJoin ? (this.#identity?.seeds ?? []) : [];
  }

  get #isBeforeOwnJoin(): boolean {
    const { members, removed } = this.#committed;
    const self = this.#storage?.driver.status().nodeId;
    return ![...members, ...removed].some(({ id }) => id === self);
  }

  get #all(): readonly Member[] {
    return this.#storage === undefined ? this.members : this.#lists.flat();
  }
}

import { RequestError } from '@transitd/http';
import type { Logger } from '@transitd/process';
import type { Driver, NodeId } from '@transitd/raft-core';
import { type CommitResult, type Store, StoreError } from '@transitd/storage-fsm';
import { authorityPath, authorityRecord, makeAuthority, nextAuthorityPath, readAuthority } from '../membership/authority.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { decodeMembership, type Membership } from '../membership/membership.ts';
import {
  advanced,
  announced,
  isSameAuthority,
  phaseOf,
  type RotationPhase,
  waitedFor,
  withdrawn,
} from '../membership/rotation-phase.ts';
import type { StandbyNews } from '../standbys/standbys.ts';
import { authorityOf } from './member-entries.ts';

export interface AuthorityRotationParts {
  readonly driver: Pick<Driver<CommitResult>, 'status' | 'consensus' | 'peers'>;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  /** Through the barrier. */
  readonly store: Store;
  readonly clusterId: string;
  /** What a member has said of itself in this term of the active node. */
  readonly news: (id: NodeId) => Pick<StandbyNews, 'readsAuthorities'> | undefined;
  readonly log: Logger;
}

/** How a rotation stands. */
export interface RotationStatus {
  readonly phase: RotationPhase;
  /** The authority that signs, PEM; undefined before the first rotation. */
  readonly current: string | undefined;
  /** Names of the members without which it does not go on. */
  readonly waitsFor: readonly string[];
}

/**
 * Rotates the cluster's authority (decision 103), on the active node. Each phase is one change of the configuration, and the key of the authority
 * that signs is always in one of two records, so the next active node goes on wherever this one stops.
 */
export class AuthorityRotation {
  readonly #parts: AuthorityRotationParts;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: AuthorityRotationParts) {
    this.#parts = parts;
  }

  get status(): RotationStatus {
    const membership = this.#membership;
    return {
      phase: phaseOf(membership.authorities),
      current: membership.authorities?.current,
      waitsFor: waitedFor(membership, this.#holds).map(({ name }) => name),
    };
  }

  /**
   * Announces a new authority; resolves when that is committed. All else happens in `advance`.
   * @throws RequestError `invalid_request` while a rotation is under way, or a member is away or too old; StoreError
   */
  begin(): Promise<void> {
    return this.#inTurn(() => this.#begin());
  }

  /** Goes on with a rotation as far as its members allow. @throws StoreError */
  advance(): Promise<void> {
    return this.#inTurn(() => this.#advance());
  }

  async #begin(): Promise<void> {
    const { store, clusterId, changes, log } = this.#parts;
    await this.#settle();
    this.#refuseToBegin();
    await this.#dropUnreadable();
    // By these revisions a rotation that another active node has begun meanwhile is noticed.
    const revisions = await this.#revisions();
    const { certificate: current } = await authorityOf(store, clusterId, this.#committed.authorities?.current);
    const next = await makeAuthority(clusterId, new Date());
    const conditions = revisions.current === 0 ? await this.#revisions() : revisions;
    await this.#commit(conditions, [authorityRecord(next, nextAuthorityPath)]);
    await changes.make((_conf, membership) => {
      this.#refuseToBegin(); // somebody may have joined meanwhile
      const after = announced(membership, current, next.certificate);
      if (after === membership) throw underWay();
      return { membership: after };
    });
    log.warn("a rotation of the cluster's authority has begun");
  }

  async #advance(): Promise<void> {
    const { changes, log } = this.#parts;
    await this.#settle();
    const { authorities } = this.#membership;
    const before = phaseOf(authorities);
    if (before === 'none') return;
    const announcedOne = authorities?.next;
    const hasKey = announcedOne === undefined || (await this.#hasNextKey(announcedOne));
    let after: Membership | undefined;
    await changes.make((_conf, membership) => {
      const isSame = membership.authorities?.next === announcedOne;
      const changed = hasKey ? advanced(membership, this.#holds) : withdrawn(membership);
      after = isSame && changed !== membership ? changed : undefined;
      return after && { membership: after };
    });
    if (after === undefined) return;
    await this.#settle();
    if (!hasKey)
      log.error("the rotation of the cluster's authority was withdrawn: the key of the new one is lost. Begin it again");
    else if (before === 'announced') log.warn("the cluster's new authority signs from now on");
    else log.warn("the rotation of the cluster's authority is finished: the old one is trusted no longer");
  }

  /** Once the new authority signs for certain, its key takes the place of the old one, which is lost with that. */
  async #settle(): Promise<void> {
    const { store } = this.#parts;
    const current = this.#committed.authorities?.current;
    if (current === undefined) return;
    const kept = await readAuthority(store);
    if (kept !== undefined && isSameAuthority(kept.certificate, current)) return;
    const revisions = await this.#revisions();
    const next = await readAuthority(store, nextAuthorityPath);
    if (next === undefined || !isSameAuthority(next.certificate, current)) return;
    await this.#commit(revisions, [authorityRecord(next), { path: nextAuthorityPath, value: null }]);
  }

  #refuseToBegin(): void {
    const { driver, news } = this.#parts;
    const { members, authorities } = this.#membership;
    if (phaseOf(authorities) !== 'none') throw underWay();
    const { nodeId } = driver.status();
    const unready = members.filter(({ id }) => id !== nodeId && news(id)?.readsAuthorities !== true);
    if (unready.length === 0) return;
    const names = unready.map(({ name }) => name).join(', ');
    throw new RequestError(
      'invalid_request',
      `the active node has not heard from these members, or they are of an older release: ${names}. Bring them back or remove them first`,
    );
  }

  async #hasNextKey(certificate: string): Promise<boolean> {
    const { store } = this.#parts;
    try {
      const next = await readAuthority(store, nextAuthorityPath);
      return next !== undefined && isSameAuthority(next.certificate, certificate);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      return false; // a restore has made it unreadable
    }
  }

  /** A restore has made the record of an authority that signs nothing unreadable: nobody could say what revision it has. @throws StoreError */
  async #dropUnreadable(): Promise<void> {
    const { store } = this.#parts;
    try {
      await readAuthority(store, nextAuthorityPath);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      await store.commit({ conditions: [], writes: [{ path: nextAuthorityPath, value: null }] });
    }
  }

  async #revisions(): Promise<{ readonly current: number; readonly next: number }> {
    const { store } = this.#parts;
    const [current, next] = [await store.get(authorityPath), await store.get(nextAuthorityPath)];
    for (const record of [current, next]) record?.value.fill(0);
    return { current: current?.revision ?? 0, next: next?.revision ?? 0 };
  }

  async #commit(
    { current, next }: { readonly current: number; readonly next: number },
    writes: Parameters<Store['commit']>[0]['writes'],
  ): Promise<void> {
    const conditions = [
      { path: authorityPath, revision: current },
      { path: nextAuthorityPath, revision: next },
    ];
    const { outcome } = await this.#parts.store.commit({ conditions, writes });
    if (outcome === 'conflict') throw new StoreError('busy', "another rotation of the cluster's authority was quicker");
  }

  /** Whether a member has durably what the configuration in force says. */
  readonly #holds = (id: NodeId): boolean => {
    const { driver } = this.#parts;
    const { confIndex, committedConfIndex, stableIndex } = driver.consensus();
    if (confIndex !== committedConfIndex) return false;
    if (id === driver.status().nodeId) return stableIndex >= confIndex;
    return driver.peers().some((peer) => peer.id === id && peer.match >= confIndex);
  };

  get #membership(): Membership {
    return decodeMembership(this.#parts.driver.consensus().conf.context);
  }

  get #committed(): Membership {
    return decodeMembership(this.#parts.driver.consensus().committedConf.context);
  }

  #inTurn(task: () => Promise<void>): Promise<void> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

const underWay = (): RequestError =>
  new RequestError('invalid_request', "a rotation of the cluster's authority is under way: see its status");

import { oneAtATime } from '@transitd/event-loop';
import type { Logger } from '@transitd/process';
import type { Driver, NodeId } from '@transitd/raft-core';
import { type CommitResult, type Store, StoreError } from '@transitd/storage-fsm';
import {
  authorityPath,
  authorityRecord,
  makeAuthority,
  nextAuthorityPath,
  readAuthority,
  readAuthorityIfReadable,
} from '../membership/authority.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { decodeMembership, type Membership } from '../membership/membership.ts';
import {
  advanced,
  announced,
  blockingMembers,
  isSameAuthority,
  phaseOf,
  type RotationPhase,
  withdrawn,
} from '../membership/rotation-phase.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { Standbys } from '../standbys/standbys.ts';
import { changed } from './member-entries.ts';
import { authorityOf } from './signing-authority.ts';

interface AuthorityRotationOptions {
  readonly driver: Pick<Driver<CommitResult>, 'status' | 'consensus' | 'peers'>;
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  /** Store that encrypts through the barrier. */
  readonly store: Store;
  readonly clusterId: string;
  /** A member without a report has sent no heartbeat in this term of the active node. */
  readonly standbys: Pick<Standbys, 'report'>;
  readonly log: Logger;
}

interface RotationStatus {
  readonly phase: RotationPhase;
  /** Certificate (PEM) of the signing authority that the configuration names; undefined before the first rotation. */
  readonly current: string | undefined;
  /** Names of the members that the rotation waits for. */
  readonly waitsFor: readonly string[];
}

/**
 * Rotates the cluster's authority (decision 103), on the active node. Each phase is one configuration change, and the signing authority's
 * key is always in one of two records, so the next active node continues wherever this node stops.
 */
export class AuthorityRotation {
  readonly #options: AuthorityRotationOptions;
  readonly #exclusively = oneAtATime();

  constructor(options: AuthorityRotationOptions) {
    this.#options = options;
  }

  get status(): RotationStatus {
    const membership = this.#membership;
    return {
      phase: phaseOf(membership.authorities),
      current: membership.authorities?.current,
      waitsFor: blockingMembers(membership, this.#hasAnnouncement).map(({ name }) => name),
    };
  }

  /**
   * Announces a new authority; resolves when the announcement is committed. `advance` does the rest.
   * @throws ClusterError `invalid_request` while a rotation is in progress, or when a member is away; StoreError
   */
  begin(): Promise<void> {
    return this.#exclusively(() => this.#begin());
  }

  /** Continues a rotation as far as its members allow. @throws StoreError */
  advance(): Promise<void> {
    return this.#exclusively(() => this.#advance());
  }

  async #begin(): Promise<void> {
    const { store, clusterId, changes, log } = this.#options;
    await this.#keepSigningKey();
    this.#requireReady();
    await this.#dropUnreadable();
    // These revisions detect a rotation that another active node began in the meantime.
    const revisions = await this.#revisions();
    const { certificate: current } = await authorityOf(store, clusterId, this.#committed.authorities?.current);
    const next = await makeAuthority(clusterId, new Date());
    const conditions = revisions.current === 0 ? await this.#revisions() : revisions;
    await this.#commit(conditions, [authorityRecord(next, nextAuthorityPath)]);
    await changes.make((_conf, membership) => {
      this.#requireReady(); // a node may have joined in the meantime
      const after = announced(membership, current, next.certificate);
      if (after === membership) throw inProgress();
      return { membership: after };
    });
    log.warn("a rotation of the cluster's authority was started");
  }

  async #advance(): Promise<void> {
    const { changes, log } = this.#options;
    await this.#keepSigningKey();
    const { authorities } = this.#membership;
    const before = phaseOf(authorities);
    if (before === 'none') return;
    const announcedPem = authorities?.next;
    const hasKey = announcedPem === undefined || (await this.#hasNextKey(announcedPem));
    const change = await changes.make((_conf, membership) => {
      if (membership.authorities?.next !== announcedPem) return undefined;
      return changed(membership, hasKey ? advanced(membership, this.#hasAnnouncement) : withdrawn(membership));
    });
    if (change === undefined) return;
    await this.#keepSigningKey();
    if (!hasKey)
      log.error(
        "the rotation of the cluster's authority was withdrawn because the key of the new authority is lost: start the rotation again",
      );
    else if (before === 'announced')
      log.warn("the cluster's new authority signs now; the old one is trusted until every member has a new certificate");
    else log.warn("the rotation of the cluster's authority is finished: the old authority is no longer trusted");
  }

  /**
   * Replaces the stored key of the old authority by the key of the new one, once the configuration with the new signing authority is
   * committed.
   */
  async #keepSigningKey(): Promise<void> {
    const { store } = this.#options;
    const current = this.#committed.authorities?.current;
    if (current === undefined) return;
    const kept = await readAuthority(store);
    if (kept !== undefined && isSameAuthority(kept.certificate, current)) return;
    const revisions = await this.#revisions();
    const next = await readAuthority(store, nextAuthorityPath);
    if (next === undefined || !isSameAuthority(next.certificate, current)) return;
    await this.#commit(revisions, [authorityRecord(next), { path: nextAuthorityPath, value: null }]);
  }

  #requireReady(): void {
    const { driver, standbys } = this.#options;
    const { members, authorities } = this.#membership;
    if (phaseOf(authorities) !== 'none') throw inProgress();
    const { nodeId } = driver.status();
    const unready = members.filter(({ id }) => id !== nodeId && standbys.report(id) === undefined);
    if (unready.length === 0) return;
    const names = unready.map(({ name }) => name).join(', ');
    throw new ClusterError(
      'invalid_request',
      `the active node has not heard from these members: ${names}. Bring them back or remove them first`,
    );
  }

  async #hasNextKey(certificate: string): Promise<boolean> {
    const next = await readAuthorityIfReadable(this.#options.store, nextAuthorityPath);
    return typeof next === 'object' && isSameAuthority(next.certificate, certificate);
  }

  /** Deletes the record of the next authority if a restore made it unreadable: `get` could not return its revision. @throws StoreError */
  async #dropUnreadable(): Promise<void> {
    const { store } = this.#options;
    if ((await readAuthorityIfReadable(store, nextAuthorityPath)) === 'unreadable')
      await store.commit({ conditions: [], writes: [{ path: nextAuthorityPath, value: null }] });
  }

  async #revisions(): Promise<{ readonly current: number; readonly next: number }> {
    const { store } = this.#options;
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
    const { outcome } = await this.#options.store.commit({ conditions, writes });
    if (outcome === 'conflict')
      throw new StoreError('busy', "another rotation of the cluster's authority has changed its records in the meantime");
  }

  /** Whether a member has durably stored the configuration in force. */
  readonly #hasAnnouncement = (id: NodeId): boolean => {
    const { driver } = this.#options;
    const { confIndex, committedConfIndex, stableIndex } = driver.consensus();
    if (confIndex !== committedConfIndex) return false;
    if (id === driver.status().nodeId) return stableIndex >= confIndex;
    return driver.peers().some((peer) => peer.id === id && peer.match >= confIndex);
  };

  get #membership(): Membership {
    return decodeMembership(this.#options.driver.consensus().conf.context);
  }

  get #committed(): Membership {
    return decodeMembership(this.#options.driver.consensus().committedConf.context);
  }
}

const inProgress = (): ClusterError =>
  new ClusterError('invalid_request', "a rotation of the cluster's authority is in progress: see its status");

import type { Readable } from 'node:stream';
import type { Barrier, SealStatus } from '@transitd/barrier';
import type { Cluster, MemberEvents, Storage } from '@transitd/cluster';
import { sharedRun } from '@transitd/event-loop';
import { type Logger, type RecordClock, reasonOf } from '@transitd/process';
import { type AppliedObserver, type ReplicationState, takesPart } from '@transitd/storage-fsm';
import { activate } from '../port/activation-client.ts';
import type { ActivationToken } from '../port/activation-token.ts';
import { makeSecondaryRequest } from '../port/secondary-certificate.ts';
import type { SecondaryDesk } from '../port/secondary-desk.ts';
import { StoredRegistry } from '../registry/stored-registry.ts';
import { ReplicationError } from '../replication-error.ts';
import { fenceMsMax, fenceMsMin } from '../roles/fence.ts';
import { type Heard, PromotionControl } from '../roles/promotion-control.ts';
import { WriteFence } from '../roles/write-fence.ts';
import { localPrefixesOf, type SetSeal } from '../scope.ts';
import { OutcomeLog } from '../stream/outcome-log.ts';
import { AcknowledgeSetting } from './acknowledge-setting.ts';
import { announcesEpoch } from './announcement.ts';
import { DivergedState } from './diverged-state.ts';
import { KeptReports } from './kept-reports.ts';
import { MaterialConfirmation } from './material-confirmation.ts';
import { OperationTokens } from './operation-tokens.ts';
import { StoredPrimaryCredential } from './primary-credential.ts';
import { PrimarySide, type SecondaryView } from './primary-side.ts';
import { PromotableNode, type Promotion } from './promotable-node.ts';
import { newId, type ReplicationRole } from './replication-role.ts';
import { forgetSecondaries, type PrimaryView, SecondarySide } from './secondary-side.ts';
import { SuccessionKey } from './succession-key.ts';

/** The primary counts as alive if it was heard within this time. */
const recentMs = 10_000;

/** Memory for outcomes: about one minute at 2,000 writes of 500 bytes per second, and four minutes while a whole state is sent. */
const outcomeLimits = { bytesMax: 64 * 2 ** 20, heldBytesMax: 256 * 2 ** 20 };

interface ClusterReplicationOptions {
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly cluster: Cluster;
  readonly events: MemberEvents;
  /** Makes an archive of the present state. @throws StoreError */
  readonly snapshots: { take(): Promise<Readable> };
  /** Name of this node, and its data directory. */
  readonly node: string;
  readonly directory: string;
  /** How many requests may wait for secondaries that are late to confirm key material. */
  readonly lateRequestsMax: number;
  readonly clock: RecordClock;
  readonly log: Logger;
}

/** Disaster-recovery replication on one node: its two sides, which are open as the role requires, and the operations of an operator. */
export class ClusterReplication {
  readonly operationTokens: OperationTokens;
  /** The fence of this cluster as a primary. */
  readonly fence: WriteFence;
  /** Whether the secondaries of this cluster have key material. */
  readonly material: MaterialConfirmation;
  /** The states that this node has kept when a successor replaced them. */
  readonly diverged: DivergedState;
  /** Reports of promotions and losses, the same on each node of the cluster. */
  readonly reports: KeptReports;
  readonly #role: ReplicationRole;
  readonly #storage: Storage;
  readonly #barrier: Barrier;
  readonly #clock: RecordClock;
  readonly #log: Logger;
  readonly #registry: StoredRegistry;
  readonly #credential: StoredPrimaryCredential;
  readonly #succession: SuccessionKey;
  readonly #primary: PrimarySide;
  readonly #secondary: SecondarySide;
  readonly #promotion: PromotionControl<Promotion>;
  readonly #measuring = sharedRun(() => this.#measureDigest());
  readonly #updating = sharedRun(() => this.#tryUpdate());
  #isClosed = false;

  constructor(role: ReplicationRole, options: ClusterReplicationOptions) {
    const { storage, barrier, cluster, events, snapshots, node, directory, lateRequestsMax, clock, log } = options;
    const { store, transfer } = barrier;
    const { machine } = storage;
    this.#role = role;
    this.#storage = storage;
    this.#barrier = barrier;
    this.#clock = clock;
    this.#log = log;

    // Records.
    this.operationTokens = new OperationTokens(store, clock);
    const registry = new StoredRegistry(store);
    const credential = new StoredPrimaryCredential(barrier, log);
    const succession = new SuccessionKey(barrier);
    const reports = new KeptReports(store);
    this.#registry = registry;
    this.#credential = credential;
    this.#succession = succession;
    this.reports = reports;

    // As a primary.
    const outcomes = new OutcomeLog(outcomeLimits);
    const fence = new WriteFence(storage, registry, clock);
    this.fence = fence;
    const primary = new PrimarySide(role, { storage, transfer, cluster, registry, outcomes, fence, succession, clock, log });
    this.#primary = primary;
    const setting = new AcknowledgeSetting(role, store);
    this.material = new MaterialConfirmation(role, { setting, registry, primary, lateRequestsMax, clock, log });

    // As a secondary.
    const diverged = new DivergedState({ machine, snapshots, reports, node, directory, clock, log });
    this.diverged = diverged;
    const secondary = new SecondarySide(role, { storage, transfer, diverged, succession, credential, registry, clock, log });
    this.#secondary = secondary;
    const promotable = new PromotableNode(role, { transfer, secondary, reports, clock, log });
    this.#promotion = new PromotionControl(promotable, { recentMs, clock });

    for (const change of ['status', 'services'] as const) events.on(change, () => this.tick());
    let isRoleNew = false;
    const observer: AppliedObserver = {
      entry: (applied) => {
        outcomes.entry(applied);
        isRoleNew ||= applied.before?.role !== applied.after?.role;
      },
      state: (position) => outcomes.state(position),
    };
    machine.observe(observer, () => {
      primary.progress();
      if (isRoleNew) this.tick();
      isRoleNew = false;
    });
  }

  /** Starts and ends connections as the state of this node requires: after each change, and from time to time. */
  tick(): void {
    if (!this.#isClosed) void this.#updating();
  }

  /** The newest heartbeat of the primary that this node has heard. */
  get lastHeard(): Heard | undefined {
    return this.#secondary.lastHeard;
  }

  /** The connection of a secondary's active node with its primary; undefined on any other node. */
  get primary(): PrimaryView | undefined {
    return this.#secondary.primary;
  }

  /** The secondaries of a primary's active node, by the name that an operator gave them; empty on any other node. */
  get secondaries(): readonly SecondaryView[] {
    return this.#primary.secondaries;
  }

  /** Whole states sent to secondaries since the start of this node. */
  get statesSent(): number {
    return this.#primary.statesSent;
  }

  close(): void {
    this.#isClosed = true;
    this.#secondary.closeLink();
    this.#primary.closePort();
    this.#registry.close();
    this.reports.close();
    this.#succession.close();
    this.#secondary.forgetKey();
  }

  /**
   * Makes this cluster the primary of a new set.
   * @param fenceMs - undefined for a set without a fence
   * @throws ReplicationError, StoreError
   */
  async enablePrimary({ fenceMs }: { readonly fenceMs?: number | undefined } = {}): Promise<void> {
    this.#role.requireActive();
    const barrier = this.#barrier;
    const seal = setSealFor(barrier.sealStatus);
    if (fenceMs !== undefined && !(fenceMs >= fenceMsMin && fenceMs <= fenceMsMax))
      throw new ReplicationError(
        'refused',
        `fence_after must be from ${fenceMsMin / 1000} to ${fenceMsMax / 1000} seconds, or 0 for no fence`,
      );
    if (takesPart(this.#role.state)) throw alreadyTakesPart();
    // Secondaries of a set that was ended cannot follow this one, and the fence would wait for them.
    await forgetSecondaries(this.#registry, this.#role);
    await this.#credential.forget(); // it is of another set, whose primary this cluster must not call
    if (seal === 'own') await barrier.transfer.publishRecoveryShares();
    await this.#succession.renew();
    const [set, id, local] = [newId(), newId(), localPrefixesOf(seal)];
    if ((await this.#role.commit({ kind: 'establish', set, id, local, fenceMs })) === 'conflict') throw alreadyTakesPart();
  }

  /** Issues a token with which a cluster becomes a secondary. @throws ReplicationError, StoreError */
  issueToken(request: Parameters<SecondaryDesk['issueToken']>[0]): Promise<string> {
    this.#role.require('primary');
    return this.#primary.desk.issueToken(request);
  }

  /** Ends the rights of a secondary. @throws ReplicationError, StoreError */
  async revoke(secondary: string): Promise<void> {
    this.#role.require('primary');
    await this.#primary.desk.revoke(secondary);
  }

  /** Opens a kept state from which the primary restores a lost key. @throws ReplicationError; StoreError */
  async openDiverged(archive: string): ReturnType<DivergedState['open']> {
    this.#role.require('primary');
    return this.diverged.open(archive);
  }

  /** Ends the writes of a primary. The position is that of the last one. @throws ReplicationError, StoreError */
  async demote(): Promise<void> {
    const from = this.#role.require('primary').epochs.at(-1);
    if (from === undefined) throw new ReplicationError('wrong_mode', 'this cluster is not a primary');
    if ((await this.#role.commit({ kind: 'demote', from })) === 'conflict')
      throw new ReplicationError('wrong_mode', 'this cluster is not a primary');
  }

  /** Ends replication on a primary. @throws ReplicationError, StoreError */
  async disablePrimary(): Promise<void> {
    this.#role.require('primary');
    await this.#disable();
    await this.#credential.forgetIfPossible(); // that of its time as a secondary
  }

  /**
   * Ends replication on a secondary. A state that it has received remains, and the cluster serves it as one of its own, under a key that
   * the set does not have; its primary goes on serving. Conditions and wait are those of a promotion.
   * @throws ReplicationError with the reason, StoreError
   */
  async disableSecondary(request: { readonly force: boolean }): Promise<void> {
    const { epochs } = this.#role.require('secondary');
    await (epochs.length === 0 ? this.#disable() : this.#promotion.leave(request));
    await this.#credential.forgetIfPossible();
    this.tick();
  }

  async #disable(): Promise<void> {
    if ((await this.#role.commit({ kind: 'disable' })) === 'conflict')
      throw new ReplicationError('wrong_mode', 'the role of this cluster has just changed: try again');
  }

  /**
   * Makes this cluster a secondary. Its own records, except the local ones, are replaced by the primary's when its state has arrived.
   * @throws ReplicationError; StoreError
   */
  async enableSecondary(token: string): Promise<void> {
    this.#role.requireActive();
    if (this.#role.state?.role === 'primary')
      throw new ReplicationError('wrong_mode', 'this cluster is a primary: demote it first');
    const { set, seal, fenceMs } = await this.#activate(token);
    if ((await this.#role.commit({ kind: 'attach', set, local: localPrefixesOf(seal), fenceMs })) === 'conflict')
      throw new ReplicationError('wrong_mode', 'this cluster belongs to another replication set, or is a primary');
    this.#reconnect();
  }

  /**
   * Makes the key for which a primary may encrypt the next activation token; returns the public part.
   * @throws ReplicationError, StoreError
   */
  makeTokenKey(): Promise<string> {
    this.#role.requireActive();
    return this.#credential.makeTokenKey();
  }

  /** Connects a secondary to the primary of its set by a new token, without a loss of records. @throws ReplicationError, StoreError */
  async updatePrimary(token: string): Promise<void> {
    this.#role.require('secondary');
    await this.#activate(token);
    this.#reconnect();
  }

  /**
   * Connects a secondary to its primary again, also if it has stopped to. It receives the whole state if `wholeState`, or if it stopped
   * because its records differ from the primary's.
   * @throws ReplicationError, StoreError
   */
  recover({ wholeState }: { readonly wholeState: boolean }): void {
    this.#role.require('secondary');
    if (wholeState || this.#secondary.linkStatus?.stopped === 'digest_differs') this.#secondary.wantsWholeState = true;
    this.#reconnect();
  }

  /** Makes this cluster the primary. @throws ReplicationError with the reason, StoreError */
  async promote(request: { readonly force: boolean }): Promise<Promotion> {
    this.#role.requireActive();
    const promotion = await this.#promotion.promote(request);
    this.tick();
    return promotion;
  }

  /** Exchanges an activation token for a credential, and stores that. @throws ReplicationError, StoreError */
  async #activate(text: string): Promise<ActivationToken> {
    const token = await this.#credential.readToken(text);
    const { state } = this.#role;
    if (state !== undefined && state.role !== 'disabled' && state.set !== token.set)
      throw new ReplicationError('refused', 'the activation token is of another replication set than this cluster');
    requireSealOf(token.seal, this.#barrier.sealStatus);
    const own = await makeSecondaryRequest(token.secondary, this.#storage.driver.status().clusterId);
    await this.#credential.write(await activate(token, own));
    await this.#credential.dropTokenKey();
    return token;
  }

  #reconnect(): void {
    this.#secondary.closeLink();
    this.tick();
  }

  async #tryUpdate(): Promise<void> {
    try {
      await this.#update();
    } catch (error) {
      this.#log.warn({ reason: reasonOf(error) }, 'replication could not start; it tries again');
    }
  }

  async #update(): Promise<void> {
    const role = this.#role;
    const { state } = role;
    if (state === undefined) return;
    const isUnsealed = !this.#barrier.state.sealed;
    this.#promotion.noteTerm();
    if (isUnsealed) await Promise.all([this.reports.refresh(), this.#succession.refresh()]);
    if (isUnsealed && role.isActive && state.fenceMs !== undefined) await this.fence.activated(role.term);
    if (!this.#knowsDigest(state)) void this.#measuring();
    if (isUnsealed && state.role === 'primary') await this.material.tick();
    if (isUnsealed && (state.role === 'primary' || state.role === 'demoted')) await this.#primary.openPort();
    else this.#primary.closePort();
    if (!role.isActive) this.#primary.disconnect();
    const former = {
      cluster: this.#credential.present?.clusterId,
      registrations: this.#registry.current.registrations,
      connected: this.#primary.connected,
    };
    const calls = state.role === 'secondary' || announcesEpoch(state, former, this.#clock.nowMs());
    if (isUnsealed && role.isActive && calls) await this.#secondary.openLink();
    else {
      this.#secondary.closeLink();
      this.#secondary.forgetKey();
    }
  }

  /** Whether the digest of the replicated records is known. After a start or a replaced state it is computed. */
  #knowsDigest({ epochs, role }: ReplicationState): boolean {
    const hasRecords = epochs.length > 0 || role === 'primary';
    return !hasRecords || this.#storage.machine.scopeDigestAt(this.#primary.position()) !== undefined;
  }

  async #measureDigest(): Promise<void> {
    try {
      await this.#storage.machine.measureScope();
    } catch (error) {
      this.#log.warn({ reason: reasonOf(error) }, 'the digest of the replicated records could not be computed');
    }
  }
}

const alreadyTakesPart = (): ReplicationError =>
  new ReplicationError('wrong_mode', 'this cluster already takes part in replication');

/**
 * Returns how the clusters of a set with this seal unseal.
 * @throws ReplicationError `seal_type` while the configuration moves from this seal to another one: in a set, a seal is not migrated
 */
function setSealFor({ type, migration }: Pick<SealStatus, 'type' | 'migration'>): SetSeal {
  if (migration)
    throw new ReplicationError(
      'seal_type',
      `this cluster is to move from its seal of type ${type} to another one: finish the migration, or remove migrate_seal_from and restart`,
    );
  return type === 'shamir' ? 'shared' : 'own';
}

/** Checks that a cluster can follow a primary whose set has this seal. @throws ReplicationError `seal_type` */
function requireSealOf(set: SetSeal, status: Pick<SealStatus, 'type' | 'migration'>): void {
  if (setSealFor(status) === set) return;
  const primary = set === 'shared' ? 'a shamir seal' : 'a seal that needs no shares';
  throw new ReplicationError(
    'seal_type',
    `the primary has ${primary}, and this cluster has a seal of type ${status.type}: ` +
      'use shamir on both clusters, or on both clusters any of the types that need no shares (static, transit, pkcs11, awskms, ' +
      'azurekeyvault, gcpckms)',
  );
}

import {
  type ActivationToken,
  activate,
  makeSecondaryRequest,
  PrimaryLink,
  ReplicationPort,
  SecondaryDesk,
} from '@transitd/cluster';
import { reasonOf } from '@transitd/process';
import {
  emptyRegistry,
  fenceMsMax,
  fenceMsMin,
  type Heard,
  localPrefixesOf,
  OutcomeLog,
  PromotionControl,
  ReplicationError,
  type StopReason,
  StoredRegistry,
  setSealOf,
  WriteFence,
} from '@transitd/replication';
import { StoreError, takesPart } from '@transitd/storage-fsm';
import { announcesEpoch } from './announcement.ts';
import { DivergedState } from './diverged-state.ts';
import { KeptReports } from './kept-reports.ts';
import { MaterialConfirmation } from './material-confirmation.ts';
import { MeasuredDigest } from './measured-digest.ts';
import { newId } from './new-id.ts';
import { OperationTokens } from './operation-tokens.ts';
import { StoredPrimaryCredential } from './primary-credential.ts';
import { PrimarySide } from './primary-side.ts';
import { PromotableNode, type Promotion } from './promotable-node.ts';
import { commitStep, type ReplicationParts } from './replication-parts.ts';
import { type PrimaryView, type SecondaryView, secondaryViews } from './replication-views.ts';
import { requireActive, requireRole } from './requirements.ts';
import { SecondarySide } from './secondary-side.ts';
import { requireSealOf, setSealFor } from './set-seal.ts';
import { SuccessionKey } from './succession-key.ts';

/** The primary counts as alive if it was heard within this time. */
const recentMs = 10_000;

/** Memory for outcomes: about one minute at 2,000 writes of 500 bytes per second, and four minutes while a whole state is sent. */
const outcomeLimits = { bytesMax: 64 * 2 ** 20, heldBytesMax: 256 * 2 ** 20 };

/** Disaster-recovery replication on one node: the primary's port, the secondary's link, and the operations of an operator. */
export class ClusterReplication {
  readonly operationTokens: OperationTokens;
  readonly #parts: ReplicationParts;
  /** The fence of this cluster as a primary. */
  readonly fence: WriteFence;
  /** Whether the secondaries of this cluster have key material. */
  readonly material: MaterialConfirmation;
  readonly #outcomes = new OutcomeLog(outcomeLimits);
  readonly #digest: MeasuredDigest;
  readonly #promotion: PromotionControl<Promotion>;
  /** The states that this node has kept when a successor replaced them. */
  readonly diverged: DivergedState;
  /** Reports of promotions and losses, the same on each node of the cluster. */
  readonly reports: KeptReports;
  readonly #primary: PrimarySide;
  readonly #secondary: SecondarySide;
  readonly #registry: StoredRegistry;
  readonly #succession: SuccessionKey;
  readonly #desk: SecondaryDesk;
  #port: ReplicationPort | undefined;
  #link: PrimaryLink | undefined;
  readonly #credential: StoredPrimaryCredential;
  /** Why the link has stopped until an operator has looked. */
  #stopReason: StopReason | undefined;
  /** The certificate with which the link connects; what the primary says there holds for this certificate only. */
  #linkCertificate = '';
  #isUpdating = false;
  #isClosed = false;

  constructor(parts: ReplicationParts) {
    this.#parts = parts;
    const { storage, barrier, cluster, utcMs } = parts;
    this.#digest = new MeasuredDigest(parts);
    this.operationTokens = new OperationTokens({ store: barrier.store, utcMs });
    this.#registry = new StoredRegistry(barrier.store);
    this.#credential = new StoredPrimaryCredential(parts);
    this.fence = new WriteFence({ ...parts, registry: this.#registry });
    const connected = () => this.#port?.connected ?? [];
    this.material = new MaterialConfirmation({ ...parts, registry: this.#registry, connected });
    this.#succession = new SuccessionKey(barrier.store);
    const succession = this.#succession;
    this.#primary = new PrimarySide(parts, { outcomes: this.#outcomes, fence: this.fence, material: this.material, succession });
    this.reports = new KeptReports(barrier.store);
    this.diverged = new DivergedState({ ...parts, keep: (divergence) => this.reports.keepDivergence(divergence) });
    this.#secondary = new SecondarySide(parts, {
      diverged: this.diverged,
      succession,
      keepNodes: (nodes) => void this.#credential.keepNodes(this.#linkCertificate, nodes),
      counted: () => void this.#keepCounted(),
    });
    const promotable = new PromotableNode({
      ...{ parts, secondary: this.#secondary, credential: this.#credential, reports: this.reports },
      link: () => this.#link?.status(),
    });
    this.#promotion = new PromotionControl(promotable, { recentMs, nowMs: parts.nowMs });
    this.#desk = new SecondaryDesk({
      registry: this.#registry,
      clusterId: storage.driver.status().clusterId,
      set: () => {
        const { set, fenceMs, local } = requireRole(parts, 'primary');
        return { set, seal: setSealOf(local), ...(fenceMs !== undefined && { fenceMs }) };
      },
      authority: async () => {
        const authority = await cluster.signingAuthority();
        if (authority === undefined) throw new StoreError('not_leader', 'this cluster has no authority yet');
        return authority;
      },
      nodes: () => cluster.primaryNodes,
      utcMs,
    });
    for (const change of ['status', 'services'] as const) parts.events.on(change, () => this.tick());
    storage.machine.observe({
      entry: (applied) => {
        this.#outcomes.entry(applied);
        this.#port?.progress();
        if (applied.before?.role !== applied.after?.role) this.tick();
      },
      state: (position) => this.#outcomes.state(position),
    });
  }

  /** Starts and ends connections as the state of this node requires: after each change, and from time to time. */
  tick(): void {
    if (this.#isUpdating || this.#isClosed) return;
    this.#isUpdating = true;
    this.#update()
      .catch((error: unknown) => this.#parts.log.warn({ reason: reasonOf(error) }, 'replication could not start; it tries again'))
      .finally(() => {
        this.#isUpdating = false;
      });
  }

  /** The newest heartbeat of the primary that this node has heard. */
  get lastHeard(): Heard | undefined {
    return this.#secondary.lastHeard;
  }

  /** The connection of a secondary's active node with its primary; undefined on any other node. */
  get primary(): PrimaryView | undefined {
    const state = this.#parts.storage.machine.replication;
    const { present } = this.#credential;
    if (this.#link === undefined || present === undefined || state?.role !== 'secondary') return undefined;
    const { secondary, addresses } = present;
    const { missesRestore } = this.#secondary;
    return { secondary, addresses, missesRestore, ...this.#link.status(), stopReason: this.#stopReason };
  }

  /** The secondaries of a primary's active node, by the name that an operator gave them; empty on any other node. */
  get secondaries(): readonly SecondaryView[] {
    if (this.#port === undefined || !this.#parts.role.isActive) return [];
    return secondaryViews(this.#registry.current, this.#port.connected, this.#primary.unprovenClaims);
  }

  /** Whole states sent to secondaries since the start of this node. */
  get statesSent(): number {
    return this.#primary.statesSent;
  }

  close(): void {
    this.#isClosed = true;
    this.#link?.close();
    this.#closePort();
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
    requireActive(this.#parts);
    const { storage, barrier } = this.#parts;
    const seal = setSealFor(barrier.sealStatus);
    if (fenceMs !== undefined && !(fenceMs >= fenceMsMin && fenceMs <= fenceMsMax))
      throw new ReplicationError(
        'refused',
        `fence_after must be from ${fenceMsMin / 1000} to ${fenceMsMax / 1000} seconds, or 0 for no fence`,
      );
    if (takesPart(storage.machine.replication)) throw alreadyTakesPart();
    // Secondaries of a set that was ended cannot follow this one, and the fence would wait for them.
    await this.#forgetSecondaries();
    await this.#credential.forget(); // it is of another set, whose primary this cluster must not call
    if (seal === 'own') await barrier.transfer.publishRecoveryShares();
    await this.#succession.renew();
    const [set, id, local] = [newId(), newId(), localPrefixesOf(seal)];
    const { outcome } = await commitStep(this.#parts, { kind: 'establish', set, id, local, fenceMs });
    if (outcome === 'conflict') throw alreadyTakesPart();
  }

  /** Issues a token with which a cluster becomes a secondary. @throws ReplicationError, StoreError */
  issueToken(request: Parameters<SecondaryDesk['issueToken']>[0]): Promise<string> {
    requireRole(this.#parts, 'primary');
    return this.#desk.issueToken(request);
  }

  /** Ends the rights of a secondary. @throws ReplicationError, StoreError */
  async revoke(secondary: string): Promise<void> {
    requireRole(this.#parts, 'primary');
    await this.#desk.revoke(secondary);
  }

  /** Opens a kept state from which the primary restores a lost key. @throws ReplicationError; StoreError */
  async openDiverged(archive: string): ReturnType<DivergedState['open']> {
    requireRole(this.#parts, 'primary');
    return this.diverged.open(archive);
  }

  /** Ends the writes of a primary. The position is that of the last one. @throws ReplicationError, StoreError */
  async demote(): Promise<void> {
    const from = requireRole(this.#parts, 'primary').epochs.at(-1);
    if (from === undefined) throw new ReplicationError('wrong_mode', 'this cluster is not a primary');
    const { outcome } = await commitStep(this.#parts, { kind: 'demote', from });
    if (outcome === 'conflict') throw new ReplicationError('wrong_mode', 'this cluster is not a primary');
  }

  /** Ends replication on a primary. @throws ReplicationError, StoreError */
  async disablePrimary(): Promise<void> {
    requireRole(this.#parts, 'primary');
    await this.#disable();
    await this.#credential.forgetIfPossible(); // that of its time as a secondary
  }

  /**
   * Ends replication on a secondary. A state that it has received remains, and the cluster serves it as one of its own, under a key that
   * the set does not have; its primary goes on serving. Conditions and wait are those of a promotion.
   * @throws ReplicationError with the reason, StoreError
   */
  async disableSecondary(request: { readonly force: boolean }): Promise<void> {
    const { epochs } = requireRole(this.#parts, 'secondary');
    await (epochs.length === 0 ? this.#disable() : this.#promotion.leave(request));
    await this.#credential.forgetIfPossible();
    this.tick();
  }

  async #disable(): Promise<void> {
    const { outcome } = await commitStep(this.#parts, { kind: 'disable' });
    if (outcome === 'conflict') throw new ReplicationError('wrong_mode', 'the role of this cluster has just changed: try again');
  }

  /**
   * Makes this cluster a secondary. Its own records, except the local ones, are replaced by the primary's when its state has arrived.
   * @throws ReplicationError; StoreError
   */
  async enableSecondary(token: string): Promise<void> {
    requireActive(this.#parts);
    const role = this.#parts.storage.machine.replication?.role;
    if (role === 'primary') throw new ReplicationError('wrong_mode', 'this cluster is a primary: demote it first');
    const read = await this.#activate(token);
    const { outcome } = await commitStep(this.#parts, {
      kind: 'attach',
      set: read.set,
      local: localPrefixesOf(read.seal),
      fenceMs: read.fenceMs,
    });
    if (outcome === 'conflict')
      throw new ReplicationError('wrong_mode', 'this cluster belongs to another replication set, or is a primary');
    this.#reconnect();
  }

  /**
   * Makes the key for which a primary may encrypt the next activation token; returns the public part.
   * @throws ReplicationError, StoreError
   */
  makeTokenKey(): Promise<string> {
    requireActive(this.#parts);
    return this.#credential.makeTokenKey();
  }

  /** Connects a secondary to the primary of its set by a new token, without a loss of records. @throws ReplicationError, StoreError */
  async updatePrimary(token: string): Promise<void> {
    requireRole(this.#parts, 'secondary');
    await this.#activate(token);
    this.#reconnect();
  }

  /**
   * Connects a secondary to its primary again, also if it has stopped to. It receives the whole state if `wholeState`, or if it stopped
   * because its records differ from the primary's.
   * @throws ReplicationError, StoreError
   */
  recover({ wholeState }: { readonly wholeState: boolean }): void {
    requireRole(this.#parts, 'secondary');
    if (wholeState || this.#stopReason === 'digest_differs') this.#secondary.wantsWholeState = true;
    this.#reconnect();
  }

  /** Makes this cluster the primary. @throws ReplicationError with the reason, StoreError */
  async promote(request: { readonly force: boolean }): Promise<Promotion> {
    requireActive(this.#parts);
    const promotion = await this.#promotion.promote(request);
    this.tick();
    return promotion;
  }

  /** Exchanges an activation token for a credential, and stores that. @throws ReplicationError, StoreError */
  async #activate(text: string): Promise<ActivationToken> {
    const token = await this.#credential.readToken(text);
    const state = this.#parts.storage.machine.replication;
    if (state !== undefined && state.role !== 'disabled' && state.set !== token.set)
      throw new ReplicationError('refused', 'the activation token is of another replication set than this cluster');
    requireSealOf(token.seal, this.#parts.barrier.sealStatus);
    const own = await makeSecondaryRequest(token.secondary, this.#parts.storage.driver.status().clusterId);
    await this.#credential.write(await activate(token, own));
    await this.#credential.dropTokenKey();
    return token;
  }

  #reconnect(): void {
    this.#link?.close();
    this.#link = undefined;
    this.tick();
  }

  async #update(): Promise<void> {
    const { storage, barrier, role } = this.#parts;
    const state = storage.machine.replication;
    if (state === undefined) return;
    const isUnsealed = !barrier.state.sealed;
    this.#promotion.noteTerm();
    if (isUnsealed) await Promise.all([this.reports.refresh(), this.#succession.refresh()]);
    if (isUnsealed && role.isActive && state.fenceMs !== undefined) await this.fence.activated(storage.driver.status().term);
    this.#digest.measure(state);
    if (isUnsealed && state.role === 'primary') await this.material.tick();
    if (isUnsealed && (state.role === 'primary' || state.role === 'demoted')) await this.#openPort();
    else this.#closePort();
    if (!role.isActive) this.#port?.disconnect();
    const former = {
      cluster: this.#credential.present?.clusterId,
      registrations: this.#registry.current.registrations,
      connected: this.#port?.connected ?? [],
    };
    const calls = state.role === 'secondary' || announcesEpoch(state, former, this.#parts.nowMs());
    if (isUnsealed && role.isActive && calls) await this.#openLink();
    else {
      this.#link?.close();
      this.#link = undefined;
      this.#secondary.forgetKey();
    }
  }

  async #openPort(): Promise<void> {
    const { cluster, role, nowMs, utcMs, log } = this.#parts;
    if (this.#port !== undefined) return;
    await this.#registry.refresh();
    this.#port = new ReplicationPort({
      ...{ registry: this.#registry, desk: this.#desk, cluster: this.#primary, nowMs, utcMs, log },
      active: () => (role.isActive ? true : cluster.activeMember?.clusterAddress),
    });
    cluster.serveSecondaries(this.#port);
  }

  #closePort(): void {
    if (this.#port === undefined) return;
    this.#parts.cluster.serveSecondaries(undefined);
    this.#port.close();
    this.#port = undefined;
  }

  async #openLink(): Promise<void> {
    const { log, nowMs } = this.#parts;
    if (this.#link !== undefined) return;
    const credential = await this.#credential.read();
    if (credential === undefined) return;
    this.#linkCertificate = credential.certificate;
    this.#stopReason = undefined;
    this.#link = new PrimaryLink({
      credential: () => {
        const { present = credential } = this.#credential;
        return present.certificate === credential.certificate ? present : credential;
      },
      ...{ cluster: this.#secondary, nowMs, log, random: Math.random },
      onStop: (reason) => {
        this.#stopReason = reason;
        log.error({ reason }, 'this secondary stopped following its primary: an operator must decide how to continue');
      },
    });
  }

  /**
   * Records that the fence of the present primary counts this cluster. From now on, the secondaries that this cluster had as a primary no
   * longer count.
   */
  async #keepCounted(): Promise<void> {
    const certificate = this.#linkCertificate;
    const { present } = this.#credential;
    if (present?.certificate === certificate && present.isCounted === true) return;
    try {
      await this.#forgetSecondaries(); // first: once the credential says so, this is not done again
      await this.#credential.keepCounted(certificate);
    } catch (error) {
      this.#parts.log.warn({ reason: reasonOf(error) }, 'could not store that the primary counts this secondary');
    }
  }

  /** Forgets the secondaries of a former time as a primary. A cluster that has become the primary meanwhile keeps its new ones. */
  async #forgetSecondaries(): Promise<void> {
    const { machine } = this.#parts.storage;
    await this.#registry.change((registry) =>
      registry.registrations.length === 0 || machine.replication?.role === 'primary' ? registry : emptyRegistry,
    );
  }
}

const alreadyTakesPart = (): ReplicationError =>
  new ReplicationError('wrong_mode', 'this cluster already takes part in replication');

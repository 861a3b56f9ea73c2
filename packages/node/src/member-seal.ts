import { type Barrier, BarrierError, type ProviderHealth, type SealStatus, sealTypesOf } from '@transitd/barrier';
import type { Engine, MemberEvents } from '@transitd/cluster';
import { LogLimit, systemClock } from '@transitd/process';
import type { MonitoredSeal } from '@transitd/seals';
import { StoreError, takesPart } from '@transitd/storage-fsm';
import type { NodeHost } from './node-host.ts';
import type { ServiceLoader } from './service-loader.ts';
import { UnsealRetry } from './unseal-retry.ts';

export const removedText = 'this node was removed from its cluster: to let it join again, stop it, empty data_dir and start it';

type SealHost = Pick<NodeHost, 'log' | 'opened' | 'retention'>;

interface SealedMember {
  readonly barrier: Barrier;
  readonly services: ServiceLoader;
  /** Whether this node was removed from its cluster. */
  readonly membership: { readonly removed: boolean };
  readonly engine: Pick<Engine, 'replication'>;
  readonly events: MemberEvents;
}

/** Returns the provider of a seal; undefined if the seal has none. */
export const providerOf = (
  providers: readonly MonitoredSeal[],
  { type, name }: Pick<SealStatus, 'type' | 'name'>,
): MonitoredSeal | undefined => providers.find((provider) => provider.type === type && provider.name === name);

/** How long a node may lead while it opens by itself a state that replaced its own, in milliseconds. */
const reopeningMsMax = 10_000;

/** The seal of a member: opens it by shares, by a static key or by a provider, closes it, and protects the shares that were given. */
export class MemberSeal {
  readonly #host: SealHost;
  readonly #member: SealedMember;
  /** An operator sealed this node, so it does not unseal itself before its next start. */
  #sealedByOperator = false;
  readonly #logLimit: LogLimit;
  readonly #retry = new UnsealRetry(systemClock, Math.random);
  /** The node is unsealing itself. A slow provider must not be asked again meanwhile. */
  #isUnsealing = false;
  /** When this node began to open by itself a state that replaced its own; negative infinity while it does not. */
  #reopeningSinceMs = Number.NEGATIVE_INFINITY;

  constructor(host: SealHost, member: SealedMember) {
    this.#host = host;
    this.#member = member;
    this.#logLimit = new LogLimit(host);
  }

  /** The health of the present seal's provider; undefined if the seal has none. */
  get providerHealth(): ProviderHealth | undefined {
    return this.#provider && ((this.status.sealed ? this.#retry.health : undefined) ?? this.#provider.health);
  }

  get #provider(): MonitoredSeal | undefined {
    return providerOf(this.#host.opened.providers, this.status);
  }

  get status(): SealStatus {
    return this.#member.barrier.sealStatus;
  }

  /** Accepts a share; with the last one it resolves when the services are loaded. @throws BarrierError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    const { barrier, services } = this.#member;
    this.#requireMember();
    const wasSealed = barrier.state.sealed;
    const status = await barrier.unseal(share);
    // A caller without a token may send anything here, so only shares that opened the seal end what an operator began.
    if (wasSealed && !status.sealed) this.#sealedByOperator = false;
    if (status.sealed) this.#host.retention.shareAccepted(); // an unsealed barrier ignores the share
    await services.loaded;
    return this.status;
  }

  /**
   * Accepts a share that authorizes the migration of the seal. With the last one, a node that is sealed by shares unseals, and the active
   * node replaces the seal.
   * @returns the status, and in `waits` why the seal is not replaced yet
   * @throws BarrierError, ProviderError, StoreError
   */
  async migrate(share: Uint8Array): Promise<{ readonly status: SealStatus; readonly waits?: string }> {
    const { barrier, services, engine } = this.#member;
    this.#requireMember();
    if (takesPart(engine.replication))
      throw new BarrierError(
        'seal_mismatch',
        'the seal of a cluster in a replication set cannot be changed: disable replication before a migration',
      );
    const status = await barrier.migrate(share);
    if (status.progress > 0) {
      if (status.sealed) this.#host.retention.shareAccepted();
      return { status };
    }
    this.#sealedByOperator = false;
    await services.loaded;
    return { status: this.status, ...(this.status.migration && { waits: migrationWaits }) };
  }

  /** Whether this node is opening by itself a state that replaced its own, and has not tried for so long that another node should lead. */
  get isReopening(): boolean {
    return !this.#sealedByOperator && performance.now() - this.#reopeningSinceMs < reopeningMsMax;
  }

  /** From now on unseals the barrier at once when it seals itself because a state with another keyring has replaced that of this node. */
  follow(): void {
    this.#member.barrier.onStateChange(({ sealed, reason }) => {
      if (sealed && reason !== undefined) void this.#reopen();
    });
  }

  async #reopen(): Promise<void> {
    if (this.#isUnsealing) return;
    const attempt = this.retryAutoUnseal();
    if (!this.#isUnsealing) return; // the seal needs shares, or an operator has sealed this node
    this.#reopeningSinceMs = performance.now();
    await attempt;
    this.#reopeningSinceMs = Number.NEGATIVE_INFINITY;
    this.#member.events.emit('reopeningEnded');
  }

  /** Drops every key. The node stays sealed until an operator unseals it or it restarts. */
  seal(): void {
    this.#member.barrier.seal();
    this.#member.events.emit('reopeningEnded'); // it may have been sealed already, and reopening
  }

  /** From now on the node does not unseal itself before its next start. */
  keepSealed(): void {
    this.#sealedByOperator = true;
  }

  /**
   * Opens the seal at the start of the node. A static key that does not fit ends the start: the node would stay sealed forever. A provider
   * may be away, so the node starts sealed and tries it in the background.
   * @throws BarrierError
   */
  async unsealAtStart(): Promise<void> {
    const { barrier } = this.#member;
    const { type } = barrier.sealStatus;
    if (!barrier.state.initialized || (type === 'shamir' && sealTypesOf(this.#host.opened.seal).includes('shamir'))) return;
    if (this.#provider === undefined) await this.#autoUnseal();
    else void this.retryAutoUnseal();
  }

  async #autoUnseal(): Promise<void> {
    const { barrier, services } = this.#member;
    await barrier.autoUnseal();
    const failure = await services.loaded;
    if (failure === undefined) this.#retry.succeeded();
    else this.#retry.notLoaded(failure.error);
  }

  /** Called every second. */
  async tick(): Promise<void> {
    this.#member.barrier.expireMigration();
    await this.retryAutoUnseal();
  }

  /** Tries again to open a seal that needs no shares, unless an operator sealed the node; never rejects. */
  async retryAutoUnseal(): Promise<void> {
    const { barrier, membership } = this.#member;
    const { initialized, sealed } = barrier.state;
    const mayUnseal = !membership.removed && !this.#sealedByOperator && this.status.type !== 'shamir';
    if (!initialized || !sealed || !mayUnseal || this.#isUnsealing || !this.#retry.isDue) return;
    this.#isUnsealing = true;
    try {
      await this.#autoUnseal();
    } catch (error) {
      this.#retry.failed(error);
      this.#logSealed(error);
    } finally {
      this.#isUnsealing = false;
    }
  }

  #requireMember(): void {
    if (this.#member.membership.removed) throw new StoreError('sealed', removedText);
  }

  #logSealed(error: unknown): void {
    const { type } = this.status;
    const [reason, message] = [
      (error as Error).message,
      `this node is sealed and could not unseal itself with its ${type} seal; it tries again with growing delays`,
    ];
    this.#logLimit.write('warn', 'unseal', { reason }, message);
  }
}

const migrationWaits =
  'enough shares were given: this node replaces the seal if it becomes the active node within 10 minutes; otherwise give the shares to the active node';

import { randomBytes, timingSafeEqual } from 'node:crypto';
import {
  BarrierError,
  ProviderError,
  type ProviderHealth,
  type ProviderSealType,
  type SealProvider,
  type WrappedKey,
} from '@transitd/barrier';
import type { Logger, NodeObserver } from '@transitd/process';
import { type SealBackend, sealRandomBytesMax } from './backend/seal-backend.ts';
import { CallDelay } from './call-delay.ts';

export interface MonitoredSealParts {
  readonly backend: SealBackend;
  /** Distinguishes two seals of the same type. */
  readonly name?: string;
  readonly log: Logger;
  readonly observer: NodeObserver;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
  /** Milliseconds since the epoch. */
  readonly utcMs: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Interval between probes of a healthy provider. A failing provider is probed as soon as a call is allowed again. */
const probeMs = 600_000;
const keyBytes = 32;
/** Most draws of random bytes at the same time: a provider that hangs must not occupy all requests of this node. */
const drawsMax = 64;

/**
 * Counts the failures of a provider. After a failure, no call reaches the provider until a delay has passed, so that neither a sealed node
 * nor a joining node calls it in a tight loop. Regular probes show that a running node could not unseal, before the node restarts and has
 * to.
 */
export class MonitoredSeal implements SealProvider {
  readonly type: ProviderSealType;
  readonly name: string | undefined;
  readonly #parts: MonitoredSealParts;
  #keyId: string | undefined;
  #health: ProviderHealth = { healthy: true };
  /** Delays calls after a failure of the provider. */
  readonly #delay: CallDelay;
  /** Delays calls after the provider could not decrypt a stored key. Probes may succeed meanwhile: they say nothing about that key. */
  readonly #unopenedDelay: CallDelay;
  /** After a failure of a draw. It needs a right of its own, so it says nothing about the keys, and the reverse. */
  readonly #drawDelay: CallDelay;
  #draws = 0;
  #probeAtMs = Number.NEGATIVE_INFINITY;
  #ticking = false;
  /** The latest failure that was logged. */
  #logged: string | undefined;

  constructor(parts: MonitoredSealParts) {
    this.#parts = parts;
    this.type = parts.backend.type;
    this.name = parts.name;
    const { nowMs, random } = parts;
    this.#delay = new CallDelay(nowMs, random);
    this.#unopenedDelay = new CallDelay(nowMs, random);
    this.#drawDelay = new CallDelay(nowMs, random);
  }

  get keyId(): string | undefined {
    return this.#keyId;
  }

  get health(): ProviderHealth {
    return this.#health;
  }

  async wrap(key: Uint8Array): Promise<WrappedKey> {
    const wrapped = await this.#call('encrypt', () => this.#parts.backend.wrap(key));
    this.#keyId = wrapped.keyId;
    return wrapped;
  }

  async unwrap(wrapped: WrappedKey): Promise<Buffer> {
    this.#unopenedDelay.requirePassed();
    const key = await this.#unwrap(wrapped);
    this.#unopenedDelay.succeeded();
    return key;
  }

  /** Whether this kind of provider gives random bytes. */
  get drawsRandom(): boolean {
    return this.#parts.backend.random !== undefined;
  }

  /**
   * Draws 1 to {@link sealRandomBytesMax} random bytes, which the caller wipes. A failure changes neither the health nor the delays of the
   * other calls: callers of the API must not be able to delay an unseal.
   * @throws ProviderError; BarrierError `seal_unavailable` if too many draws are in progress
   */
  async random(bytes: number): Promise<Buffer> {
    const { backend, nowMs, observer } = this.#parts;
    this.#delay.requirePassed();
    this.#drawDelay.requirePassed();
    if (this.#draws >= drawsMax)
      throw new BarrierError('seal_unavailable', `${drawsMax} requests of this node already wait for random bytes of the seal`);
    this.#draws += 1;
    const startMs = nowMs();
    try {
      const drawn = await backend.random?.(bytes);
      if (drawn === undefined) throw new ProviderError('unsupported', `a ${this.type} seal gives no random bytes`);
      if (drawn.length !== bytes)
        throw new ProviderError('malformed', `the ${this.type} seal returned ${drawn.length} random bytes instead of ${bytes}`);
      this.#drawDelay.succeeded();
      return drawn;
    } catch (error) {
      const failure = failureOf(error, this.type);
      this.#drawDelay.failed(failure);
      observer.sealFailed(failure.failure);
      this.#log(failure, 'the provider of the seal gave no random bytes');
      throw failure;
    } finally {
      this.#draws -= 1;
      observer.sealCalled('random', nowMs() - startMs);
    }
  }

  /** @param expected - the key that must result; known only in a probe */
  async #unwrap(wrapped: WrappedKey, expected?: Uint8Array): Promise<Buffer> {
    const attempt = async (): Promise<Buffer> => {
      const key = await this.#parts.backend.unwrap(wrapped);
      const fault =
        key.length !== keyBytes
          ? `returned a key that does not have ${keyBytes} bytes`
          : expected !== undefined && !timingSafeEqual(key, expected)
            ? 'does not decrypt what it encrypted'
            : undefined;
      if (fault === undefined) return key;
      key.fill(0);
      throw new ProviderError('malformed', `the ${this.type} seal ${fault}`);
    };
    return this.#call('decrypt', attempt, expected === undefined);
  }

  /** Keeps this node's access valid and probes the provider when that is due. Called every second; never rejects. */
  async tick(): Promise<void> {
    if (this.#ticking) return;
    this.#ticking = true;
    try {
      const nowMs = this.#parts.nowMs();
      if (nowMs >= this.#probeAtMs && this.#delay.passed) {
        await this.#probe();
        this.#probeAtMs = this.#health.healthy ? this.#parts.nowMs() + probeMs : Number.NEGATIVE_INFINITY;
      }
      if (this.#health.healthy) await this.#parts.backend.keepAccess?.();
    } finally {
      this.#ticking = false;
    }
  }

  /** Encrypts and decrypts random bytes, which shows whether the rights suffice and which version of the provider's key is current. */
  async #probe(): Promise<void> {
    const key = randomBytes(keyBytes);
    try {
      const opened = await this.#unwrap(await this.wrap(key), key);
      opened.fill(0);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
    } finally {
      key.fill(0);
    }
  }

  /** @param isStored - true for a stored key, false for the random bytes of a probe */
  async #call<T>(operation: 'encrypt' | 'decrypt', attempt: () => Promise<T>, isStored = false): Promise<T> {
    const { nowMs, observer } = this.#parts;
    const startMs = nowMs();
    this.#delay.requirePassed();
    try {
      const result = await attempt();
      // A success counts only after a decryption: a provider that encrypts may still refuse to decrypt.
      if (operation === 'decrypt') this.#succeeded();
      return result;
    } catch (error) {
      const failure = failureOf(error, this.type);
      if (isStored && failure.failure === 'wrong_key') {
        this.#unopenedDelay.failed(failure);
        observer.sealFailed(failure.failure);
        this.#log(
          failure,
          'the provider of the seal cannot decrypt the stored key: check that the configuration names the key that encrypted it',
        );
      } else this.#failed(failure);
      throw failure;
    } finally {
      observer.sealCalled(operation, nowMs() - startMs);
    }
  }

  #succeeded(): void {
    this.#delay.succeeded();
    if (!this.#health.healthy) this.#parts.log.info({ seal: this.type }, 'the provider of the seal serves again');
    this.#health = { healthy: true };
  }

  #failed(error: ProviderError): void {
    const { observer, utcMs } = this.#parts;
    const before = this.#health;
    this.#delay.failed(error);
    this.#health = { healthy: false, unhealthySinceMs: before.unhealthySinceMs ?? utcMs(), failure: error.failure };
    observer.sealFailed(error.failure);
    if (before.failure !== error.failure) this.#logged = undefined;
    this.#log(
      error,
      'the provider of the seal failed: an unsealed node keeps serving, a sealed node stays sealed; this node calls the provider again after growing delays',
    );
  }

  /** Callers get only a summary, so the log must contain each different error text, but not its repetitions. */
  #log({ failure, message }: ProviderError, text: string): void {
    if (message === this.#logged) return;
    this.#logged = message;
    this.#parts.log.warn({ seal: this.type, failure, reason: message }, text);
  }
}

const failureOf = (error: unknown, type: ProviderSealType): ProviderError =>
  error instanceof ProviderError
    ? error
    : new ProviderError('malformed', `the ${type} seal failed in an unexpected way`, { cause: error });

import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { RotationConfig } from './keyring/rotation.ts';
import type { OnSealWritten, SealConfig, SealType } from './seal/seal-config.ts';

export interface BarrierOptions {
  /** The store with the encrypted records. */
  readonly store: Store;
  readonly seal: SealConfig;
  /** Returns the replicated count of values ever written (`ReplicaStatus.valuesWritten`). */
  readonly valuesWritten: () => number;
  readonly clock: RecordClock;
  /** The rotation configuration that applies until one is stored. */
  readonly rotation?: RotationConfig;
  readonly onSealWritten?: OnSealWritten;
  /**
   * Path of a record that is written again whenever a state of another cluster, with its keyring, replaces that of this one. Its revision
   * is an index of this cluster. That of the received keyring is not, and may by chance be that of the former keyring.
   */
  readonly witnessPath?: string;
}

export interface BarrierState {
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Why the barrier sealed itself; absent when a caller sealed it. */
  readonly reason?: string;
}

export interface SealStatus {
  readonly type: SealType;
  /** Of a seal with a provider whose configuration has a name. */
  readonly name?: string;
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Threshold and number of the shares (recovery shares for every type except `shamir`); 0 before initialization. */
  readonly t: number;
  readonly n: number;
  /** Number of different shares provided so far. */
  readonly progress: number;
  /** Identifies the attempt to unseal once the first share was provided; otherwise empty. */
  readonly nonce: string;
  readonly recoverySeal: boolean;
  /** The records are sealed by the seal that the configuration moves from. */
  readonly migration: boolean;
}

/** The shares of a new seal, returned only once: `key` shares unseal, `recovery` shares only authorize. */
export interface InitialShares {
  readonly kind: 'key' | 'recovery';
  readonly shares: readonly Buffer[];
}

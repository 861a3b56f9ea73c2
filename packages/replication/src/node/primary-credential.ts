import type { Barrier } from '@transitd/barrier';
import { type Logger, reasonOf } from '@transitd/process';
import { type Store, StoreError } from '@transitd/storage-fsm';
import { type ActivationToken, makeTokenKey, readActivationToken } from '../port/activation-token.ts';
import { credentialPath, decodeCredential, encodeCredential, type PrimaryCredential, withNodes } from '../port/credential.ts';
import { ReplicationError } from '../replication-error.ts';
import type { PrimaryNodes } from '../stream/frame.ts';
import { writeLocal } from './local-record.ts';

/** Path of the private key (PEM) for the next activation token. It begins with a local prefix, so it is not replicated. */
const tokenKeyPath = 'core/replication/token-key';

/** How often a change is attempted while concurrent changes overtake it. */
const attemptsMax = 8;

/** The credential of this cluster at its primary, and the key with which it gets one. For the active node. */
export class StoredPrimaryCredential {
  readonly #barrier: Pick<Barrier, 'state'>;
  readonly #store: Pick<Store, 'get' | 'commit'>;
  readonly #log: Pick<Logger, 'warn'>;
  #present: PrimaryCredential | undefined;
  /** Revision of the record that `present` is from. */
  #revision = 0;

  constructor(barrier: Pick<Barrier, 'state' | 'store' | 'onStateChange'>, log: Pick<Logger, 'warn'>) {
    this.#barrier = barrier;
    this.#store = barrier.store;
    this.#log = log;
    barrier.onStateChange(({ sealed }) => {
      if (sealed) this.#present = undefined;
    });
  }

  /** The newest credential that was read or written; undefined from a seal until the next read. */
  get present(): PrimaryCredential | undefined {
    return this.#present;
  }

  async read(): Promise<PrimaryCredential | undefined> {
    const revision = this.#revision;
    const record = await this.#store.get(credentialPath);
    if (record !== undefined) this.#note(decodeCredential(record.value), record.revision);
    else if (this.#revision === revision) this.#present = undefined; // another node has deleted it
    return this.#present;
  }

  /** Replaces the credential. @throws StoreError */
  async write(credential: PrimaryCredential): Promise<void> {
    this.#note(credential, await writeLocal(this.#store, { path: credentialPath, value: encodeCredential(credential) }));
  }

  /** Deletes the credential: this cluster no longer belongs to the set of that primary. @throws StoreError */
  async forget(): Promise<void> {
    if ((await this.#store.get(credentialPath)) === undefined) return;
    this.#revision = await writeLocal(this.#store, { path: credentialPath, value: null });
    this.#present = undefined;
  }

  /** As {@link forget}, after this cluster has left the set, which does not fail for it: the next role replaces the credential. */
  async forgetIfPossible(): Promise<void> {
    await this.forget().catch((error: unknown) =>
      this.#log.warn({ reason: reasonOf(error) }, 'the credential for the former primary is still stored: revoke it there'),
    );
  }

  /** Stores where the nodes are of the primary that has issued a certificate. */
  async keepNodes(certificate: string, nodes: PrimaryNodes): Promise<void> {
    await this.#change(certificate, (stored) => withNodes(stored, nodes)).catch((error: unknown) =>
      this.#log.warn({ reason: reasonOf(error) }, "the addresses of the primary's nodes could not be stored"),
    );
  }

  /** Stores that the primary that has issued a certificate counts this secondary. @throws StoreError */
  keepCounted(certificate: string): Promise<void> {
    return this.#change(certificate, (stored) => (stored.isCounted === true ? stored : { ...stored, isCounted: true }));
  }

  /**
   * Changes the credential with this certificate. Does nothing if another one has replaced it: what one primary has said does not hold for
   * the next one.
   */
  async #change(certificate: string, make: (stored: PrimaryCredential) => PrimaryCredential): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const record = await this.#store.get(credentialPath);
      const stored = record && decodeCredential(record.value);
      if (record === undefined || stored?.certificate !== certificate) return;
      const next = make(stored);
      if (next === stored) return;
      const revision = await writeLocal(this.#store, { path: credentialPath, value: encodeCredential(next) }, record.revision);
      if (revision === undefined) continue;
      this.#note(next, revision);
      return;
    }
    throw new StoreError('busy', 'the credential of this secondary changes too often: try again');
  }

  /** A read that has begun before a write may end after it, and both may end after a seal. */
  #note(credential: PrimaryCredential, revision: number): void {
    if (this.#barrier.state.sealed || revision < this.#revision) return;
    this.#present = credential;
    this.#revision = revision;
  }

  /** Makes a new key, and returns its public part: the primary encrypts an activation token for it. @throws StoreError */
  async makeTokenKey(): Promise<string> {
    const { key, publicKey } = makeTokenKey();
    await writeLocal(this.#store, { path: tokenKeyPath, value: Buffer.from(key) });
    return publicKey;
  }

  /** Reads an activation token, with the stored key if it is encrypted. @throws ReplicationError; StoreError */
  async readToken(text: string): Promise<ActivationToken> {
    try {
      return await readActivationToken(text);
    } catch (error) {
      if (!(error instanceof ReplicationError && error.code === 'key_missing')) throw error;
    }
    const stored = await this.#store.get(tokenKeyPath);
    try {
      return await readActivationToken(text, stored && Buffer.from(stored.value).toString());
    } finally {
      stored?.value.fill(0);
    }
  }

  /** Deletes the key: the token that was encrypted for it has been used. A key that was made in the meantime stays. @throws StoreError */
  async dropTokenKey(): Promise<void> {
    const stored = await this.#store.get(tokenKeyPath);
    if (stored !== undefined) await writeLocal(this.#store, { path: tokenKeyPath, value: null }, stored.revision);
  }
}

import type { Barrier } from '@transitd/barrier';
import {
  type ActivationToken,
  ActivationTokenError,
  credentialPath,
  decodeCredential,
  encodeCredential,
  makeTokenKey,
  type PrimaryCredential,
  readActivationToken,
  withNodes,
} from '@transitd/cluster';
import { type Logger, reasonOf } from '@transitd/process';
import type { PrimaryNodes } from '@transitd/replication';

/** Path of the private key (PEM) for the next activation token. It begins with a local prefix, so it is not replicated. */
const tokenKeyPath = 'core/replication/token-key';

export interface PrimaryCredentialParts {
  readonly barrier: Pick<Barrier, 'store'>;
  readonly log: Pick<Logger, 'warn'>;
}

/** The credential of this cluster at its primary, and the key with which it gets one. For the active node. */
export class StoredPrimaryCredential {
  readonly #parts: PrimaryCredentialParts;
  #present: PrimaryCredential | undefined;

  constructor(parts: PrimaryCredentialParts) {
    this.#parts = parts;
  }

  /** The credential that was read or written last. */
  get present(): PrimaryCredential | undefined {
    return this.#present;
  }

  async read(): Promise<PrimaryCredential | undefined> {
    const record = await this.#parts.barrier.store.get(credentialPath);
    this.#present = record && decodeCredential(record.value);
    return this.#present;
  }

  async write(credential: PrimaryCredential): Promise<void> {
    const writes = [{ path: credentialPath, value: encodeCredential(credential) }];
    await this.#parts.barrier.store.commit({ conditions: [], writes });
    this.#present = credential;
  }

  /** Stores where the primary's nodes are. */
  async keepNodes(nodes: PrimaryNodes): Promise<void> {
    const present = this.#present;
    const next = present && withNodes(present, nodes);
    if (next === undefined || next === present) return;
    await this.write(next).catch((error: unknown) =>
      this.#parts.log.warn({ reason: reasonOf(error) }, "the addresses of the primary's nodes could not be stored"),
    );
  }

  /** Makes a new key, and returns its public part: the primary encrypts an activation token for it. @throws StoreError */
  async makeTokenKey(): Promise<string> {
    const { key, publicKey } = makeTokenKey();
    await this.#parts.barrier.store.commit({ conditions: [], writes: [{ path: tokenKeyPath, value: Buffer.from(key) }] });
    return publicKey;
  }

  /** Reads an activation token, with the stored key if it is encrypted. @throws ActivationTokenError; StoreError */
  async readToken(text: string): Promise<ActivationToken> {
    try {
      return await readActivationToken(text);
    } catch (error) {
      if (!(error instanceof ActivationTokenError && error.code === 'key_missing')) throw error;
    }
    const stored = await this.#parts.barrier.store.get(tokenKeyPath);
    try {
      return await readActivationToken(text, stored && Buffer.from(stored.value).toString());
    } finally {
      stored?.value.fill(0);
    }
  }

  /** Deletes the key: the token that was encrypted for it has been used. */
  async dropTokenKey(): Promise<void> {
    const { store } = this.#parts.barrier;
    if ((await store.get(tokenKeyPath)) !== undefined)
      await store.commit({ conditions: [], writes: [{ path: tokenKeyPath, value: null }] });
  }
}

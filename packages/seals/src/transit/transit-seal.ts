import { ProviderError, type WrappedKey } from '@transitd/barrier';
import { type Logger, reasonOf } from '@transitd/process';
import { purpose } from '../backend/purpose.ts';
import type { SealBackend } from '../backend/seal-backend.ts';
import type { Exchange, ProviderAnswer } from '../http/exchange.ts';
import { at, ciphertextIn, plaintextIn, randomIn, sealStateIn, type TransitKey } from './answers.ts';
import { TokenRenewal } from './token-renewal.ts';

export interface TransitSealParts {
  readonly key: TransitKey;
  readonly namespace: string | undefined;
  /** Returns the current token. A file is read at each call, so that another process may replace it. */
  readonly token: () => Promise<string>;
  readonly renewToken: boolean;
  readonly exchange: Exchange;
  /** Returns the id of the cluster of this node, once it is known. */
  readonly clusterId: () => string | undefined;
  readonly log: Logger;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
}

const associatedData = purpose.toString('base64');

/** A seal with a key of a transit engine: of another transitd cluster, of Vault or of OpenBao. */
export class TransitSeal implements SealBackend {
  readonly type = 'transit';
  readonly #parts: TransitSealParts;
  readonly #renewal: TokenRenewal;
  #isOtherCluster = false;

  constructor(parts: TransitSealParts) {
    this.#parts = parts;
    const { key, log, nowMs } = parts;
    this.#renewal = new TokenRenewal({ key, log, nowMs, send: (token, method, path) => this.#send(token, method, path) });
  }

  async wrap(plaintext: Uint8Array): Promise<WrappedKey> {
    const { key } = this.#parts;
    const body = { plaintext: Buffer.from(plaintext).toString('base64'), associated_data: associatedData };
    const { ciphertext, version } = ciphertextIn(await this.#operate(`encrypt/${this.#keyName}`, body), key);
    return { keyId: `${key.mountPath}/${key.keyName}:v${version}`, ciphertext };
  }

  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    const { key } = this.#parts;
    try {
      return plaintextIn(await this.#operate(`decrypt/${this.#keyName}`, { ciphertext, associated_data: associatedData }), key);
    } catch (error) {
      if (!(error instanceof ProviderError && error.failure === 'wrong_key')) throw error;
      throw new ProviderError('wrong_key', `${error.message}; the stored key was encrypted by ${keyId}`, { cause: error });
    }
  }

  /** Draws from the default source of the provider. The key is not used. */
  async random(bytes: number): Promise<Buffer> {
    return randomIn(await this.#operate('random', { bytes, format: 'base64' }), this.#parts.key);
  }

  async keepAccess(): Promise<void> {
    const { token, renewToken, log } = this.#parts;
    if (!renewToken) return;
    try {
      await this.#renewal.renewIfDue(await token());
    } catch (error) {
      log.warn({ reason: (error as Error).message }, 'the token of the transit seal could not be read for its renewal');
    }
  }

  get #keyName(): string {
    return encodeURIComponent(this.#parts.key.keyName);
  }

  /** @param path - below the mount */
  async #operate(path: string, body: object): Promise<ProviderAnswer> {
    const { key, token } = this.#parts;
    if (!this.#isOtherCluster) await this.#refuseOwnCluster();
    const answer = await this.#send(await token(), 'POST', `/v1/${pathOf(key.mountPath)}/${path}`, body);
    if (answer.status === 503) await this.#explainSealed();
    return answer;
  }

  /** @throws ProviderError `cycle` if the provider is this node's own cluster, which could not unseal without itself */
  async #refuseOwnCluster(): Promise<void> {
    const { clusterId, key } = this.#parts;
    const [own, other] = [clusterId(), (await this.#sealState())?.cluster_id];
    if (own === undefined || other === undefined) return;
    this.#isOtherCluster = own !== other;
    if (own === other)
      throw new ProviderError('cycle', `${at(key)} is this cluster itself, so it could never unseal: name another cluster`);
  }

  /** @throws ProviderError `unreachable` if the provider is sealed; with a hint if another transit engine unseals it */
  async #explainSealed(): Promise<void> {
    const state = await this.#sealState();
    if (state?.sealed !== true) return;
    const hint =
      state.type === 'transit'
        ? ', and its own seal is of type transit: if that seal depends on this cluster, neither cluster can unseal'
        : '';
    throw new ProviderError('unreachable', `${at(this.#parts.key)} is sealed itself${hint}`);
  }

  async #sealState() {
    return sealStateIn(await this.#exchange({ method: 'GET', path: '/v1/sys/seal-status' }));
  }

  #send(token: string, method: 'GET' | 'POST', path: string, body?: object): Promise<ProviderAnswer> {
    const { namespace } = this.#parts;
    const headers = {
      'x-vault-token': token,
      'x-vault-request': 'true',
      ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
    };
    return this.#exchange({ method, path, headers, ...(method === 'POST' && { body: body ?? {} }) });
  }

  async #exchange(request: Parameters<Exchange>[0]): Promise<ProviderAnswer> {
    try {
      return await this.#parts.exchange(request);
    } catch (error) {
      throw new ProviderError('unreachable', `${at(this.#parts.key)} does not answer: ${reasonOf(error)}`, { cause: error });
    }
  }
}

const pathOf = (mountPath: string): string => mountPath.split('/').map(encodeURIComponent).join('/');

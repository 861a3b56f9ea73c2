import { BarrierError } from '../records/errors.ts';

/** The types of seal whose key is in another system. */
export const providerSealTypes = ['transit', 'pkcs11', 'awskms', 'azurekeyvault', 'gcpckms'] as const;
export type ProviderSealType = (typeof providerSealTypes)[number];

/** A key as a provider has encrypted it. It is stored and sent to joining nodes in plaintext: only the provider opens it. */
export interface WrappedKey {
  /** Names the provider's key and its version; at most 256 characters, not secret. */
  readonly keyId: string;
  /** Printable ASCII; at most {@link ciphertextCharactersMax} characters. */
  readonly ciphertext: string;
}

export const keyIdCharactersMax = 256;
export const ciphertextCharactersMax = 4096;

/** Why a provider did not do what it was asked. */
export type ProviderFailure =
  /** It did not answer, or answered that it cannot serve now. */
  | 'unreachable'
  /** It asked for fewer requests. */
  | 'throttled'
  /** It refused the credentials, or their rights do not suffice. */
  | 'permission'
  /** It has no such key, or the key does not open what is stored. */
  | 'wrong_key'
  /** Its answer is not one of this kind of provider. */
  | 'malformed'
  /** It is this cluster, so that a sealed cluster would wait for itself. */
  | 'cycle'
  /** It serves, but does not do this. */
  | 'unsupported';

/** The failures as they may be told to a caller without a token: nothing about the provider's address or its answer. */
const summaries: Readonly<Record<ProviderFailure, string>> = {
  unreachable: 'does not answer or cannot serve now',
  throttled: 'limits the rate of requests',
  permission: 'refuses the credentials of this node',
  wrong_key: 'does not have the key, or the key does not open what is stored',
  malformed: 'gives answers of another form',
  cycle: 'is this cluster itself',
  unsupported: 'does not do this',
};

/**
 * A provider failed. The message, which is for the log, may contain its address and the name of its key, never a credential or key
 * material. Callers get the summary.
 */
export class ProviderError extends BarrierError {
  readonly failure: ProviderFailure;
  /** The earliest time for another attempt, in ms from now, if the provider named one. */
  readonly retryAfterMs: number | undefined;
  constructor(failure: ProviderFailure, message: string, options: ErrorOptions & { readonly retryAfterMs?: number } = {}) {
    super('seal_unavailable', message, options);
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
  }

  /** One sentence for the reply to a request, whose caller may have no token. */
  get summary(): string {
    return `the provider of the seal ${summaries[this.failure]} (${this.failure}): the log of this node says more`;
  }
}

/** The health of a provider, as this node's calls have seen it. */
export interface ProviderHealth {
  readonly healthy: boolean;
  /** When the provider became unhealthy, in ms since the epoch; absent while it is healthy. */
  readonly unhealthySinceMs?: number;
  /** Why the latest call failed; absent while it is healthy. */
  readonly failure?: ProviderFailure;
}

/** A key in another system that encrypts the key by which the root key is encrypted. Every method may take seconds. */
export interface SealProvider {
  readonly type: ProviderSealType;
  /** The key and version of the latest `wrap`; undefined before the first one. */
  readonly keyId: string | undefined;
  readonly health: ProviderHealth;
  /** Encrypts a key of 32 bytes under the newest version of the provider's key. @throws ProviderError */
  wrap(key: Uint8Array): Promise<WrappedKey>;
  /** Decrypts a key, which the caller wipes. @throws ProviderError */
  unwrap(wrapped: WrappedKey): Promise<Buffer>;
}

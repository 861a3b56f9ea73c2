import type { ProviderSealType, WrappedKey } from '@transitd/barrier';

/** Most random bytes of one draw: AWS KMS gives no more at once, so each request of a caller is one request to the provider. */
export const sealRandomBytesMax = 1024;

/** The protocol of a provider. Each call is one attempt; failures are counted elsewhere. */
export interface SealBackend {
  readonly type: ProviderSealType;
  /** @throws ProviderError */
  wrap(key: Uint8Array): Promise<WrappedKey>;
  /** @throws ProviderError */
  unwrap(wrapped: WrappedKey): Promise<Buffer>;
  /**
   * Draws 1 to {@link sealRandomBytesMax} random bytes, which the caller wipes; absent if this kind of provider gives none.
   * @throws ProviderError
   */
  random?(bytes: number): Promise<Buffer>;
  /** Does the work that keeps this node's access valid, such as renewing a token, if that is due. Never rejects. */
  keepAccess?(): Promise<void>;
}

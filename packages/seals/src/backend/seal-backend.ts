import type { ProviderSealType, WrappedKey } from '@transitd/barrier';

/** Most random bytes of one draw: AWS KMS gives no more at once, so each request of a caller is one request to the provider. */
export const sealRandomBytesMax = 1024;

/** A provider's protocol: one attempt for each call, without state about failures. */
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
  /** Does what keeps this node's access valid, if it is due, such as renewing a token; never rejects. */
  keepAccess?(): Promise<void>;
}

import type { ProviderSealType, WrappedKey } from '@transitd/barrier';

/** A provider's protocol: one attempt for each call, without state about failures. */
export interface SealBackend {
  readonly type: ProviderSealType;
  /** @throws ProviderError */
  wrap(key: Uint8Array): Promise<WrappedKey>;
  /** @throws ProviderError */
  unwrap(wrapped: WrappedKey): Promise<Buffer>;
  /** Does what keeps this node's access valid, if it is due, such as renewing a token; never rejects. */
  keepAccess?(): Promise<void>;
}

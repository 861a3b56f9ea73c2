export { Barrier } from './barrier.ts';
export type { BarrierOptions, BarrierState, InitialShares, SealStatus } from './barrier-types.ts';
export type { GivenShare } from './ceremony/attempt.ts';
export type { NewShares, Rekey, RekeyRequest, RekeyStatus, RekeyStep } from './ceremony/rekey.ts';
export type { TokenGeneration, TokenGenerationStatus, TokenGenerationStep } from './ceremony/token-generation.ts';
export type { KeyRotation } from './keyring/key-rotation.ts';
export { openReadingView } from './keyring/reading-view.ts';
export { defaultRotation, type KeyStatus, type RotationConfig, rotationDue } from './keyring/rotation.ts';
export { SharedKeyring } from './keyring/shared-keyring.ts';
export { BarrierError, type BarrierErrorCode } from './records/errors.ts';
export { keyringPath } from './records/paths.ts';
export {
  type JoinBinding,
  openJoinSecret,
  requireSealType,
  type SealKeyHolder,
  type WrappedJoinSecret,
  wrappedJoinSecretBytes,
} from './seal/join-secret.ts';
export { type ForeignKeys, type KeyTransfer, transferredPaths } from './seal/key-transfer.ts';
export { sealRecordPaths } from './seal/require-openable.ts';
export {
  checkCounts,
  checkSealConfig,
  countsFor,
  hasProvider,
  type InitializeRequest,
  idOf,
  type OneSeal,
  type OnSealWritten,
  type SealConfig,
  type SealType,
  type ShareCounts,
  type StaticKey,
  sealTypesOf,
} from './seal/seal-config.ts';
export {
  ciphertextCharactersMax,
  keyIdCharactersMax,
  ProviderError,
  type ProviderFailure,
  type ProviderHealth,
  type ProviderSealType,
  providerSealTypes,
  type SealProvider,
  type WrappedKey,
} from './seal/seal-provider.ts';
export { isSealName, isWrappedKey, type SealTerms } from './seal/seal-record.ts';
export { parseShare, ShareCollection } from './seal/shares.ts';

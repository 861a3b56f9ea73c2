export { Barrier, type BarrierOptions, type BarrierState, type InitialShares, type SealStatus } from './barrier.ts';
export type { GivenShare } from './ceremony/attempt.ts';
export type { NewShares, Rekey, RekeyRequest, RekeyStatus, RekeyStep } from './ceremony/rekey.ts';
export type { RootGeneration, RootGenerationStatus, RootGenerationStep } from './ceremony/root-generation.ts';
export type { KeyRotation } from './keyring/key-rotation.ts';
export { defaultRotation, type KeyStatus, type RotationConfig, rotationDue } from './keyring/rotation.ts';
export { BarrierError, type BarrierErrorCode } from './records/errors.ts';
export {
  type JoinBinding,
  openJoinSecret,
  requireSealType,
  type SealKeyHolder,
  type WrappedJoinSecret,
  wrappedJoinSecretBytes,
} from './seal/join-secret.ts';
export { sealRecordPaths } from './seal/require-openable.ts';
export {
  checkCounts,
  checkSealConfig,
  countsFor,
  type InitializeRequest,
  type SealConfig,
  type SealType,
  type ShareCounts,
  type StaticKey,
} from './seal/seal-config.ts';
export type { SealTerms } from './seal/seal-record.ts';
export { parseShare, ShareCollection } from './seal/shares.ts';

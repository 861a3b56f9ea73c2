export type { GivenShare } from './attempt.ts';
export { Barrier, type BarrierOptions, type BarrierState, type InitialShares, type SealStatus } from './barrier.ts';
export { BarrierError, type BarrierErrorCode } from './errors.ts';
export { sealRecordPaths } from './foreign-seal.ts';
export {
  type JoinBinding,
  openJoinSecret,
  requireSealType,
  type SealKeyHolder,
  type WrappedJoinSecret,
  wrappedJoinSecretBytes,
} from './join-secret.ts';
export type { KeyRotation } from './key-rotation.ts';
export type { NewShares, Rekey, RekeyRequest, RekeyStatus, RekeyStep } from './rekey.ts';
export type { RootGeneration, RootGenerationStatus, RootGenerationStep } from './root-generation.ts';
export { defaultRotation, type KeyStatus, type RotationConfig, rotationDue } from './rotation.ts';
export {
  checkCounts,
  checkSealConfig,
  countsFor,
  type InitializeRequest,
  type SealConfig,
  type SealType,
  type ShareCounts,
  type StaticKey,
} from './seal-config.ts';
export type { SealTerms } from './seal-record.ts';
export { parseShare, ShareCollection } from './shares.ts';

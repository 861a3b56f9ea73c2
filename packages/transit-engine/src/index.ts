export { cmacBytesMin } from './algorithms/cmac.ts';
export { defaultHash, hashNames, noHash, signatureHash } from './algorithms/hash-algorithm.ts';
export { type KeyAnswer, type KeyTraits, TransitEngine, type TransitEngineOptions, type UsedKey } from './engine.ts';
export { printableName, printablePath } from './formats/printable-name.ts';
export { hashesSignedAsIs } from './key-pairs/digest-info.ts';
export { divideThreadPool } from './key-pairs/native-signature.ts';
export { keptVersionsMax } from './keys/aging.ts';
export { type EngineCaches, engineCaches } from './keys/cache-budget.ts';
export type { DueChange, DueRound } from './keys/due.ts';
export type { CreateKeyRequest, LossCheck } from './keys/key.ts';
export { type DisableVersionRequest, deletionAfterSMax, deletionAfterSMin, reasonCharsMax } from './keys/key-availability.ts';
export type { ConfigureKeyRequest } from './keys/key-config.ts';
export type { Confirmation, SecondaryConfirmation } from './keys/key-confirmations.ts';
export type { ListRequest, LongList } from './keys/key-names.ts';
export type { DisabledVersion } from './keys/key-record.ts';
export { defaultKeyType, keyTypeNames } from './keys/key-type.ts';
export { addedUses, type KeyUsage, type VersionUse } from './keys/key-usage.ts';
export type { KeyView, PairView, VersionView } from './keys/key-view.ts';
export type { CacheConfig, KeysConfig } from './keys/mount-config.ts';
export { type NearLimit, nearLimit, operationsMax } from './keys/operation-limit.ts';
export { isKeyName } from './keys/paths.ts';
export { noUses, type UseCounts, type UseKind, UseTally, useKinds } from './keys/use-tally.ts';
export {
  type ManagedKeyRecord,
  type Pkcs11Curve,
  type Pkcs11Mechanism,
  pkcs11Mechanisms,
} from './managed/managed-key-record.ts';
export { ManagedKeyRegistry } from './managed/managed-key-registry.ts';
export { isManagedKeyName, keyIdDigits, type ManagedKeyRequest, mechanismNamed } from './managed/managed-key-request.ts';
export { managedPair, managedScheme } from './managed/managed-pair.ts';
export type {
  BoundManagedKey,
  ManagedAlgorithm,
  ManagedCipherInput,
  ManagedKey,
  ManagedKeyReference,
  ManagedKeys,
  ManagedSigningInput,
  ManagedUsage,
} from './managed/provider.ts';
export { type BatchReply, batchItemsMax, checkBatchLength, type ItemResult } from './operations/batch.ts';
export type { Ciphertexts } from './operations/ciphertexts.ts';
export type { CmacRequest, CmacResult } from './operations/cmac.ts';
export {
  type DatakeyRequest,
  type DatakeyResult,
  type DatakeysRequest,
  type DatakeysResult,
  datakeysMax,
} from './operations/datakey.ts';
export type { DecryptRequest, DecryptResult } from './operations/decrypt.ts';
export type { EncryptRequest, EncryptResult } from './operations/encrypt.ts';
export { type HashRequest, type HashResult, hashOf } from './operations/hash.ts';
export type { HmacRequest, HmacResult } from './operations/hmac.ts';
export type { UseObserver } from './operations/operation.ts';
export {
  type RandomRequest,
  type RandomResult,
  type RandomSource,
  random,
  randomBytesMax,
  randomSources,
} from './operations/random.ts';
export type { RewrapRequest } from './operations/rewrap.ts';
export type { SignRequest, SignResult } from './operations/sign.ts';
export { saltLengthNamed } from './operations/signature-settings.ts';
export type { Signing } from './operations/signing.ts';
export type { VerifyRequest, VerifyResult } from './operations/verify.ts';
export type { WrappedKey, WrapRequest } from './transfers/byok-export.ts';
export { type ExportRequest, exportFormats, type KeyExport } from './transfers/key-export.ts';
export type { ImportKeyRequest, ImportVersionRequest } from './transfers/key-import.ts';
export type { KeyTransfers, RestoreRequest } from './transfers/key-transfers.ts';
export type { ReadRecords } from './transfers/salvage.ts';
export { DamagedRecord, TransitError, type TransitErrorCode } from './values/errors.ts';
export type { CertificateChainRequest, CertificateSigningRequest, KeyCertificates } from './x509/key-certificates.ts';

export { type BatchReply, batchItemsMax, type ItemResult, itemsPerTurn } from './batch.ts';
export type { WrappedKey, WrapRequest } from './byok-export.ts';
export type { CacheConfig } from './cache-config.ts';
export { hashesSignedAsIs } from './digest-info.ts';
export type { Encryption } from './encryption.ts';
export { type KeyAnswer, TransitEngine, type TransitEngineOptions } from './engine.ts';
export { DamagedRecord, TransitError, type TransitErrorCode } from './errors.ts';
export { defaultHash, hashNames, noHash } from './hash-algorithm.ts';
export type { CreateKeyRequest } from './key.ts';
export type { CertificateChainRequest, CertificateSigningRequest, KeyCertificates } from './key-certificates.ts';
export type { ConfigureKeyRequest } from './key-config.ts';
export type { ExportRequest, KeyExport } from './key-export.ts';
export type { ImportKeyRequest, ImportVersionRequest } from './key-import.ts';
export type { ListRequest } from './key-names.ts';
export type { KeyTransfers, RestoreRequest } from './key-transfers.ts';
export { defaultKeyType, keyTypeNames } from './key-type.ts';
export type { KeyView, PairView, VersionView } from './key-view.ts';
export type { KeysConfig } from './keys-config.ts';
export {
  type ManagedKeyRecord,
  type Pkcs11Curve,
  type Pkcs11Mechanism,
  pkcs11Mechanisms,
} from './managed/managed-key-record.ts';
export { ManagedKeyRegistry } from './managed/managed-key-registry.ts';
export { isManagedKeyName, type ManagedKeyRequest } from './managed/managed-key-request.ts';
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
export type { DatakeyRequest, DatakeyResult } from './operations/datakey.ts';
export { type HashRequest, type HashResult, hashOf } from './operations/hash.ts';
export { type RandomRequest, type RandomResult, random, randomBytesMax, randomSources } from './operations/random.ts';
export { isKeyName } from './paths.ts';
export type {
  CmacRequest,
  CmacResult,
  DecryptRequest,
  DecryptResult,
  EncryptRequest,
  EncryptResult,
  HmacRequest,
  HmacResult,
  RewrapRequest,
} from './requests.ts';
export { shownName, shownPath } from './shown-name.ts';
export type { SignRequest, SignResult, VerifyRequest, VerifyResult } from './signature-requests.ts';
export type { Signing } from './signing.ts';

export { type BatchReply, batchItemsMax, type ItemResult } from './batch.ts';
export { type KeyAnswer, TransitEngine, type TransitEngineOptions } from './engine.ts';
export { DamagedRecord, TransitError, type TransitErrorCode } from './errors.ts';
export type { ConfigureKeyRequest, CreateKeyRequest } from './key.ts';
export type { ListRequest } from './key-list.ts';
export type { KeyView, VersionView } from './key-view.ts';
export type { KeysConfig } from './keys-config.ts';
export { isKeyName } from './paths.ts';
export type { DecryptRequest, DecryptResult, EncryptRequest, EncryptResult, RewrapRequest } from './requests.ts';

import type { KeyObject } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import type { CertifiedPair } from '../key-pairs/key-pair.ts';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { replaceVersion, type StoredVersion } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import { checkEnabled, checkNotDeleted, latestUsable } from '../keys/key-record.ts';
import { apiNameOf } from '../keys/key-type.ts';
import { versionFor } from '../keys/key-version.ts';
import type { Paths } from '../keys/paths.ts';
import { storedVersion, unlessGone } from '../keys/stored-versions.ts';
import type { UseTally } from '../keys/use-tally.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { DamagedRecord, TransitError } from '../values/errors.ts';
import { commitAndWipe } from '../values/secrets.ts';
import { certificateChain } from './certificate-chain.ts';

/** The parts of the engine that certificates use. */
export interface CertificateParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
}

export interface CertificateSigningRequest {
  /** A number or `latest`; the latest when absent. */
  readonly version?: string | undefined;
  /** A certificate request in PEM, whose subject and attributes the new request copies. */
  readonly template?: string | undefined;
}

export interface CertificateChainRequest {
  readonly version?: string | undefined;
  /** PEM, starting with the certificate of the version's own key. */
  readonly chain?: string | undefined;
}

/** A version of a key, with its type's name in the API. */
interface KeyVersionName {
  readonly name: string;
  readonly type: string;
  readonly version: number;
}

/** Certificate signing requests and certificate chains of keys. A refusal is a {@link TransitError}. */
export class KeyCertificates {
  readonly #parts: CertificateParts;

  constructor(parts: CertificateParts) {
    this.#parts = parts;
  }

  /**
   * Makes a request (PKCS #10) signed with a version of the key.
   * @throws TransitError `key_not_found`, `invalid_request`, `key_version_unavailable`
   */
  request(
    name: string,
    { version: requested, template }: CertificateSigningRequest,
    tally?: UseTally,
  ): Promise<KeyVersionName & { readonly csr: string }> {
    return this.#withVersion(name, requested, async (key, { version, record }, certified) => {
      versionFor('signing', key, version); // a request is signed; a chain may belong to a version that makes no signatures
      if (record.material.length === 0) {
        throw new TransitError('invalid_request', 'could not create the csr: private key not imported for key version selected');
      }
      // Loaded with the first request: the library has a hundred modules.
      const { certificateRequest } = await import('./certificate-request.ts');
      const csr = await certificateRequest(certified.privateKey(record.material), template);
      tally?.begin(key);
      tally?.add('signatures', version);
      return { ...versionName(key, version), csr };
    });
  }

  /**
   * Stores a chain with a version of the key and replaces an earlier one.
   * @throws TransitError `key_not_found`, `invalid_request`, `key_version_unavailable`
   */
  setChain(
    name: string,
    { version: requested, chain: text = '' }: CertificateChainRequest,
  ): Promise<KeyVersionName & { readonly chain: string }> {
    const { store, paths } = this.#parts;
    return this.#withVersion(name, requested, async (key, stored, certified) => {
      const chain = certificateChain(text, { keyType: key.type.name, publicKey: publicKeyOf(stored, certified) });
      const transaction = replaceVersion(paths, key, stored, { ...stored.record, certificateChain: chain });
      return (await commitAndWipe(store, transaction)) === undefined ? undefined : { ...versionName(key, stored.version), chain };
    });
  }

  /** Calls `use` under the key's lock, and again with a newer state while it returns undefined. */
  #withVersion<T>(
    name: string,
    requested: string | undefined,
    use: (key: LoadedKey, version: StoredVersion, certified: CertifiedPair) => Promise<T | undefined>,
  ): Promise<T> {
    const { store, paths, keys, changes } = this.#parts;
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('key_not_found', `key with provided name '${name}' not found`);
      checkNotDeleted(key.record);
      const certified = certifiedOf(key);
      const version = requestedVersion(key, requested);
      const stored = await unlessGone(store, paths, key, () => storedVersion(store, paths, key.record, version));
      if (stored === undefined) return undefined;
      try {
        return await use(key, stored, certified);
      } finally {
        wipeSecrets([stored.record]);
      }
    });
  }
}

/** @throws TransitError `invalid_request` */
function certifiedOf({ type, record }: LoadedKey): CertifiedPair {
  if (!type.supportsSigning) throw new TransitError('invalid_request', `key type '${type.name}' does not support signing`);
  if (record.derived) throw new TransitError('invalid_request', 'operation not supported for keys with derivation enabled');
  const certified = type.keyPair?.certified;
  if (certified === undefined) {
    throw new TransitError('invalid_request', `there are no certificates for keys of type '${apiNameOf(type)}'`);
  }
  return certified;
}

/** @throws TransitError `invalid_request`, `key_version_unavailable`, `unconfirmed` */
function requestedVersion({ record }: LoadedKey, requested = ''): number {
  const latestVersion = latestUsable(record);
  if (requested === '' || requested === 'latest') return latestVersion;
  if (!/^-?\d{1,15}$/.test(requested)) throw new TransitError('invalid_request', 'invalid key version');
  const version = Number(requested);
  if (version < record.minDecryptionVersion || version > latestVersion)
    throw new TransitError('key_version_unavailable', 'no such key version');
  checkEnabled(record, version);
  return version;
}

function publicKeyOf({ record: { publicKey } }: StoredVersion, certified: CertifiedPair): KeyObject {
  if (publicKey === undefined) throw new DamagedRecord('a version of a key pair has no public half');
  return certified.publicKey(publicKey);
}

const versionName = ({ name, type }: LoadedKey, version: number): KeyVersionName => ({ name, type: apiNameOf(type), version });

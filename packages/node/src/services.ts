import { type Access, closeAccess, openAccess, type TokenLimits } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import type { Config } from '@transitd/configuration';
import type { Store } from '@transitd/storage-fsm';
import type { NodeClock } from './clock/node-clock.ts';
import { keySources } from './key-sources.ts';
import { managedKeysOf, type TokenManagedKeys } from './mounts/managed-keys.ts';
import { MountedEngines } from './mounts/mounted-engines.ts';

/** The services of an unsealed node: access, mounted engines, managed keys and the audit key. */
export interface Services extends Access {
  readonly mounts: MountedEngines;
  readonly managedKeys: TokenManagedKeys;
  /** Hashes the texts in audit entries. */
  readonly auditKey: AuditKey;
  /** When the services were loaded, on the monotonic clock. */
  readonly sinceMs: number;
}

/**
 * Loads the services from the decrypted records.
 * @param canonicalPath - returns the form of a path in which quotas count requests
 * @param onFailure - called when the services can no longer follow changes of the records
 * @throws StoreError, or an error when a record cannot be read
 */
export async function loadServices(
  store: Store,
  {
    config,
    clock,
    canonicalPath,
    onFailure,
  }: {
    readonly config: Config;
    readonly clock: NodeClock;
    readonly canonicalPath: (path: string) => string;
    readonly onFailure: (error: unknown) => void;
  },
): Promise<Services> {
  const managedKeys = managedKeysOf(store, config.pkcs11_libraries);
  const mounts = await MountedEngines.open({
    store,
    ciphertextPrefix: config.ciphertext_prefix,
    managedKeysFor: (allowed) => managedKeys.forMount(allowed),
    now: clock.dueNow,
    onFailure,
  });
  const access = openAccess({
    store,
    now: clock.now,
    dueNow: clock.dueNow,
    limits: tokenLimits(config),
    sources: keySources(config.jwks_files),
    canonicalPath,
  });
  try {
    await access.quotas.open();
  } catch (error) {
    mounts.close();
    closeAccess(access);
    throw error;
  }
  return { ...access, mounts, managedKeys, auditKey: new AuditKey(store), sinceMs: performance.now() };
}

/** Drops every key and token that the services hold. */
export function closeServices(services: Services): void {
  closeAccess(services);
  services.mounts.close();
  services.managedKeys.close();
  services.auditKey.forget();
}

const tokenLimits = ({ tokens }: Config): TokenLimits => ({
  defaultTtlS: Math.floor(tokens.default_ttl / 1000),
  maxTtlS: Math.floor(tokens.max_ttl / 1000),
});

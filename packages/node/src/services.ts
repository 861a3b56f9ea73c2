import { type Access, closeAccess, openAccess, type TokenLimits } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import type { Config } from '@transitd/configuration';
import type { Store } from '@transitd/storage-fsm';
import type { NodeClock } from './clock/node-clock.ts';
import { keySources } from './key-sources.ts';
import { managedKeysOf, type TokenManagedKeys } from './mounts/managed-keys.ts';
import { MountedEngines } from './mounts/mounted-engines.ts';

/** What serves while the node is unsealed. */
export interface Services extends Access {
  readonly mounts: MountedEngines;
  readonly managedKeys: TokenManagedKeys;
  /** Under which audit entries show texts. */
  readonly auditKey: AuditKey;
  /** When it began to serve, on the monotonic clock. */
  readonly sinceMs: number;
}

/**
 * Reads what serving needs from the records in clear.
 * @param canonicalPath - the form of a path in which quotas count requests
 * @param onFailure - the service can follow the records no more
 * @throws StoreError, or an error when a record cannot be read
 */
export async function loadService(
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
  const managed = managedKeysOf(store, config.pkcs11_libraries);
  const mounts = await MountedEngines.open({
    store,
    ciphertextPrefix: config.ciphertext_prefix,
    managedKeysFor: (allowed) => managed.forMount(allowed),
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
  return { ...access, mounts, managedKeys: managed, auditKey: new AuditKey(store), sinceMs: performance.now() };
}

/** Forgets every key and token that it holds. */
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

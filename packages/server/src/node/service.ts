import { type Access, closeAccess, openAccess, type TokenLimits } from '@transitd/access';
import type { Store } from '@transitd/storage-fsm';
import { TransitEngine } from '@transitd/transit-engine';
import { AuditKey } from '../audit/audit-key.ts';
import type { Config } from '../config.ts';
import { keySources } from '../key-sources.ts';
import { managedKeysOf, type TokenManagedKeys } from './managed-keys.ts';
import { type Mount, readMounts } from './mounts.ts';

/** What serves while the node is unsealed. */
export interface Service extends Access {
  /** Engines by the path of their mount. */
  readonly engines: ReadonlyMap<string, TransitEngine>;
  readonly mounts: readonly Mount[];
  readonly managedKeys: TokenManagedKeys;
  /** Under which audit entries show texts. */
  readonly auditKey: AuditKey;
  /** When it began to serve, on the monotonic clock. */
  readonly sinceMs: number;
}

/** Reads what serving needs from the records in clear. @throws StoreError, or an error when a record cannot be read */
export async function loadService(store: Store, config: Config): Promise<Service> {
  const mounts = await readMounts(store);
  const managed = managedKeysOf(store, config.pkcs11_libraries);
  const engines = new Map<string, TransitEngine>();
  for (const { path, id, ciphertextPrefix } of mounts) {
    // No mount lists managed keys yet: it may use those that are for any mount.
    const managedKeys = managed.forMount(() => []);
    const engine = new TransitEngine({ store, mountId: id, ciphertextPrefix, now: Date.now, managedKeys });
    engines.set(path, engine);
    await engine.open();
  }
  const access = openAccess({ store, now: Date.now, limits: tokenLimits(config), sources: keySources(config.jwks_files) });
  await access.quotas.open();
  return { ...access, engines, mounts, managedKeys: managed, auditKey: new AuditKey(store), sinceMs: performance.now() };
}

/** Forgets every key and token that it holds. */
export function closeService(service: Service): void {
  closeAccess(service);
  service.managedKeys.close();
  service.auditKey.forget();
  for (const engine of service.engines.values()) engine.close();
}

const tokenLimits = ({ tokens }: Config): TokenLimits => ({
  defaultTtlS: Math.floor(tokens.default_ttl / 1000),
  maxTtlS: Math.floor(tokens.max_ttl / 1000),
});

import {
  type Access,
  type ClockDisputes,
  closeAccess,
  type KeySources,
  type Kubernetes,
  type MethodType,
  openAccess,
  type TokenLimits,
} from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import type { Config } from '@transitd/configuration';
import type { RecordClock, Tracer } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import { divideThreadPool, type RandomSource, type SecondaryConfirmation, type UseObserver } from '@transitd/transit-engine';
import { managedKeysOf, type TokenManagedKeys } from './mounts/managed-keys.ts';
import { MountedEngines } from './mounts/mounted-engines.ts';
import type { UseCounter } from './usage/counted-uses.ts';

/** The services of an unsealed node: access, mounted engines, managed keys and the audit key. */
export interface Services extends Access {
  readonly mounts: MountedEngines;
  readonly managedKeys: TokenManagedKeys;
  /** Absent if the seal gives no random bytes. */
  readonly sealRandom?: RandomSource | undefined;
  /** Counts the uses of keys. */
  readonly uses: UseCounter;
  /** Hashes the texts in audit entries. */
  readonly auditKey: AuditKey;
  /** When the services were loaded, on the monotonic clock. */
  readonly sinceMs: number;
}

/** Returns the number of gateway threads of a started server, which has replaced `auto` by a number. */
export const gatewayCount = ({ workers }: Pick<Config, 'workers'>): number => (workers === 'auto' ? 0 : workers);

interface ServiceOptions {
  readonly config: Config;
  readonly clock: RecordClock;
  readonly disputes: ClockDisputes;
  readonly tracer: Tracer | undefined;
  /** Absent in a gateway, in which nobody logs in. */
  readonly authMethods?: readonly MethodType[];
  /** Absent in a gateway, like `kubernetes`. */
  readonly keySources?: KeySources;
  readonly kubernetes?: Kubernetes;
  readonly sealRandom: RandomSource | undefined;
  /** Absent in a gateway, which makes no keys. */
  readonly secondaries?: SecondaryConfirmation;
  readonly uses: UseCounter;
  /** Called when the services can no longer follow changes of the records. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Loads the services from the decrypted records.
 * @throws StoreError, or an error when a record cannot be read
 */
export async function loadServices(store: Store, options: ServiceOptions): Promise<Services> {
  const {
    config,
    clock,
    disputes,
    tracer,
    authMethods = [],
    keySources: sources,
    kubernetes,
    sealRandom,
    secondaries,
    uses,
    onFailure,
  } = options;
  const threads = 1 + gatewayCount(config); // that serve requests, and share the memory for caches
  divideThreadPool(threads);
  using opened = new DisposableStack();
  const managedKeys = opened.adopt(managedKeysOf(store, config.pkcs11_libraries), (keys) => keys.close());
  const mounts = opened.adopt(
    await MountedEngines.open({
      store,
      ciphertextPrefix: config.ciphertext_prefix,
      managedKeysFor: (allowed) => managedKeys.forMount(allowed),
      clock,
      useObserver: tracer && tracedUse(tracer),
      threads,
      ...(secondaries && { secondaries }),
      onFailure,
    }),
    (engines) => engines.close(),
  );
  const access = opened.adopt(
    openAccess({
      store,
      clock,
      clockDisputes: disputes,
      limits: tokenLimits(config),
      ...(sources && { sources }),
      ...(kubernetes && { kubernetes }),
      methods: authMethods,
      threads,
    }),
    closeAccess,
  );
  await access.quotas.open();
  opened.move();
  return { ...access, mounts, managedKeys, sealRandom, uses, auditKey: new AuditKey(store), sinceMs: performance.now() };
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

/** Returns an observer that makes a span of each use of a key, and of each generation of one. */
const tracedUse = (tracer: Tracer): UseObserver => ({
  began: (items) => {
    const span = tracer.current()?.child('crypto');
    span?.set('transitd.items', items);
    return span && ((failed) => span.end(failed));
  },
  generating: () => {
    const span = tracer.current()?.child('generate');
    return span && ((failed) => span.end(failed));
  },
});

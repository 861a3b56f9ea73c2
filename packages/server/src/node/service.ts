import { Policies, TokenRegistry, Tokens } from '@transitd/access';
import type { Store } from '@transitd/storage-fsm';
import { TransitEngine } from '@transitd/transit-engine';
import { type Mount, readMounts } from './mounts.ts';

/** What serves while the node is unsealed. */
export interface Service {
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly registry: TokenRegistry;
  /** Engines by the path of their mount. */
  readonly engines: ReadonlyMap<string, TransitEngine>;
  readonly mounts: readonly Mount[];
  /** When it began to serve, on the monotonic clock. */
  readonly sinceMs: number;
}

/** Reads what serving needs from the records in clear. @throws StoreError, or an error when a record cannot be read */
export async function loadService(store: Store): Promise<Service> {
  const mounts = await readMounts(store);
  const engines = new Map<string, TransitEngine>();
  for (const { path, id, ciphertextPrefix } of mounts) {
    const engine = new TransitEngine({ store, mountId: id, ciphertextPrefix, now: Date.now });
    engines.set(path, engine);
    await engine.open();
  }
  const policies = new Policies({ store });
  const tokens = new Tokens({ store, policies, now: Date.now });
  const registry = new TokenRegistry({ store, tokens, policies, now: Date.now });
  return { tokens, policies, registry, engines, mounts, sinceMs: performance.now() };
}

/** Forgets every key and token that it holds. */
export function closeService({ tokens, policies, engines }: Service): void {
  tokens.close();
  policies.close();
  for (const engine of engines.values()) engine.close();
}

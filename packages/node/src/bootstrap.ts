import { initialAccess } from '@transitd/access';
import { initialAuditKey } from '@transitd/audit';
import { countsFor, type InitializeRequest, type InitialShares, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import { initialMounts } from './mounts/mounts.ts';
import type { Phases } from './phases.ts';

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

/**
 * Creates a cluster with this node as its only member. All first records, the root token included, are one transaction: after a crash the
 * node is either uninitialized or complete.
 * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
 */
export async function bootstrapCluster(
  { config, seal, phases }: { readonly config: Config; readonly seal: SealConfig; readonly phases: Phases },
  request: InitializeRequest,
  rootTokenId: string | undefined,
): Promise<Initialized> {
  if (phases.member === undefined) countsFor(seal.type, request); // before anything is created: a refused request leaves no cluster
  const member = await phases.found();
  return member.found(async (barrier) => {
    const { rootToken, writes } = initialAccess({
      now: Date.now(),
      ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
    });
    const shares = await barrier.initialize(request, [initialMounts(config.ciphertext_prefix), initialAuditKey(), ...writes]);
    await member.services.loaded;
    return { ...shares, rootToken };
  });
}

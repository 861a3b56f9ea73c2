import { initialAccess } from '@transitd/access';
import { initialAuditKey } from '@transitd/audit';
import { countsFor, type InitializeRequest, type InitialShares, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { NodeMember } from './member.ts';
import { initialMounts } from './mounts/mounts.ts';
import type { ServiceLoader } from './service-loader.ts';

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

export interface BootstrapParts {
  readonly config: Config;
  readonly seal: SealConfig;
  readonly clusterMember: NodeMember;
  readonly serviceLoader: ServiceLoader;
}

/**
 * Creates a cluster with this node as its only member. All first records, the root token included, are one transaction: after a crash the
 * node is either uninitialized or complete.
 * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
 */
export async function bootstrapCluster(
  { config, seal, clusterMember, serviceLoader }: BootstrapParts,
  request: InitializeRequest,
  rootTokenId: string | undefined,
): Promise<Initialized> {
  if (clusterMember.store === undefined) countsFor(seal.type, request); // before anything is created: a refused request leaves no cluster
  return clusterMember.found(async ({ barrier }) => {
    const { rootToken, writes } = initialAccess({
      now: Date.now(),
      ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
    });
    const shares = await barrier.initialize(request, [initialMounts(config.ciphertext_prefix), initialAuditKey(), ...writes]);
    await serviceLoader.loaded;
    return { ...shares, rootToken };
  });
}

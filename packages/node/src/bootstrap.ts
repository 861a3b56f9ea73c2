import { initialAccess } from '@transitd/access';
import { initialAuditKey } from '@transitd/audit';
import { countsFor, type InitializeRequest, type InitialShares, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { ClusterMember } from './cluster-member.ts';
import { initialMounts } from './mounts/mounts.ts';
import type { ServiceLoader } from './service-loader.ts';
import type { DataDirectory } from './storage/data-directory.ts';

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

export interface FoundingParts {
  readonly config: Config;
  readonly seal: SealConfig;
  readonly directory: DataDirectory;
  readonly part: ClusterMember;
  readonly serviceLoader: ServiceLoader;
}

/**
 * Founds a cluster of this one node. Its first records, the root token among them, are one transaction: a crash leaves an
 * uninitialised node or a whole one.
 * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
 */
export async function bootstrapCluster(
  { config, seal, directory, part, serviceLoader }: FoundingParts,
  request: InitializeRequest,
  rootTokenId: string | undefined,
): Promise<Initialized> {
  if (part.store === undefined) {
    countsFor(seal.type, request); // a refused request leaves no cluster behind
    if (!(await directory.holdsNode())) await directory.bootstrapCluster();
    await part.start();
  }
  const { barrier } = part.requireStore();
  const { rootToken, writes } = initialAccess({
    now: Date.now(),
    ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
  });
  const shares = await barrier.initialize(request, [initialMounts(config.ciphertext_prefix), initialAuditKey(), ...writes]);
  await serviceLoader.loaded;
  return { ...shares, rootToken };
}

import { initialAccess } from '@transitd/access';
import { initialAuditKey } from '@transitd/audit';
import { countsFor, type InitializeRequest, type InitialShares, type SealConfig } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { TakingPart } from './cluster-member.ts';
import { initialMounts } from './mounts/mounts.ts';
import type { Serving } from './service-loader.ts';
import type { DataDirectory } from './storage/storage.ts';

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

export interface FoundingParts {
  readonly config: Config;
  readonly seal: SealConfig;
  readonly directory: DataDirectory;
  readonly part: TakingPart;
  readonly serving: Serving;
}

/**
 * Founds a cluster of this one node. Its first records, the root token among them, are one transaction: a crash leaves an
 * uninitialised node or a whole one.
 * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
 */
export async function foundCluster(
  { config, seal, directory, part, serving }: FoundingParts,
  request: InitializeRequest,
  rootTokenId: string | undefined,
): Promise<Initialized> {
  if (part.member === undefined) {
    countsFor(seal.type, request); // a refused request leaves no cluster behind
    if (!(await directory.holdsNode())) await directory.foundCluster();
    await part.start();
  }
  const { barrier } = part.requireMember();
  const { rootToken, writes } = initialAccess({
    now: Date.now(),
    ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
  });
  const shares = await barrier.initialize(request, [initialMounts(config.ciphertext_prefix), initialAuditKey(), ...writes]);
  await serving.loaded;
  return { ...shares, rootToken };
}

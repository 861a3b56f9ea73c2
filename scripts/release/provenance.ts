// Describes how a release was built, as an in-toto statement with SLSA provenance v1.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { platforms } from './node-binary.ts';
import { git, nodeVersion, root, version } from './project.ts';

export interface Artifact {
  readonly name: string;
  readonly sha256: string;
}

/** @param builder - URI of the machine or service that built the release */
export function provenance(artifacts: readonly Artifact[], { builder, dryRun }: { builder: string; dryRun: boolean }): unknown {
  const hashes: Record<string, string> = JSON.parse(readFileSync(join(root, 'scripts/node-hashes.json'), 'utf8'));
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artifacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:transitd:npm-run-release:v1',
        externalParameters: { version, command: `npm run release${dryRun ? ' -- --dry-run' : ''}` },
        internalParameters: { uncommittedChanges: git('status', '--porcelain') !== '' },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: git('rev-parse', 'HEAD') } },
          { name: 'package-lock.json', digest: { sha256: lock } },
          ...platforms.map((name) => ({ name: `node-${name}@${nodeVersion}: bin/node`, digest: { sha256: hashes[name] } })),
        ],
      },
      runDetails: { builder: { id: builder, version: { node: process.versions.node } } },
    },
  };
}

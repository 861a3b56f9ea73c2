// `node scripts/kubernetes-manifests.ts`: writes deploy/kubernetes/transitd.yaml from the Helm chart. Needs Go, which builds helm.
import { writeFileSync } from 'node:fs';
import { buildHelm, plainManifests } from '../test/clients/helm/helm.ts';
import { manifestsFile } from '../test/deploy/manifests.ts';

await buildHelm();
writeFileSync(manifestsFile, await plainManifests());

// Builds a command from helm's packages in the version that go.mod pins, and downloads the schema of the Kubernetes API. Both come from the
// Go module proxy.
import { join } from 'node:path';
import { root } from '../../process/live-server.ts';
import { fast } from '../go-programs.ts';
import { type Ended, run } from '../run.ts';

export const chart = join(root, 'deploy/helm/transitd');
/** The version of the Kubernetes API for which manifests are rendered, and with which they are compared. */
const kubernetes = { version: 'v1.34.4', sum: 'h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=' };

const program = join(root, 'node_modules/.cache/transitd-clients/chart');

/** Builds the command. @throws if Go is missing or it does not compile */
export async function buildHelm(): Promise<void> {
  const args = ['build', ...fast, '-o', program, '.'];
  const built = await run('go', args, { cwd: import.meta.dirname, env: { CGO_ENABLED: '0' } });
  if (built.code !== 0) throw new Error(`the command of the chart was not built:\n${built.stderr}`);
}

/** Does the same as `helm lint --strict`: prints the faults of a chart, and ends with 1 if there are any. */
export const lint = (folder: string): Promise<Ended> => run(program, ['lint', folder]);

/** Renders the chart. @param values - such as `seal.type=static` @throws if helm refuses the values */
export async function render(release: string, ...values: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(program, ['template', release, chart, 'transitd', kubernetes.version, ...values]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** Returns `deploy/kubernetes/transitd.yaml`. */
export const plainManifests = async (): Promise<string> =>
  `# Rendered by \`npx node scripts/kubernetes-manifests.ts\` from deploy/helm/transitd with its default values: do not edit.\n${await render('transitd')}`;

/** Returns the path of the OpenAPI document of Kubernetes. @throws if it has other content than expected, or cannot be downloaded */
export async function openApiFile(): Promise<string> {
  const { stdout, stderr } = await run('go', ['mod', 'download', '-json', `k8s.io/kubernetes@${kubernetes.version}`], {
    cwd: import.meta.dirname,
  });
  const { Dir, Sum, Error: reason } = JSON.parse(stdout || '{}') as { Dir?: string; Sum?: string; Error?: string };
  if (Dir === undefined) throw new Error(`the Kubernetes module cannot be downloaded: ${reason ?? stderr}`);
  if (Sum !== kubernetes.sum) throw new Error(`the Kubernetes module has the sum ${Sum} instead of ${kubernetes.sum}`);
  return join(Dir, 'api/openapi-spec/swagger.json');
}

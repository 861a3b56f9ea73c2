// Where each command block of the documents is run. A page whose blocks are of several kinds has a row for each of its sections.

/** The blocks of a page, or of one of its sections. */
export interface BlockRow {
  readonly page: string;
  /** Heading of a section; without it, all blocks of the page that have no row of their own. */
  readonly section?: string;
  readonly blocks: number;
  /** The test that runs them as they are written. */
  readonly ranBy?: string;
  /** A block that this test does not run, and why. */
  readonly except?: string;
  /** Why no test runs them. */
  readonly notRun?: string;
}

const container =
  'needs a container engine and fixed ports: demo.test.ts and release-image.test.ts in test/e2e do the same on free ports';
const kubernetes =
  'needs a cluster of Kubernetes: test/clients/helm and test/deploy/kubernetes.test.ts check the chart and its manifests';
const syntax =
  'examples of the syntax, with names of many sites: packages/cli/test/documented.test.ts parses each with the program';
const long = 'takes minutes or does not end by itself';

export const blockRows: readonly BlockRow[] = [
  { page: 'CONTRIBUTING.md', blocks: 1, notRun: `${long}: commands of \`npm test\`, which runs the same suites` },
  {
    page: 'README.md',
    section: 'Try it',
    blocks: 3,
    ranBy: 'test/docs/readme.test.ts',
    except: 'the block that starts the whole repository, and the one that test/e2e runs in containers',
  },
  {
    page: 'docs/api.md',
    section: 'Rotate a key and renew its ciphertexts',
    blocks: 7,
    ranBy: 'test/docs/key-rotation.test.ts',
  },
  { page: 'docs/api.md', section: 'Take a key or a version out of use', blocks: 1, ranBy: 'test/docs/key-rotation.test.ts' },
  { page: 'docs/audit.md', blocks: 2, ranBy: 'test/cluster/docs/operations.test.ts' },
  {
    page: 'docs/benchmarks.md',
    blocks: 1,
    notRun: `${long}: test/cluster/bench/http.test.ts runs the command with few requests`,
  },
  { page: 'docs/cluster-operations.md', blocks: 3, ranBy: 'test/cluster/docs/operations.test.ts' },
  { page: 'docs/command-line.md', blocks: 17, notRun: syntax },
  { page: 'docs/containers.md', blocks: 4, notRun: container },
  { page: 'docs/etcd.md', blocks: 7, ranBy: 'test/cluster/docs/etcd.test.ts' },
  {
    page: 'docs/first-steps.md',
    blocks: 6,
    ranBy: 'test/docs/first-steps.test.ts',
    except: 'the block that starts a node, because the test starts one on a free port',
  },
  { page: 'docs/first-steps.md', section: 'From a program', blocks: 5, ranBy: 'test/clients/programs.test.ts' },
  { page: 'docs/install.md', blocks: 3, ranBy: 'test/release/install-page.test.ts' },
  { page: 'docs/install.md', section: 'Debian package', blocks: 1, ranBy: 'test/release/debian-package.test.ts' },
  { page: 'docs/jwt.md', blocks: 1, ranBy: 'test/docs/jwt.test.ts' },
  { page: 'docs/kubernetes.md', blocks: 3, notRun: kubernetes },
  { page: 'docs/kubernetes.md', section: 'Logins of pods', blocks: 2, ranBy: 'test/cluster/kubernetes-logins.test.ts' },
  { page: 'docs/moving.md', section: 'Look first', blocks: 1, ranBy: 'test/migrate/migrate.test.ts' },
  { page: 'docs/moving.md', section: 'Move', blocks: 1, ranBy: 'test/migrate/migrate.test.ts' },
  { page: 'docs/monitoring.md', blocks: 1, ranBy: 'test/cluster/docs/operations.test.ts' },
  { page: 'docs/node-operations.md', blocks: 5, ranBy: 'test/cluster/docs/operations.test.ts' },
  { page: 'docs/production.md', blocks: 17, ranBy: 'test/cluster/docs/production.test.ts' },
  {
    page: 'CONTRIBUTING.md',
    section: 'Releases',
    blocks: 1,
    notRun: 'needs the key of the releases: `npm run release -- --dry-run` is a suite of its own',
  },
  { page: 'docs/replication.md', blocks: 7, ranBy: 'test/cluster/replication-page.test.ts' },
  { page: 'docs/runbook.md', blocks: 1, ranBy: 'test/cluster/docs/operations.test.ts' },
  { page: 'docs/runbook.md', section: 'Symptoms', blocks: 5, ranBy: 'test/docs/symptoms.test.ts' },
  { page: 'docs/runbook.md', section: 'A node does not start', blocks: 1, ranBy: 'test/docs/symptoms.test.ts' },
  { page: 'docs/sizing.md', blocks: 3, ranBy: 'test/docs/several-clusters.test.ts' },
  { page: 'docs/seals.md', section: 'Migration', blocks: 1, ranBy: 'test/cluster/seal-migration.test.ts' },
  { page: 'docs/seals.md', section: 'transit', blocks: 1, ranBy: 'test/cluster/seal-migration.test.ts' },
  { page: 'docs/seals.md', section: 'pkcs11', blocks: 1, ranBy: 'test/cluster/pkcs11-seal.test.ts' },
  { page: 'docs/testing.md', blocks: 1, notRun: `${long}: commands of the simulator, which \`npm test\` plays` },
  { page: 'docs/upgrades.md', blocks: 1, ranBy: 'test/cluster/docs/operations.test.ts' },
  { page: 'packages/client/README.md', blocks: 3, ranBy: 'test/docs/readme.test.ts' },
  { page: 'packages/replication/README.md', blocks: 1, notRun: `${long}: commands of the simulator, which \`npm test\` plays` },
  {
    page: 'packages/storage-etcd/README.md',
    blocks: 1,
    notRun: 'needs protoc, and changes nothing while the definitions do not change',
  },
  { page: 'scripts/release/archive-readme.md', blocks: 1, ranBy: 'test/release/archive.test.ts' },
  { page: 'scripts/release/npm-readme.md', blocks: 1, ranBy: 'test/release/npm-packages.test.ts' },
];

// Checks the chart with helm's own packages and the schemas of Kubernetes.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { parseConfig } from '../../../packages/configuration/src/index.ts';
import { type Manifest, manifestsFile, nodeEnvironment, parseManifests } from '../../deploy/manifests.ts';
import { buildMs } from '../go-programs.ts';
import { run } from '../run.ts';
import { buildHelm, chart, lint, openApiFile, plainManifests, render } from './helm.ts';
import { KubernetesSchemas } from './schema.ts';

/** Kinds of other projects. They exist only if their operators are installed, so Kubernetes has no schema for them. */
const foreign = ['monitoring.coreos.com/v1 ServiceMonitor', 'cert-manager.io/v1 Certificate'];

const everything = [
  'seal.type=static',
  'tls.mode=certManager',
  'serviceMonitor.enabled=true',
  'serviceMonitor.labels.release=prometheus',
  'image.digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
  'storage.storageClassName=fast',
  'service.type=LoadBalancer',
  'service.annotations.example=yes',
  'podAnnotations.example=yes',
  'priorityClassName=high',
  'nodeSelector.disk=ssd',
  'config.log.level=debug',
  'networkPolicy.monitoring[0].namespaceSelector.matchLabels.name=monitoring',
  'networkPolicy.extraEgress[0].ports[0].port=4318',
  'networkPolicy.extraIngress[0].ports[0].port=8201',
  'audit.type=file',
  'audit.storage.storageClassName=slow',
  'ui=true',
  'startupSeconds=3600',
  'kubernetesAuth.enabled=true',
  'podLabels.example=yes',
  'serviceAccount.annotations.example=yes',
  'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=disk',
  'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists',
  'extraEnv[0].name=TRANSITD_LOG_LEVEL',
  'extraEnv[0].value=debug',
  'replicas=5',
];
const variants: readonly (readonly [string, readonly string[]])[] = [
  ['default values', []],
  ['every optional part', everything],
  [
    'a seal that the configuration sets, and audit in the log',
    ['audit.type=stdout', 'config.seal.type=transit', 'config.seal.address=https://seal', 'config.seal.key_name=k'].concat(
      'config.seal.token_file=/etc/seal/token',
      'config.performance_standby=false',
    ),
  ],
  ['one node without TLS and without the active Service', ['replicas=1', 'tls.mode=disabled', 'activeService.enabled=false']],
];

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** Returns the configuration of the first node, read as the node reads it. @throws if the node would refuse it */
function configOf(manifests: readonly Manifest[]): ReturnType<typeof parseConfig> {
  const [node] = find(manifests, 'StatefulSet', 'blue-transitd').spec.template.spec.containers;
  const text = find(manifests, 'ConfigMap', 'blue-transitd').data['transitd.yaml'];
  if (node === undefined || text === undefined) throw new Error('there is no node, or no configuration');
  return parseConfig(parse(text), nodeEnvironment(node, 'blue-transitd-0'));
}

const checksumOf = async (...values: readonly string[]): Promise<string | undefined> =>
  find(parseManifests(await render('blue', ...values)), 'StatefulSet', 'blue-transitd').spec.template.metadata.annotations[
    'checksum/config'
  ];

describe('the Helm chart', function () {
  let schemas: KubernetesSchemas;

  before(async function () {
    this.timeout(buildMs);
    if ((await run('go', ['version'])).code !== 0 && process.env['CI'] === undefined) this.skip();
    await buildHelm();
    schemas = new KubernetesSchemas(JSON.parse(readFileSync(await openApiFile(), 'utf8')));
  });
  this.timeout(60_000);

  it('passes helm lint', async () => {
    const { code, stdout } = await lint(chart);
    expect({ code, stdout }).to.have.property('code', 0);
  });

  it('has a linter that finds a fault in a template, and one in the values', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-chart-'));
    const copy = join(folder, 'transitd');
    try {
      cpSync(chart, copy, { recursive: true });
      writeFileSync(join(copy, 'templates/broken.yaml'), 'apiVersion: v1\nkind: {{ .Values.kind }\n');
      expect(await lint(copy)).to.include({ code: 1 });
      rmSync(join(copy, 'templates/broken.yaml'));
      expect(await lint(copy)).to.include({ code: 0 });
      writeFileSync(join(copy, 'values.yaml'), 'replicas: many\n');
      expect(await lint(copy)).to.include({ code: 1 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('renders the plain manifests; otherwise run `npx node scripts/kubernetes-manifests.ts`', async () => {
    expect(readFileSync(manifestsFile, 'utf8')).to.equal(await plainManifests());
  });

  for (const [name, values] of variants)
    it(`renders manifests that fit the schemas of Kubernetes: ${name}`, async () => {
      const manifests = parseManifests(await render('blue', ...values));
      expect(manifests.map(({ kind }) => kind)).to.include('StatefulSet');
      for (const manifest of manifests) {
        const faults = schemas.faults(manifest);
        if (faults === undefined) expect(foreign).to.include(`${manifest.apiVersion} ${manifest.kind}`);
        else expect(faults, `${manifest.kind} ${manifest.metadata.name}`).to.deep.equal([]);
      }
      const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(names).to.deep.equal([...new Set(names)]);
      configOf(manifests);
    });

  it('sets the console, and an audit file on a volume of its own', async () => {
    const manifests = parseManifests(await render('blue', ...everything));
    const config = configOf(manifests);
    expect(config.ui).to.equal(true);
    const { volumeClaimTemplates: claims = [], template } = find(manifests, 'StatefulSet', 'blue-transitd').spec;
    expect(claims.map(({ metadata }) => metadata.name)).to.deep.equal(['data', 'audit']);
    const mount = template.spec.containers[0]?.volumeMounts.find(({ name }) => name === 'audit');
    expect(config.audit.map((device) => device.type === 'file' && device.path)).to.deep.equal([`${mount?.mountPath}/audit.log`]);
  });

  it('counts a standby as ready only if it may answer reads, except where the configuration forbids that', async () => {
    const pathWith = async (...values: string[]): Promise<string | undefined> =>
      find(parseManifests(await render('blue', ...values)), 'StatefulSet', 'blue-transitd').spec.template.spec.containers[0]
        ?.readinessProbe.httpGet.path;
    expect(await pathWith()).not.to.contain('&standbyok=');
    expect(await pathWith('config.performance_standby=false')).to.contain('&standbyok=true');
  });

  it('gives the node a token for Kubernetes, with the right to review others, only for logins of pods', async () => {
    const mountsWith = async (...values: string[]): Promise<readonly string[]> => {
      const manifests = parseManifests(await render('blue', ...values));
      const [node] = find(manifests, 'StatefulSet', 'blue-transitd').spec.template.spec.containers;
      const rights = manifests.filter(({ kind }) => kind === 'ClusterRoleBinding').map(({ metadata }) => metadata.name);
      return [...rights, ...(node?.volumeMounts ?? []).flatMap(({ name, mountPath }) => (name === 'account' ? [mountPath] : []))];
    };
    expect(await mountsWith()).to.deep.equal([]);
    for (const more of [[], ['activeService.enabled=false']])
      expect(await mountsWith('kubernetesAuth.enabled=true', ...more)).to.deep.equal([
        'transitd-blue-transitd-token-review',
        '/var/run/secrets/kubernetes.io/serviceaccount',
      ]);
  });

  it('restarts pods for a change of the configuration, and not for another number of replicas', async () => {
    const before = await checksumOf();
    expect(await checksumOf('replicas=5')).to.equal(before);
    expect(await checksumOf('config.log.level=debug')).not.to.equal(before);
  });

  it('has no name in the schemas of Kubernetes that this test would not notice', async () => {
    const [first] = parseManifests(await render('blue')).filter(({ kind }) => kind === 'StatefulSet');
    if (first === undefined) throw new Error('there is no StatefulSet');
    const wrong = {
      ...first,
      spec: { ...first.spec, replicas: '3', replica: 3, selector: undefined, updateStrategy: { type: 5 } },
    };
    expect(schemas.faults(JSON.parse(JSON.stringify(wrong)))).to.have.members([
      'StatefulSet.spec.selector: missing',
      'StatefulSet.spec.replicas: "3" is no integer',
      'StatefulSet.spec.replica: unknown',
      'StatefulSet.spec.updateStrategy.type: 5 is no string',
    ]);
  });

  for (const [value, message] of [
    ['replica=3', 'replica'],
    ['seal.type=cloud', 'seal'],
    ['tls.mode=none', 'tls'],
    ['image.digest=latest', 'digest'],
    ['terminationGracePeriodSeconds=5', 'terminationGracePeriodSeconds'],
    ['preStopSeconds=30', 'preStopSeconds'],
    ['podDisruptionBudget.maxUnavailable=2', 'majority'],
    ['config.data_dir=/tmp', 'data_dir'],
    ['config.telemetry.address=127.0.0.1:1', 'telemetry'],
    ['audit.type=syslog', 'audit'],
  ] as const)
    it(`refuses the value ${value}`, async () => {
      const error = await render('blue', value).then(
        () => '',
        (reason: Error) => reason.message,
      );
      expect(error).to.contain(message);
    });
});

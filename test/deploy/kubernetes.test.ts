// @live
// Checks that the plain manifests start a working node. test/clients/helm compares them with the chart.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { parseConfig } from '../../packages/configuration/src/index.ts';
import { defaultCodes, parseHealthQuery } from '../../packages/health/src/index.ts';
import { root } from '../process/live-server.ts';
import { container, manifest, nodeEnvironment } from './manifests.ts';

const { template, ...statefulSet } = manifest('StatefulSet', 'transitd').spec;
const node = container('transitd');

const environmentOf = (pod: string): Record<string, string> => nodeEnvironment(node, pod);
const codesOf = (path: string): URLSearchParams => new URL(path, 'http://node').searchParams;

describe('the Kubernetes manifests', () => {
  it('give each node a valid configuration, with its own name and addresses', () => {
    const text = manifest('ConfigMap', 'transitd').data['transitd.yaml'] ?? '';
    const config = parseConfig(parse(text), environmentOf('transitd-1'));
    const domain = 'transitd-headless.transitd.svc.cluster.local';
    expect(config).to.deep.include({
      node_id: 'transitd-1',
      cluster_addr: `transitd-1.${domain}:8201`,
      api_addr: `https://transitd-1.${domain}:8200`,
      retry_join: [0, 1, 2].map((ordinal) => `https://transitd-${ordinal}.${domain}:8200`),
    });
  });

  it('pass no variables of Services, which a node would refuse as unknown settings', () => {
    expect(template.spec.enableServiceLinks).to.equal(false);
    const text = manifest('ConfigMap', 'transitd').data['transitd.yaml'] ?? '';
    const linked = { ...environmentOf('transitd-1'), TRANSITD_PORT: 'tcp://10.0.0.1:8200' };
    expect(() => parseConfig(parse(text), linked)).to.throw('TRANSITD_PORT');
  });

  it('start all pods at once, resolve names of pods that are not ready, and keep the disks', () => {
    expect(statefulSet.podManagementPolicy).to.equal('Parallel');
    expect(statefulSet).to.have.deep.property('persistentVolumeClaimRetentionPolicy', {
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    });
    expect(manifest('Service', 'transitd-headless').spec.publishNotReadyAddresses).to.equal(true);
  });

  it('never restart a node for its state: every code of health counts as alive', () => {
    for (const { httpGet } of [node.startupProbe, node.livenessProbe]) {
      const query = parseHealthQuery(codesOf(httpGet.path));
      expect(query).to.include({ standbyOk: true, performanceStandbyOk: true });
      const { standbycode: _, performancestandbycode: __, ...codes } = query?.codes ?? defaultCodes;
      expect([...new Set(Object.values(codes))]).to.deep.equal([200]);
    }
  });

  it('count a node as ready if it is caught up or belongs to a secondary, and not otherwise', () => {
    expect(parseHealthQuery(codesOf(node.readinessProbe.httpGet.path))).to.deep.equal({
      standbyOk: false,
      performanceStandbyOk: true,
      codes: { ...defaultCodes, drsecondarycode: 200 },
    });
    // Longer than two heartbeat intervals, after which a node without contact to the active node reports that.
    const text = manifest('ConfigMap', 'transitd').data['transitd.yaml'] ?? '';
    const { cluster_heartbeat_interval: interval } = parseConfig(parse(text), environmentOf('transitd-1'));
    expect((statefulSet.minReadySeconds ?? 0) * 1000).to.be.above(2 * interval);
  });

  it('never place two nodes on one machine, and let a drain take one', () => {
    expect(template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution).to.deep.equal([
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: template.metadata.labels } },
    ]);
    expect(manifest('PodDisruptionBudget', 'transitd').spec.maxUnavailable).to.equal(1);
  });

  it('start the node without core files, and pass it its arguments and signals', () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-command-'));
    try {
      const program = join(folder, 'transitd');
      writeFileSync(program, '#!/bin/sh\necho "$(ulimit -c) $$ $*"\n');
      chmodSync(program, 0o755);
      const [shell = '', ...before] = node.command ?? [];
      const env = { PATH: `${folder}:${process.env['PATH']}` };
      const { stdout, pid } = spawnSync(shell, [...before, ...(node.args ?? [])], { encoding: 'utf8', env });
      expect(stdout).to.equal(`0 ${pid} ${node.args?.join(' ')}\n`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('leave time for the preStop and for the stop of the node', () => {
    const [command, seconds] = node.lifecycle.preStop.exec.command;
    expect(command).to.equal('sleep');
    expect(template.spec.terminationGracePeriodSeconds - Number(seconds)).to.be.at.least(30);
  });

  it('give a token for Kubernetes only to the container of the active Service, with rights to one EndpointSlice', () => {
    expect(template.spec.automountServiceAccountToken).to.equal(false);
    const withToken = template.spec.containers.filter(({ volumeMounts }) =>
      volumeMounts.some((mount) => mount.name === 'account'),
    );
    expect(withToken.map(({ name }) => name)).to.deep.equal(['active-endpoint']);
    expect(manifest('Role', 'transitd-active').rules).to.deep.equal([
      {
        apiGroups: ['discovery.k8s.io'],
        resources: ['endpointslices'],
        resourceNames: ['transitd-active'],
        verbs: ['get', 'update'],
      },
    ]);
  });

  it('run as an ordinary user, with the default filter of system calls', () => {
    expect(template.spec.securityContext).to.deep.include({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('run every container without privileges and on a read-only root', () => {
    for (const { securityContext } of template.spec.containers)
      expect(securityContext).to.deep.equal({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
  });

  it('contain the script of the active Service as it is in the chart', () => {
    const script = readFileSync(join(root, 'deploy/helm/transitd/files/active-endpoint.mjs'), 'utf8');
    expect(manifest('ConfigMap', 'transitd-active').data['active-endpoint.mjs']).to.equal(script);
  });
});

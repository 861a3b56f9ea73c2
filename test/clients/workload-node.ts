// A node that asks for client certificates, the API server of a Kubernetes cluster, and the identities of a workload.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clusterKeyPem, StubApiServer, serveReviews, tokenOf } from '../../packages/api/test/auth/stub-api-server.ts';
import { TestAuthority } from '../../packages/cluster/test/test-authority.ts';
import { makeCertificate } from '../../packages/process/test/certificate.ts';
import { type GatewayNode, startNode } from '../process/gateways/clients.ts';
import { entry, type Workbench } from '../process/live-server.ts';
import { planted } from '../process/secret-watch.ts';

export interface WorkloadNode {
  readonly node: GatewayNode;
  /** What the programs of the clients read: identities, and what the methods need to recognize them. `ca` and `…_file` are files. */
  readonly workload: Readonly<Record<string, string>>;
  /** Ends the API server. */
  close(): void;
}

export async function startWorkloadNode(bench: Workbench): Promise<WorkloadNode> {
  const folder = bench.folder();
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  const api = new StubApiServer();
  const reviewer = planted('reviewer').replaceAll(/[^\w-]/g, '-');
  api.reviewers.add(reviewer);
  const made = makeCertificate(folder, 'localhost');
  const clusterCa = readFileSync(made.cert_file, 'utf8');
  const cluster = await serveReviews(api, { cert: clusterCa, key: readFileSync(made.key_file) });

  const authority = await TestAuthority.make();
  const server = await authority.certify({
    subject: 'CN=server',
    usages: ['serverAuth'],
    names: [{ type: 'ip', value: '127.0.0.1' }],
  });
  const client = await authority.certify({ subject: 'CN=web' });
  const ca = file('authority.crt', authority.cert);
  const tls = {
    cert_file: file('node.crt', server.cert),
    key_file: file('node.key', server.key),
    client_ca_file: ca,
    client_auth: 'optional',
  };
  const node = await startNode(bench, entry, { folder, listeners: [{ address: '127.0.0.1:0', tls }] });
  const job = { sub: 'pipeline', aud: ['transitd'] };
  const tokens = {
    account: await api.issue(),
    job: await tokenOf({ ...job, job: '7' }),
    other_job: await tokenOf({ ...job, job: '8' }),
  };
  for (const token of Object.values(tokens)) node.server.secrets.add('an identity of a workload', token);
  const workload = {
    ...tokens,
    account_file: file('account', tokens.account),
    ca,
    cluster: cluster.url,
    cluster_ca: clusterCa,
    reviewer,
    reviewer_file: file('reviewer', reviewer),
    issuer_key: clusterKeyPem,
    authority: authority.cert,
    client_cert_file: file('client.crt', client.cert),
    client_key_file: file('client.key', client.key),
  };
  return { node, workload, close: () => cluster.close() };
}

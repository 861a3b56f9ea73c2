import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/cluster/harness/free-port.ts';

export interface Certificate {
  readonly cert_file: string;
  readonly key_file: string;
}

/**
 * Writes the configuration of a node that unseals itself. Returns the path of the file.
 * @param join - URL of the node whose cluster it joins
 * @param more - further keys of the configuration
 */
export async function writeConfiguration(node: {
  readonly folder: string;
  readonly name: string;
  readonly certificate: Certificate | undefined;
  readonly audit: boolean;
  readonly join: string | undefined;
  readonly more: Readonly<Record<string, unknown>>;
}): Promise<string> {
  const { folder, name, certificate, audit, more } = node;
  const file = join(folder, `${name}.json`);
  const listener = { address: '127.0.0.1:0', ...(certificate ? { tls: certificate } : { tls_disable: true }) };
  const configuration = {
    node_id: name,
    data_dir: join(folder, name),
    cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`,
    listeners: [listener],
    seal: { type: 'static', key_id: 'bench', key_env: 'BENCH_SEAL_KEY' },
    ...(audit && { audit: [{ type: 'file', name: 'bench', path: join(folder, `${name}-audit.log`) }] }),
    ...(node.join !== undefined && { retry_join: [node.join] }),
    ...(node.join !== undefined && certificate && { retry_join_ca_file: certificate.cert_file }),
    ...more,
  };
  writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
  return file;
}

export const newSealKey = (): string => randomBytes(32).toString('base64');

/** Makes a key and a self-signed certificate for the loopback address with the command `openssl`. */
export function makeCertificate(folder: string): Certificate {
  const [key_file, cert_file] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-days', '2', '-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key_file, '-out', cert_file], { stdio: 'ignore' });
  return { key_file, cert_file };
}

import type { Config } from '@transitd/configuration';
import { readNamedFile, StartError } from '@transitd/process';
import { anyEndpoint, connectEtcd, type Etcd, type EtcdConnection } from '@transitd/storage-etcd';

export type EtcdConfig = Extract<Config['storage'], { type: 'etcd' }>;

/** How long one call may take. Several must fit into the time to live of a lease. */
const timeoutMs = 3000;

/** Reads the files that the configuration names, and returns a connection, which opens when it is first used. @throws StartError */
export async function openEtcd({ endpoints, tls, username, password_file }: EtcdConfig): Promise<Etcd> {
  const files = tls && {
    ...(tls.ca_file !== undefined && { ca: read(tls.ca_file) }),
    ...(tls.cert_file !== undefined && { cert: read(tls.cert_file) }),
    ...(tls.key_file !== undefined && { key: read(tls.key_file) }),
  };
  const password = password_file === undefined ? undefined : read(password_file).replace(/\r?\n$/, '');
  if (password === '') throw new StartError(`storage.password_file: ${password_file} is empty`);
  const options: Omit<EtcdConnection, 'endpoint'> = {
    timeoutMs,
    ...(files && { tls: files }),
    ...(username !== undefined && password !== undefined && { user: { name: username, password } }),
  };
  const [first = '', ...others] = endpoints.map((endpoint) => endpoint.replace(/\/$/, ''));
  const connect = (endpoint: string): Promise<Etcd> => connectEtcd({ endpoint, ...options });
  return anyEndpoint([await connect(first), ...(await Promise.all(others.map(connect)))]);
}

const read = (file: string): string => readNamedFile('storage', file).toString('utf8');

import type { Etcd } from '../etcd.ts';
import type { EtcdConnection } from './connect-etcd.ts';

/**
 * Opens a connection to one endpoint when it is first needed, and again after it broke. The gRPC client is loaded with the first call: it
 * has some 140 modules, which a node that keeps its records itself does not need.
 */
export async function connectEtcd(connection: EtcdConnection): Promise<Etcd> {
  const client = await import('./connect-etcd.ts');
  return client.connectEtcd(connection);
}

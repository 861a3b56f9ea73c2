import { isIP } from 'node:net';
import type { Config } from '@transitd/configuration';

export function clusterListenAddress({
  cluster_listen,
  cluster_addr = '',
  listeners,
}: Pick<Config, 'cluster_listen' | 'cluster_addr' | 'listeners'>): { readonly host: string; readonly port: number } {
  const port = Number(cluster_addr.slice(cluster_addr.lastIndexOf(':') + 1));
  return cluster_listen ?? { host: listeners[0]?.address.host ?? '127.0.0.1', port };
}

/** Returns the address that outgoing connections bind to: the host that the cluster port listens on, when that is a concrete address. */
export const localAddressFor = (listenHost: string): string | undefined =>
  isIP(listenHost) === 0 || /^[0:.]*$/.test(listenHost) ? undefined : listenHost;

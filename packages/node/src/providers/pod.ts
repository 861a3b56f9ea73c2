import type { Kubernetes } from '@transitd/access';

/** What a pod of Kubernetes has to call the API server of its cluster. */
export interface Pod {
  /** `https://HOST:PORT` */
  readonly apiServer: string;
  /** CA certificates of the API server in PEM. */
  readonly ca: string;
  /** Token of the pod's service account. */
  readonly token: string;
}

/** Reads them as they are now. @throws Error that names what is missing; errors of the file system */
export function readPod(podFile: Kubernetes['podFile'], env: Readonly<Record<string, string | undefined>> = process.env): Pod {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '')
    throw new Error('this node runs in no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  const [ca, token] = [podFile('ca.crt'), podFile('token')];
  if (ca === undefined || token === undefined) throw new Error('the pod of this node has no service account');
  return { apiServer: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, ca, token: token.trim() };
}

import { join } from 'node:path';
import type { Kubernetes } from '@transitd/access';
import { type Logger, LogLimit, readRegularFile, reasonOf } from '@transitd/process';
import { exchangeWith } from '@transitd/seals';

/** Where Kubernetes mounts the service account of a pod. It replaces the files while the pod runs. */
const mountedAt = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Deadline for one review. It is well below the time that a standby waits for a forwarded login. */
const deadlineMs = 5_000;
const fileBytesMax = 64 * 1024;

interface KubernetesOptions {
  readonly log: Logger;
  /** Folder of the pod's service account. */
  readonly folder?: string;
  readonly withinMs?: number;
}

/** Calls API servers, each time on a new connection, and logs those that refuse or fail; reads the files of the pod. */
export function kubernetes({ log, folder = mountedAt, withinMs = deadlineMs }: KubernetesOptions): Kubernetes {
  const limited = new LogLimit({ log });
  const failed = (server: string, reason: string): void =>
    limited.write('warn', server, { server, reason }, 'a Kubernetes API server did not review a token');
  return {
    post: async (url, { ca, token, json: body }) => {
      const { origin, pathname } = new URL(url);
      const send = exchangeWith(origin, { skipVerify: false, ...(ca !== '' && { ca }) }, withinMs);
      const headers = { accept: 'application/json', authorization: `Bearer ${token}` };
      try {
        const { status, json } = await send({ method: 'POST', path: pathname, headers, body });
        if (status >= 300) failed(origin, `it answered with status ${status}`);
        return { status, json };
      } catch (error) {
        failed(origin, reasonOf(error));
        throw error;
      }
    },
    podFile: (name) => {
      try {
        return readRegularFile(join(folder, name), fileBytesMax).toString('utf8');
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
        throw error;
      }
    },
  };
}

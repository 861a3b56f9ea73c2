import { join } from 'node:path';
import type { Kubernetes } from '@transitd/access';
import { readRegularFile } from '@transitd/process';
import { exchangeWith } from '@transitd/seals';

/** Where Kubernetes mounts the service account of a pod. It replaces the files while the pod runs. */
const mountedAt = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Deadline for one review. It is well below the time that a standby waits for a forwarded login. */
const deadlineMs = 5_000;
const fileBytesMax = 64 * 1024;

/** Calls API servers, each time on a new connection, and reads the files of the pod. */
export const kubernetes = ({ folder = mountedAt, withinMs = deadlineMs } = {}): Kubernetes => ({
  post: async (url, { ca, token, json: body }) => {
    const { origin, pathname } = new URL(url);
    const send = exchangeWith(origin, { skipVerify: false, ...(ca !== '' && { ca }) }, withinMs);
    const headers = { accept: 'application/json', authorization: `Bearer ${token}` };
    const { status, json } = await send({ method: 'POST', path: pathname, headers, body });
    return { status, json };
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
});

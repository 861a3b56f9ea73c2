import { randomUUID } from 'node:crypto';
import type { Store, Write } from '@transitd/storage-fsm';

/** Where an engine answers, and the id under which its records lie: a mount can move, its records never do. */
export interface Mount {
  /** Without slashes at its ends. */
  readonly path: string;
  readonly type: 'transit';
  readonly id: string;
  readonly ciphertextPrefix: string;
}

const mountsPath = 'core/mounts';
const format = 1;

/** The mounts of a new cluster: one transit engine. */
export function initialMounts(ciphertextPrefix: string): Write {
  const mounts: readonly Mount[] = [{ path: 'transit', type: 'transit', id: randomUUID(), ciphertextPrefix }];
  return { path: mountsPath, value: Buffer.from(JSON.stringify({ format, mounts })) };
}

/** @throws Error when the record is missing or of an unknown format: then the node cannot serve */
export async function readMounts(store: Store): Promise<readonly Mount[]> {
  const record = await store.get(mountsPath);
  if (record === undefined) throw new Error(`the record ${mountsPath} is missing`);
  const value: unknown = JSON.parse(Buffer.from(record.value).toString('utf8'));
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== format || !('mounts' in value)) {
    throw new Error(`the record ${mountsPath} has an unknown format`);
  }
  return value.mounts as readonly Mount[];
}

import type { ClientCertificate } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import { decodeAuthMount } from '../mounts/auth-mount.ts';
import type { StoredMount } from '../mounts/auth-mounts.ts';

/** A login request. */
export interface Login {
  readonly mount: StoredMount;
  /** Path of the request. */
  readonly path: string;
  /** Address of the caller. */
  readonly address: string;
  /** The verified certificate of the caller; absent for none. */
  readonly certificate?: ClientCertificate | undefined;
}

/**
 * Completes the read of a record so that existing and missing records take the same work. If the record was found, it reads a path
 * without a record; if not, it reads and decodes the record of the auth method. Either way one record is found and one is not, so
 * the time of a refused login does not reveal which names exist.
 * @param found - whether a record exists at `path`
 * @throws StoreError
 */
export async function equalizeReads(store: Store, { condition }: StoredMount, path: string, found: boolean): Promise<void> {
  const other = await store.get(found ? `${path}~` : condition.path);
  if (other !== undefined) decodeAuthMount(other.value);
}

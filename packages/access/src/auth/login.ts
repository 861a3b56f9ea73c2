import type { Store } from '@transitd/storage-fsm';
import { decodeAuthMount } from '../mounts/auth-mount.ts';
import type { StoredMount } from '../mounts/auth-mounts.ts';

/** A login, and from where. */
export interface Login {
  readonly mount: StoredMount;
  /** Of the request. */
  readonly path: string;
  readonly address: string;
}

/**
 * Completes the read of a record that may not be there: after one that was found it reads where nothing is, after one that was not it reads and
 * decodes the login method's own record. So either way one record is found and one is not, and how long a refused login takes
 * does not say which names are known.
 * @param found - whether there was a record at `path`
 * @throws StoreError
 */
export async function equalizeReads(store: Store, { condition }: StoredMount, path: string, found: boolean): Promise<void> {
  const other = await store.get(found ? `${path}~` : condition.path);
  if (other !== undefined) decodeAuthMount(other.value);
}

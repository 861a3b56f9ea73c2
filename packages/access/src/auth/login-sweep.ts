import type { Condition, Store, Write } from '@transitd/storage-fsm';
import type { AuthMounts } from '../mounts/auth-mounts.ts';
import { AccessError } from '../values/errors.ts';
import { decodeJson } from '../values/json-record.ts';
import { decodeAppRole } from './approle-role.ts';
import { loginPrefix, loginRecordsPrefix } from './login-records.ts';
import { decodeSecretId } from './secret-id.ts';

interface SweepOptions {
  readonly mounts: AuthMounts;
  readonly now: number;
  /** Path where the previous step stopped; empty to start over. */
  readonly cursor: string;
  readonly limit: number;
}

/**
 * Deletes records of disabled auth methods, secret ids of deleted roles, and expired secret ids. None of them can be used any
 * longer; this frees their space.
 */
export async function sweepLogins(
  store: Store,
  { mounts, now, cursor, limit }: SweepOptions,
): Promise<{ readonly removed: number; readonly cursor: string }> {
  const { records } = await store.range({ prefix: loginPrefix, limit, ...(cursor !== '' && { after: cursor }) });
  // The methods are read after the records. If the method of a record is missing now, the method was disabled, and its id is never
  // used again.
  const present = new Set((await mounts.list()).map(({ id }) => id));
  const conditions: Condition[] = [];
  const writes: Write[] = [];
  for (const { path, value, revision } of records) {
    const [mountId = '', kind = '', role = ''] = path.slice(loginPrefix.length).split('/');
    const isGarbage =
      !present.has(mountId) ||
      (kind === 'secret' && (await isSecretExpired(store, { mountId, role, value, now }))) ||
      (kind === 'secret-accessor' && (await isPointerDangling(store, { mountId, role, value })));
    if (!isGarbage) continue;
    conditions.push({ path, revision });
    writes.push({ path, value: null });
  }
  const next = records.length < limit ? '' : (records.at(-1)?.path ?? '');
  if (writes.length === 0) return { removed: 0, cursor: next };
  const { outcome } = await store.commit({ conditions, writes });
  return { removed: outcome === 'committed' ? writes.length : 0, cursor: next };
}

interface Secret {
  readonly mountId: string;
  readonly role: string;
  readonly value: Uint8Array;
}

async function isSecretExpired(store: Store, { mountId, role, value, now }: Secret & { readonly now: number }): Promise<boolean> {
  try {
    const secret = decodeSecretId(value);
    if (secret.expiresMs !== 0 && secret.expiresMs <= now) return true;
    const stored = await store.get(`${loginRecordsPrefix(mountId)}role/${role}`);
    return stored === undefined || decodeAppRole(stored.value).key !== secret.roleKey;
  } catch (error) {
    if (error instanceof AccessError) return false; // a newer version wrote the record in an unknown format: keep it
    throw error;
  }
}

async function isPointerDangling(store: Store, { mountId, role, value }: Secret): Promise<boolean> {
  try {
    return (
      (await store.get(`${loginRecordsPrefix(mountId)}secret/${role}/${decodeJson(value, { name: '' }).name}`)) === undefined
    );
  } catch (error) {
    if (error instanceof AccessError) return false;
    throw error;
  }
}

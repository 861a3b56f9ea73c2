import { managedIdBytes } from '../formats/uuid.ts';
import type { ManagedKeyReference, ManagedKeys } from '../managed/provider.ts';
import type { VersionMaterial } from './fresh-version.ts';
import type { KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';

/** What a version of a managed key keeps; nothing for other types, and where no managed key is named. @throws TransitError */
export async function boundVersion(
  managedKeys: ManagedKeys,
  { type }: Pick<KeyRecord, 'type'>,
  reference: ManagedKeyReference,
): Promise<VersionMaterial | undefined> {
  const named = (reference.managedKeyName ?? '') !== '' || (reference.managedKeyId ?? '') !== '';
  if (!keyType(type).managed || !named) return undefined;
  const { id, publicKey } = await managedKeys.bind(reference);
  return { material: managedIdBytes(id), ...(publicKey && { publicKey }) };
}

import type { End } from './end.ts';
import type { Permission } from './method.ts';
import type { KeyMove } from './plan.ts';

/** A key and the settings that it would need at the source. They cannot be turned off again. */
export interface Wish {
  readonly mount: string;
  readonly name: string;
  readonly needs: readonly Permission[];
}

/** Returns the keys that could be moved if the operator agreed to change them at the source. */
export const wishesOf = (keys: readonly KeyMove[]): readonly Wish[] =>
  keys.flatMap(({ mount, key, method, present }) =>
    method.kind === 'rewrap' && (present === 'absent' || present === 'older')
      ? [{ mount, name: key.name, needs: method.needs }]
      : [],
  );

/** Sets the permissions of a key at the source that it lacks and the operator has granted. */
export async function permitAtSource(
  { client }: End,
  { mount, key }: Pick<KeyMove, 'mount' | 'key'>,
  granted: ReadonlySet<Permission>,
  method: 'backup' | 'import',
): Promise<void> {
  const config = {
    ...(!key.exportable && granted.has('exportable') && { exportable: true }),
    ...(method === 'backup' &&
      !key.allowPlaintextBackup &&
      granted.has('allow_plaintext_backup') && { allow_plaintext_backup: true }),
  };
  if (Object.keys(config).length > 0) await client.transit(mount).configureKey(key.name, config);
}

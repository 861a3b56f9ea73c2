import { fieldsIn, isCount } from '@transitd/storage-fsm';

/** The space whose records readers see, and the restore that filled it. */
export interface LiveSpace {
  readonly space: number;
  /** Empty before the first restore. */
  readonly attempt: string;
}

export const firstSpace: LiveSpace = { space: 0, attempt: '' };

export const encodeSpace = ({ space, attempt }: LiveSpace): Uint8Array => Buffer.from(JSON.stringify({ space, attempt }));

/** Returns undefined for bytes that {@link encodeSpace} did not write. */
export function decodeSpace(bytes: Uint8Array): LiveSpace | undefined {
  const { space, attempt } = fieldsIn(bytes);
  return isCount(space) && typeof attempt === 'string' ? { space, attempt } : undefined;
}

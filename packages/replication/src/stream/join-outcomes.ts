import type { ReplicatedWrite } from '@transitd/storage-fsm';
import type { Outcome } from './outcome.ts';

/** Estimated memory of a write, in addition to the bytes of its value. */
const writeBytes = 200;

/** The keys of the barrier. A step has at most one change of them, because the keys of one may be needed to open the next. */
const keyringPath = 'core/keyring';

/**
 * Joins consecutive outcomes into one, from the first on, until it has about `bytesMax` bytes; a single outcome may be larger. The result
 * has only the last write of each path, and at most one change of the keyring. Returns undefined for no outcomes.
 */
export function joinOutcomes(outcomes: Iterable<Outcome>, bytesMax: number): Outcome | undefined {
  const writes = new Map<string, ReplicatedWrite>();
  let joined: Outcome | undefined;
  let bytes = 0;
  for (const outcome of outcomes) {
    const grown = outcome.writes.reduce((sum, write) => sum + sizeOfWrite(write) - sizeOfWrite(writes.get(write.path)), bytes);
    if (joined !== undefined && (grown > bytesMax || (writes.has(keyringPath) && changesKeyring(outcome)))) break;
    for (const write of outcome.writes) writes.set(write.path, write);
    const { from, valuesWritten } = joined ?? { from: outcome.from, valuesWritten: 0 };
    joined = { from, to: outcome.to, writes: [], valuesWritten: valuesWritten + outcome.valuesWritten };
    bytes = grown;
  }
  return joined && { ...joined, writes: [...writes.values()] };
}

const changesKeyring = ({ writes }: Outcome): boolean => writes.some(({ path }) => path === keyringPath);

export const sizeOfWrite = (write: ReplicatedWrite | undefined): number =>
  write === undefined ? 0 : writeBytes + write.path.length + (write.value?.length ?? 0);

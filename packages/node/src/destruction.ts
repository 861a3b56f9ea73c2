import type { RecordClock } from '@transitd/process';
import { JsonRecord, type ReplicationState, type Store } from '@transitd/storage-fsm';
import { z } from 'zod';

/** Replicated, so that the next active node waits as long. */
const record = new JsonRecord('core/destruction', z.object({ origin: z.string(), notBeforeMs: z.number() }));
/** Time in which the operators can correct the state before anything of it is lost. */
export const pauseMs = 24 * 3_600_000;

/** A state of records that knows what replaced it last. */
interface Origin {
  readonly restoredBy: string | undefined;
  readonly replication: Pick<ReplicationState, 'epochs'> | undefined;
}

/** Returns what changes with each restore and each promotion, in the same log entry. */
const originOf = ({ restoredBy = '', replication }: Origin): string => `${restoredBy}/${replication?.epochs.at(-1)?.id ?? ''}`;

const firstOrigin = originOf({ restoredBy: undefined, replication: undefined });

/**
 * Returns whether the active node may destroy what is due by its time alone; asked again before each destruction, it also notices a restore
 * in between. False for 24 hours after a restore, a promotion, or another change of the replication set: the state may be an old one, in
 * which things are overdue that somebody has saved since.
 * @throws StoreError
 */
export async function destruction(
  store: Pick<Store, 'get' | 'commit'>,
  state: Origin,
  clock: RecordClock,
): Promise<() => boolean> {
  const origin = originOf(state);
  const { value: last, revision } = (await record.read(store)) ?? { value: { origin: firstOrigin, notBeforeMs: 0 }, revision: 0 };
  const latestMs = clock.utcMs() + pauseMs;
  // A clock that was ahead does not prolong the pause.
  if (last.origin === origin && last.notBeforeMs <= latestMs)
    return () => originOf(state) === origin && clock.dueMs() >= last.notBeforeMs;
  const writes = [record.written({ origin, notBeforeMs: latestMs })];
  await store.commit({ conditions: [{ path: record.path, revision }], writes });
  return () => false;
}

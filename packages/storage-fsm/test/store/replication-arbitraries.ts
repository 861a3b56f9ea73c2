import fc from 'fast-check';
import type { Epoch } from '../../src/store/replication-state.ts';
import type { ReplicatedRecord, ReplicationStep } from '../../src/store/replication-step.ts';
import { somePath } from './arbitraries.ts';

const someIndex = fc.integer({ min: 0, max: 2 ** 48 - 1 });
/** A number that another cluster may send. */
export const someForeign = fc.oneof(fc.nat(1_000), fc.integer({ min: 2 ** 47 - 3, max: 2 ** 47 - 1 }));
export const someId = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('hex'));
const someNumber = someForeign.filter((number) => number > 0);
const someName = fc.record({ number: someNumber, id: someId });
const someCursor = fc.record({ number: someNumber, id: someId, index: someIndex });
const someValue = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes));
const someAttempt = fc.stringMatching(/^[0-9A-Za-z-]{1,64}$/);
const someLocal = fc.array(fc.stringMatching(/^[a-z/-]{1,20}$/), { maxLength: 4 });

export const someEpochs: fc.Arbitrary<Epoch[]> = fc
  .uniqueArray(someNumber, { minLength: 1, maxLength: 5 })
  .chain((numbers) => fc.tuple(fc.constant(numbers), fc.array(someForeign, { minLength: 5, maxLength: 5 }), someId))
  .map(([numbers, starts, id]) => {
    const inOrder = starts.toSorted((a, b) => a - b);
    return numbers.toSorted((a, b) => a - b).map((number, at) => ({ number, id, start: inOrder[at] ?? 0 }));
  });

const uniquePath = { selector: ({ path }: { path: string }) => path, maxLength: 4 };
const recordsWith = (revision: fc.Arbitrary<number>): fc.Arbitrary<ReplicatedRecord[]> =>
  fc.uniqueArray(fc.record({ path: somePath, value: someValue, revision }), uniquePath);
const someRecords = recordsWith(someIndex);
const someWrites = fc.uniqueArray(
  fc.record({ path: somePath, value: fc.option(someValue, { nil: null }), revision: someIndex }),
  uniquePath,
);

const someOwn = fc.uniqueArray(fc.record({ path: somePath, value: fc.option(someValue, { nil: null }) }), uniquePath);

const someDigest = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

type Paths = readonly { readonly path: string }[];
const isDisjoint = ({ writes, local }: { readonly writes: Paths; readonly local: Paths }): boolean =>
  local.every(({ path }) => writes.every((write) => write.path !== path));

/** Any valid step. */
export const someReplicationStep: fc.Arbitrary<ReplicationStep> = fc.oneof(
  fc.record(
    { kind: fc.constant('establish' as const), set: someId, id: someId, local: someLocal, fenceMs: someNumber },
    { requiredKeys: ['kind', 'set', 'id', 'local'] },
  ),
  fc.record(
    { kind: fc.constant('attach' as const), set: someId, local: someLocal, fenceMs: someNumber },
    { requiredKeys: ['kind', 'set', 'local'] },
  ),
  fc
    .record({
      kind: fc.constant('follow' as const),
      from: someCursor,
      to: someForeign,
      writes: someWrites,
      valuesWritten: someForeign,
      local: someRecords,
    })
    .filter(isDisjoint),
  fc.record({ kind: fc.constant('adopt' as const), from: someCursor, epochs: someEpochs }),
  fc.record({ kind: fc.constant('stage' as const), attempt: someAttempt, chunk: someIndex, records: recordsWith(someForeign) }),
  fc.record({
    kind: fc.constant('swap' as const),
    attempt: someAttempt,
    records: someIndex,
    digest: someDigest,
    valuesWritten: someForeign,
    epochs: someEpochs,
    index: someForeign,
    local: someRecords,
    localReadAt: someIndex,
  }),
  fc.record({
    ...{ kind: fc.constant('swap' as const), attempt: someAttempt, records: someIndex, digest: someDigest },
    ...{ valuesWritten: someForeign, epochs: someEpochs, index: someForeign, restoredAt: someForeign },
    ...{ local: someRecords, localReadAt: someIndex },
  }),
  fc
    .record({
      ...{ kind: fc.constant('restore' as const), from: someName, attempt: someAttempt, records: someIndex },
      ...{ digest: someDigest, valuesWritten: someForeign, writes: someOwn, local: someRecords, localReadAt: someIndex },
      conditions: fc.array(fc.record({ path: somePath, revision: someIndex }), { maxLength: 3 }),
    })
    .filter(isDisjoint),
  fc.record({ kind: fc.constant('promote' as const), from: someCursor, id: someId, writes: someOwn }),
  fc.record({ kind: fc.constant('leave' as const), from: someCursor, writes: someOwn }),
  fc.record({ kind: fc.constant('demote' as const), from: someName }),
  fc.record({ kind: fc.constant('supersede' as const), by: someName }),
  fc.constant({ kind: 'disable' as const }),
);

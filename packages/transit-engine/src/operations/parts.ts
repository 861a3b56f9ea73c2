import { isDeepStrictEqual } from 'node:util';
import { TimeSlice } from '@transitd/event-loop';
import { type Columns, columnsOf, objectsOf } from '../sharing/columns.ts';
import type { BatchPart } from '../sharing/other-threads.ts';
import { runItems } from './batch.ts';
import { cmacOperation } from './cmac.ts';
import { decryption } from './decrypt.ts';
import { encryption } from './encrypt.ts';
import { hmacOperation } from './hmac.ts';
import { type Item, type Operation, stateOf, type Tools } from './operation.ts';
import { rewrapping } from './rewrap.ts';
import { signing } from './sign.ts';
import { verification } from './verify.ts';

type AnyOperation = Pick<Operation<never, Item, object>, 'name' | 'run'>;

/** The items of a part are those of its operation, because a thread of the same program has sent them. */
const operations: ReadonlyMap<string, AnyOperation> = new Map(
  [encryption, decryption, rewrapping, signing, verification, hmacOperation, cmacOperation].map((operation) => [
    operation.name,
    operation as unknown as AnyOperation,
  ]),
);

/**
 * Processes a part of a batch of another thread. Returns undefined unless this thread has the key in the same state, and the same prefix.
 * All items of a batch are processed under one state of the key, so it does not matter whether the key has changed meanwhile.
 * @throws StoreError `sealed`; TransitError for a refusal that would meet every item
 */
export async function runPart(
  tools: Tools,
  { prefix, operation, key: state, first, items }: BatchPart,
): Promise<Columns | undefined> {
  const run = operations.get(operation)?.run;
  const slice = new TimeSlice();
  await slice.next(); // parts of several threads may arrive in one turn of the event loop
  const key = await tools.keys.key(state.name);
  if (run === undefined || key === undefined || !isDeepStrictEqual(stateOf(key), state)) return undefined;
  if (tools.prefix !== prefix) return undefined; // one of the threads is still reading the changed mount
  const results = await runItems(objectsOf(items) as Item[], {
    operation: (item, index) => run(tools, key, item, first + index),
    onResume: () => tools.keys.assertOpen(),
    slice,
  });
  tools.keys.assertOpen();
  return columnsOf(results);
}

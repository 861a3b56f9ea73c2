import { createHash } from 'node:crypto';
import { decodeTransaction, type Write } from '@transitd/storage-fsm';
import type { EtcdEvent } from '../etcd.ts';
import { decodePointer } from './marker.ts';

export const digestOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** The chunks of staged transactions that a watch has shown. */
export class Chunks {
  /** By their keys, which end with `<attempt>/<number>`. */
  readonly #values = new Map<string, Uint8Array>();

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  take({ deleted, row }: EtcdEvent): void {
    if (deleted) this.#values.delete(row.key);
    else this.#values.set(row.key, row.value);
  }

  /** Returns the writes of the transaction that a pointer names; undefined if a chunk is missing or is not the right one. */
  assemble(encodedPointer: Uint8Array): readonly Write[] | undefined {
    const pointer = decodePointer(encodedPointer);
    if (pointer === undefined) return undefined;
    const parts = [...this.#values].filter(([key]) => key.includes(`/${pointer.attempt}/`)).sort(([a], [b]) => (a < b ? -1 : 1));
    const data = Buffer.concat(parts.map(([, value]) => value));
    if (parts.length !== pointer.chunks || digestOf(data) !== pointer.digest) return undefined;
    return decodeTransaction(data).writes;
  }
}

import { MemoryLevel } from 'memory-level';
import type { StateDatabase } from '../../src/state-level.ts';
import { decodeMeta, metaKey } from '../../src/state-record.ts';
import type { HeapDevices } from './heap-devices.ts';

type Content = ReadonlyMap<string, { readonly key: Buffer; readonly value: Buffer }>;
type Step =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer };

const nameOf = (key: Buffer): string => key.toString('latin1');

/** What of a node's database survives a crash: each batch as a whole or not at all. Every opening is a database of its own. */
export class DurableRecords {
  #content: Content = new Map();
  /** On its way to the disk. */
  #batch: readonly Step[] | undefined;

  get content(): Content {
    return this.#content;
  }

  get appliedIndex(): number {
    const meta = this.#content.get(nameOf(metaKey));
    const decoded = meta === undefined ? undefined : decodeMeta(meta.value);
    return decoded === undefined || 'version' in decoded ? 0 : decoded.appliedIndex;
  }

  async open(devices: HeapDevices): Promise<StateDatabase> {
    const level = new MemoryLevel<Buffer, Buffer>({ keyEncoding: 'buffer', valueEncoding: 'buffer' });
    await level.open();
    await level.batch([...this.#content.values()].map(({ key, value }) => ({ type: 'put' as const, key, value })));
    const database = {
      location: 'memory',
      getSync: (key: Buffer) => level.getSync(key),
      iterator: (options: object) => level.iterator(options),
      batch: async (steps: Step[]) => {
        this.#batch = steps;
        await devices.wait();
        await level.batch(steps);
        this.#land();
      },
      close: () => level.close(),
    };
    return { level: database as unknown as StateDatabase['level'], syncNames: async () => undefined, close: () => level.close() };
  }

  crash({ lands }: { readonly lands: boolean }): void {
    if (lands) this.#land();
    this.#batch = undefined;
  }

  /** Another state takes the place of this one. */
  replace(content: Content): void {
    this.#content = content;
  }

  #land(): void {
    const content = new Map(this.#content);
    for (const step of this.#batch ?? []) {
      if (step.type === 'put') content.set(nameOf(step.key), step);
      else content.delete(nameOf(step.key));
    }
    this.#content = content;
    this.#batch = undefined;
  }
}

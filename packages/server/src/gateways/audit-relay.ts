import type { AuditWriter, EntryType } from '@transitd/audit';
import { reasonOf } from '@transitd/process';
import type { FromGateway } from './messages.ts';

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The audit devices as a gateway uses them. The main thread writes the entries, because each device has a single hash chain. */
export class AuditRelay implements AuditWriter {
  readonly names: readonly string[];
  readonly #post: (message: FromGateway) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(names: readonly string[], post: (message: FromGateway) => void) {
    this.names = names;
    this.#post = post;
  }

  /** @throws Error if no device has written the entry */
  write(type: EntryType, entryFor: (device: string) => string): Promise<void> {
    this.#lastId += 1;
    const id = this.#lastId;
    const entries = Object.fromEntries(this.names.map((device) => [device, entryFor(device)]));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind: 'audit', id, type, entries });
    });
  }

  buildFailed(error: unknown): void {
    this.#post({ kind: 'unaudited', reason: reasonOf(error) });
  }

  /** Handles the main thread's answer. */
  audited(id: number, failure: string | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failure === undefined) waiting?.resolve();
    else waiting?.reject(new Error(failure));
  }
}

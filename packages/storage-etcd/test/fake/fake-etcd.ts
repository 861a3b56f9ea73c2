// A client of the fake server whose answers get lost, arrive late, and whose watches are cut and fragmented.
import type { Etcd, EtcdEvent, EtcdTxn, EtcdTxnAnswer, EtcdWatchMessage } from '../../src/etcd.ts';
import { EtcdError } from '../../src/etcd.ts';
import type { FakeServer } from './fake-server.ts';

/** The fate of a transaction. `late`: the client gets no answer, and the server executes it when {@link FakeEtcd.deliver} is called. */
export type Fate = 'answered' | 'answer lost' | 'request lost' | 'late';

export interface Faults {
  readonly fateOf?: (txn: EtcdTxn) => Fate;
  /** Number of events in the next fragment. */
  readonly fragment?: () => number;
  /** Whether the watch is cut before this message. */
  readonly cuts?: () => boolean;
  /** While true, the watch neither shows anything nor breaks. */
  readonly holdsWatch?: () => boolean;
  /** Whether the watch leaves this event out, against etcd's promise. */
  readonly loses?: (event: EtcdEvent) => boolean;
}

export class FakeEtcd implements Etcd {
  readonly server: FakeServer;
  faults: Faults;
  readonly #late: EtcdTxn[] = [];
  readonly #closing = new AbortController();
  /** While true every call fails as without a network. */
  isCutOff = false;
  /** While true no call is answered, and no watch shows anything. */
  isFrozen = false;

  constructor(server: FakeServer, faults: Faults = {}) {
    this.server = server;
    this.faults = faults;
  }

  /** Lets the server execute the transactions that are late. */
  deliver(): void {
    for (const txn of this.#late.splice(0)) {
      try {
        this.server.txn(txn);
      } catch {
        // Nobody waits for the answer.
      }
    }
  }

  get lateCount(): number {
    return this.#late.length;
  }

  async range({ key, end, limit, revision }: Parameters<Etcd['range']>[0]): ReturnType<Etcd['range']> {
    await this.#travel();
    const rows = this.server.rows(key, end, revision);
    const more = limit !== undefined && limit > 0 && rows.length > limit;
    return { revision: this.server.revision, rows: more ? rows.slice(0, limit) : rows, more };
  }

  async txn(txn: EtcdTxn): Promise<EtcdTxnAnswer> {
    await this.#travel();
    const fate = this.faults.fateOf?.(txn) ?? 'answered';
    if (fate === 'late') this.#late.push(txn);
    const answer = fate === 'answered' || fate === 'answer lost' ? this.server.txn(txn) : undefined;
    await turn();
    if (fate !== 'answered' || answer === undefined) throw new EtcdError('unknown', `the connection broke: ${fate}`);
    return answer;
  }

  async *watch(request: Parameters<Etcd['watch']>[0], signal: AbortSignal): AsyncGenerator<EtcdWatchMessage> {
    await this.#travel();
    const { server } = this;
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    yield { kind: 'created', revision: server.revision };
    let next = request.startRevision;
    while (!ends.aborted) {
      if (next <= server.compacted && next <= server.revision) {
        yield { kind: 'canceled', compactRevision: server.compacted, reason: '' };
        return;
      }
      if (this.isFrozen) {
        await turn();
        continue;
      }
      if (this.isCutOff || this.faults.cuts?.()) throw new EtcdError('unknown', 'the watch was cut');
      if (this.faults.holdsWatch?.()) {
        await this.#change(ends);
        continue;
      }
      const revisions = server.events(next, request.key, request.end);
      const last = revisions.at(-1);
      if (last === undefined) {
        await this.#change(ends);
        continue;
      }
      const events = revisions.flatMap((one) => one.events).filter((event) => !this.faults.loses?.(event));
      for (let at = 0; at < events.length; ) {
        const count = Math.max(1, this.faults.fragment?.() ?? events.length);
        yield { kind: 'events', fragment: at + count < events.length, events: events.slice(at, at + count) };
        at += count;
        if (ends.aborted) return;
        if (at < events.length && this.faults.cuts?.()) throw new EtcdError('unknown', 'the watch was cut between fragments');
      }
      next = last.revision + 1;
    }
  }

  async grantLease(ttlSeconds: number): ReturnType<Etcd['grantLease']> {
    await this.#travel();
    return { id: this.server.grantLease(), ttlSeconds };
  }

  async keepAlive(id: bigint): Promise<number> {
    await this.#travel();
    return this.server.leases.has(id) ? 10 : 0;
  }

  async revokeLease(id: bigint): Promise<void> {
    await this.#travel();
    this.server.endLease(id);
  }

  close(): void {
    this.#closing.abort();
  }

  async #travel(): Promise<void> {
    await turn();
    while (this.isFrozen && !this.#closing.signal.aborted) await turn();
    if (this.isCutOff || this.#closing.signal.aborted) throw new EtcdError('unknown', 'etcd cannot be reached');
  }

  async #change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.server.listeners.add(resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    this.server.listeners.delete(resolve);
    await turn();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

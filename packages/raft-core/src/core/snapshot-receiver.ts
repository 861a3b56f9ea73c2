import { invariant } from '../invariant.ts';
import type { LogView } from '../log/log-view.ts';
import type { LogIndex, NodeId, SnapshotMeta, Term } from '../types.ts';

export interface Offer {
  readonly from: NodeId;
  readonly term: Term;
  readonly session: number;
  readonly meta: SnapshotMeta;
}

/**
 * Decides about a snapshot: `committed` if everything in it is committed here; `held` if the log has the snapshot's last entry, so the log
 * keeps its tail; otherwise `needed`: the snapshot has to replace the log.
 */
export function judgeSnapshot(log: LogView, commitIndex: LogIndex, meta: SnapshotMeta): 'committed' | 'held' | 'needed' {
  if (meta.index <= commitIndex) return 'committed';
  return log.holds(meta) ? 'held' : 'needed';
}

/** A follower's side of a snapshot: offered, fetched next to the current state, then installed in its place. */
export class SnapshotReceiver {
  /** The offer whose stream is under way. */
  #fetching: Offer | undefined;
  #toFetch: Offer | undefined;
  #toInstall: SnapshotMeta | undefined;
  /** Number of the batch that ends the installation once it is durable. */
  #installingSeq: number | undefined;

  get hasWork(): boolean {
    return this.#toFetch !== undefined || this.#toInstall !== undefined;
  }

  /** Notes an offer. One stream runs at a time; a repeated offer only asks for progress. */
  offered(offer: Offer): void {
    const isInstalling = this.#toInstall !== undefined || this.#installingSeq !== undefined;
    if (this.#fetching !== undefined || isInstalling) return;
    this.#fetching = offer;
    this.#toFetch = offer;
  }

  /** Notes the end of the stream. Returns the offer that it belongs to. */
  received(): Offer {
    const offer = this.#fetching;
    invariant(
      offer !== undefined && this.#toFetch === undefined,
      'the end of a snapshot is reported only while one is fetched',
      {},
    );
    this.#fetching = undefined;
    return offer;
  }

  install(meta: SnapshotMeta): void {
    this.#toInstall = meta;
  }

  take(seq: number): {
    readonly snapshot?: SnapshotMeta;
    readonly fetch?: { readonly from: NodeId; readonly meta: SnapshotMeta };
  } {
    const [snapshot, offer] = [this.#toInstall, this.#toFetch];
    this.#toInstall = undefined;
    this.#toFetch = undefined;
    if (snapshot !== undefined) this.#installingSeq = seq;
    return {
      ...(snapshot === undefined ? {} : { snapshot }),
      ...(offer === undefined ? {} : { fetch: { from: offer.from, meta: offer.meta } }),
    };
  }

  /** Returns true if this ends an installation. */
  persisted(seq: number): boolean {
    if (this.#installingSeq === undefined || seq < this.#installingSeq) return false;
    this.#installingSeq = undefined;
    return true;
  }
}

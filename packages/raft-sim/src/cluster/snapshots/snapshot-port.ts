import type { Done, NodeId, SnapshotMeta, SnapshotSource, SnapshotTransfer } from '@transitd/raft-core';
import type { SimClock } from '../../fakes/sim-clock.ts';
import type { NodeProcess } from '../process/process.ts';
import type { StateImage } from '../storage/storage.ts';

/** Another node, as a stream sees it. */
export interface SnapshotPeer {
  /** Returns the durable state of that node and its description; undefined while it does not run. */
  open(): { readonly image: StateImage; readonly meta: SnapshotMeta } | undefined;
  /** Returns whether the incarnation that answered still runs. */
  isSame(): boolean;
  failed(reader: NodeId): void;
}

export interface SnapshotPortOptions {
  readonly id: NodeId;
  readonly world: SimClock;
  readonly process: NodeProcess;
  /** Returns the incarnation that would answer now. */
  peer(id: NodeId): SnapshotPeer | undefined;
  /** Returns the delay of the next piece from that peer, or undefined if the stream breaks. */
  pieceDelayMs(from: NodeId): number | undefined;
  syncMs(): number;
  /** Called just before the node learns that this snapshot is fetched. */
  arrives(meta: SnapshotMeta): void;
  /** Called before an installation begins. */
  begins(): void;
  /** Installs in one atomic step: the log begins after `meta`, the state is `image`. */
  install(snapshot: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void;
}

const BREAK_MS = 500;

/** Streams states between simulated nodes, piece by piece; a fetched state is lost with the process unless it is installed. */
export class SnapshotPort implements SnapshotTransfer {
  readonly #options: SnapshotPortOptions;
  #source: SnapshotSource | undefined;
  #fetched: { readonly meta: SnapshotMeta; readonly image: StateImage } | undefined;
  isInstalling = false;
  #fetching = 0;

  constructor(options: SnapshotPortOptions) {
    this.#options = options;
  }

  get isFetching(): boolean {
    return this.#fetching > 0;
  }
  get source(): SnapshotSource | undefined {
    return this.#source;
  }

  serve(source: SnapshotSource): void {
    this.#source = source;
  }

  fetch(
    { from, meta }: { readonly from: NodeId; readonly meta: SnapshotMeta },
    done: (received: SnapshotMeta | undefined) => void,
  ): () => void {
    const { id, world, process, syncMs } = this.#options;
    let given = false;
    this.#fetching += 1;
    const end = (): boolean => {
      if (given) return false;
      given = true;
      this.#fetching -= 1;
      return true;
    };
    const answer = (received: SnapshotMeta | undefined): void => {
      if (end()) done(received);
    };
    const broken = (peer: SnapshotPeer | undefined): void => {
      world.after(BREAK_MS, () => {
        process.run(() => answer(undefined));
        peer?.failed(id);
      });
    };
    const next = (delivered: () => void, peer: SnapshotPeer | undefined): void => {
      const delayMs = this.#options.pieceDelayMs(from);
      if (delayMs === undefined) broken(peer);
      else world.after(delayMs, delivered);
    };
    next(() => {
      const peer = this.#options.peer(from);
      const opened = peer?.open();
      if (peer === undefined || opened === undefined || opened.meta.index < meta.index) {
        broken(peer);
        return;
      }
      let left = opened.image.pieces;
      const piece = (): void => {
        left -= 1;
        if (given || !process.isAlive) return;
        if (!peer.isSame()) broken(undefined);
        else if (left > 0) next(piece, peer);
        else {
          process.after(syncMs(), () => {
            if (!given) {
              this.#fetched = opened;
              this.#options.arrives(opened.meta);
            }
            answer(opened.meta);
          });
        }
      };
      next(piece, peer);
    }, undefined);
    return () => void end();
  }

  install(meta: SnapshotMeta, done: Done): void {
    const fetched = this.#fetched;
    if (fetched?.meta.index !== meta.index) throw new Error(`asked to install ${meta.index}, have ${fetched?.meta.index}`);
    this.isInstalling = true;
    this.#options.begins();
    this.#options.process.after(this.#options.syncMs(), () => {
      this.#options.install({ meta, image: fetched.image }, (error) => {
        this.isInstalling = false;
        this.#fetched = undefined;
        done(error);
      });
    });
  }

  discard(): void {
    this.#fetched = undefined;
  }
}

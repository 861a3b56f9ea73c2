import type { Ready } from '../core/contract/raft-core.ts';
import { invariant } from '../invariant.ts';
import type { SnapshotTransfer } from '../ports.ts';
import type { SnapshotMeta } from '../types.ts';

/**
 * Snapshots on a follower. One stream runs at a time, in parallel with everything else. The installation then waits until everything else
 * has ended, and the driver begins nothing new before the installation.
 */
export class SnapshotWork {
  readonly #port: SnapshotTransfer | undefined;
  #giveUp: (() => void) | undefined;
  /** The batch whose snapshot is to be installed. */
  #waiting: Ready | undefined;
  #installing = false;

  constructor(port: SnapshotTransfer | undefined) {
    this.#port = port;
  }

  /** Whether a snapshot waits to be installed or is being installed. */
  get isPending(): boolean {
    return this.#waiting !== undefined || this.#installing;
  }
  get isInstalling(): boolean {
    return this.#installing;
  }

  fetch(offer: NonNullable<Ready['fetch']>, received: (meta: SnapshotMeta | undefined) => void): void {
    this.#giveUp = this.#snapshots.fetch(offer, (meta) => {
      this.#giveUp = undefined;
      received(meta);
    });
  }

  discard(): void {
    this.#snapshots.discard();
  }

  giveUp(): void {
    this.#giveUp?.();
    this.#giveUp = undefined;
  }

  wait(batch: Ready): void {
    this.#waiting = batch;
  }

  /** Begins the pending installation, if any; `installed` is called at its end with the batch to continue with. */
  begin(installed: (error: Error | undefined, note: () => void, snapshot: SnapshotMeta, batch: Ready) => void): void {
    const batch = this.#waiting;
    if (batch?.snapshot === undefined) return;
    const { snapshot } = batch;
    this.#waiting = undefined;
    this.#installing = true;
    const note = (): void => {
      this.#installing = false;
    };
    this.#snapshots.install(snapshot, (error) => installed(error, note, snapshot, batch));
  }

  get #snapshots(): SnapshotTransfer {
    invariant(this.#port !== undefined, 'only a node with peers handles snapshots', {});
    return this.#port;
  }
}

import type { NodeId } from '@transitd/raft-core';

/** One run of a node on its disk, as the node names it to its peers. */
export interface Run {
  /** Raised durably at each start. */
  readonly incarnation: number;
  /** Drawn at each start: 32 hexadecimal digits. */
  readonly nonce: string;
}

/** Header in which a node names its run on the cluster port. */
export const incarnationHeader = 'x-transitd-run';

export const writeIncarnation = ({ incarnation, nonce }: Run): string => `${incarnation}.${nonce}`;

export function readIncarnation(text: string): Run | undefined {
  const [, incarnation, nonce] = /^([1-9]\d{0,14})\.([0-9a-f]{32})$/.exec(text) ?? [];
  return incarnation === undefined || nonce === undefined ? undefined : { incarnation: Number(incarnation), nonce };
}

/**
 * What a peer's run is to those that were met before. `overtaken`: a later run has been here, or another one of the same number: the disk was
 * set back to an earlier state or copied, and what it acknowledged may be missing. `early`: the run before it is still connected.
 */
export type IncarnationVerdict = 'in order' | 'overtaken' | 'early';

/** The newest run of each peer that has connected to this process. */
export class Incarnations {
  readonly #newest = new Map<NodeId, Run>();

  /** @param isConnected - whether the newest run is */
  judge(peer: NodeId, run: Run, isConnected: boolean): IncarnationVerdict {
    const newest = this.#newest.get(peer);
    if (newest === undefined || run.nonce === newest.nonce) return 'in order';
    if (run.incarnation <= newest.incarnation) return 'overtaken';
    return isConnected ? 'early' : 'in order';
  }

  connected(peer: NodeId, run: Run): void {
    this.#newest.set(peer, run);
  }
}

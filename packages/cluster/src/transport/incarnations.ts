import type { NodeId } from '@transitd/raft-core';

/** One run of a node's process on its data directory, as the node names it to its peers. */
export interface Incarnation {
  /** Raised durably at each start. */
  readonly number: number;
  /** Drawn at each start: 32 hexadecimal digits. */
  readonly nonce: string;
}

/** Header in which a node names its incarnation on the cluster port. */
export const incarnationHeader = 'x-transitd-run';

export const writeIncarnation = ({ number, nonce }: Incarnation): string => `${number}.${nonce}`;

export function readIncarnation(text: string): Incarnation | undefined {
  const [, number, nonce] = /^([1-9]\d{0,14})\.([0-9a-f]{32})$/.exec(text) ?? [];
  return number === undefined || nonce === undefined ? undefined : { number: Number(number), nonce };
}

/**
 * How an incarnation of a peer relates to the incarnations that connected before. `overtaken`: a later incarnation connected before, or
 * another incarnation with the same number. Then the disk of the peer was rolled back or copied, so entries that the peer acknowledged may
 * be missing. `early`: the incarnation before it is still connected.
 */
export type IncarnationVerdict = 'in order' | 'overtaken' | 'early';

/** The newest incarnation of each peer that has connected to this process. */
export class Incarnations {
  readonly #newest = new Map<NodeId, Incarnation>();

  /** @param isConnected - whether the newest incarnation is connected now */
  judge(peer: NodeId, incarnation: Incarnation, isConnected: boolean): IncarnationVerdict {
    const newest = this.#newest.get(peer);
    if (newest === undefined || incarnation.nonce === newest.nonce) return 'in order';
    if (incarnation.number <= newest.number) return 'overtaken';
    return isConnected ? 'early' : 'in order';
  }

  connected(peer: NodeId, incarnation: Incarnation): void {
    this.#newest.set(peer, incarnation);
  }
}

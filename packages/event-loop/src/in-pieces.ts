import { nextTurn } from './next-turn.ts';

/** Bytes of one piece: hashing them takes a few milliseconds with the slowest hash. */
const pieceBytes = 1024 * 1024;

/**
 * Calls `step` with one piece of `bytes` after the other and yields to the event loop between them. Bytes that fit into one piece
 * are handled at once; the result is then undefined, so that the caller need not await it.
 */
export function inPieces(bytes: Uint8Array, step: (piece: Uint8Array) => void): void | Promise<void> {
  if (bytes.length > pieceBytes) return yielding(bytes, step);
  step(bytes);
}

async function yielding(bytes: Uint8Array, step: (piece: Uint8Array) => void): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (at > 0) await nextTurn();
    step(bytes.subarray(at, at + pieceBytes));
  }
}

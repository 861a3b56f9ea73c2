import { nextTurn } from './next-turn.ts';

/** What is worked on before other requests get their turn: a few milliseconds of the slowest hash. */
const turnBytes = 1024 * 1024;

/** Hands `bytes` to `step` in pieces, and between them lets other requests be answered; short ones at once, without a promise. */
export function inTurns(bytes: Uint8Array, step: (piece: Uint8Array) => void): void | Promise<void> {
  if (bytes.length > turnBytes) return piecewise(bytes, step);
  step(bytes);
}

async function piecewise(bytes: Uint8Array, step: (piece: Uint8Array) => void): Promise<void> {
  for (let at = 0; at < bytes.length; at += turnBytes) {
    if (at > 0) await nextTurn();
    step(bytes.subarray(at, at + turnBytes));
  }
}

import { CodecError, decodeBatch } from '@transitd/raft-core';
import type { SimRandom } from '../../src/fakes/sim-random.ts';

/**
 * Damages one of the frames like a broken or hostile peer, and decodes it: bytes changed, the end cut off or extended, a piece of another
 * frame in the middle.
 * @throws every error of the decoder other than a CodecError; an error if the decoded entries are not within the frame
 */
export function mutated(frames: readonly Uint8Array[], random: SimRandom): void {
  const pick = (): Uint8Array => frames[random.below(frames.length)] ?? new Uint8Array(0);
  let frame = Uint8Array.from(pick());
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const at = random.below(frame.length + 1);
    const kind = random.below(8);
    if (kind === 0) frame = frame.slice(0, at);
    else if (kind === 1) frame = Uint8Array.of(...frame, ...new Uint8Array(random.below(20)));
    else if (kind === 2) frame.set(pick().subarray(0, Math.max(0, frame.length - at)), Math.min(at, frame.length));
    else if (kind === 3) frame.fill(0xff, at, at + 1 + random.below(6));
    else if (at < frame.length) frame[at] = kind < 6 ? random.below(256) : (frame[at] ?? 0) ^ (1 << random.below(8));
  }
  try {
    for (const message of decodeBatch(frame)) {
      if (message.type !== 'Append') continue;
      for (const { data } of message.entries) {
        if (data.length > 0 && data.buffer !== frame.buffer) throw new Error('the data of an entry was copied');
      }
    }
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
  }
}

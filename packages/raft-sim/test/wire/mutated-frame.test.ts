import { encodeMessage } from '@transitd/raft-core';
import fc from 'fast-check';
import { message } from '../../../raft-core/test/wire/arbitrary-message.ts';
import { SimRandom } from '../../src/fakes/sim-random.ts';
import { mutated } from './mutated-frame.ts';

describe('decodeBatch', () => {
  it('answers corrupted frames with a CodecError or a message, and nothing else', () => {
    const seed = Number(process.env['SIM_SEED'] ?? 1);
    const random = new SimRandom(seed);
    const frames = fc.sample(message, { numRuns: 300, seed }).map((said) => encodeMessage(said));
    for (let i = 0; i < 100_000; i++) mutated(frames, random);
  });
});

import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { inPieces } from '../src/in-pieces.ts';

const mebibyte = 1024 * 1024;

describe('inPieces', () => {
  it('handles up to one mebibyte at once, without a promise', () => {
    const pieces: number[] = [];
    expect(inPieces(new Uint8Array(mebibyte), ({ length }) => pieces.push(length))).to.equal(undefined);
    expect(pieces).to.deep.equal([mebibyte]);
  });

  it('passes all bytes in order, and yields to the event loop between pieces', async () => {
    const bytes = Uint8Array.from({ length: 3 * mebibyte + 5 }, (_, at) => at % 251);
    const hash = createHash('sha256');
    let pieces = 0;
    const done = inPieces(bytes, (piece) => {
      pieces += 1;
      hash.update(piece);
    });
    expect(pieces).to.equal(1);
    await turn();
    expect(pieces).to.be.at.most(2);
    await done;
    expect(pieces).to.equal(4);
    expect(hash.digest('hex')).to.equal(createHash('sha256').update(bytes).digest('hex'));
  });
});

import { expect } from 'chai';
import { RecentReads } from '../../src/state/recent-reads.ts';

const record = (bytes: number) => ({ value: Buffer.alloc(bytes), revision: 1 });

/** Counts the look-ups that were not answered from memory. */
function newReads() {
  const recent = new RecentReads();
  let reads = 0;
  const find = (name: string, bytes: number | 'absent' = 1) =>
    recent.find(name, () => {
      reads += 1;
      return bytes === 'absent' ? undefined : record(bytes);
    });
  return { recent, find, reads: () => reads };
}

describe('recent reads', () => {
  it('answer a second look-up, also of a record that does not exist', () => {
    const { find, reads } = newReads();
    const found = find('a');
    expect(find('a')).to.equal(found);
    expect(find('gone', 'absent')).to.equal(undefined);
    expect(find('gone', 1)).to.equal(undefined);
    expect(reads()).to.equal(2);
  });

  it('forget a name, also one that was looked up long ago', () => {
    const { recent, find, reads } = newReads();
    find('a', 'absent');
    for (let i = 0; i < 1500; i++) find(`k${i}`);
    recent.forget('a');
    expect(find('a')).to.deep.equal(record(1));
    expect(reads()).to.equal(1502);
  });

  it('are at most 2,048, and keep the ones that are looked up again', () => {
    const { find, reads } = newReads();
    for (let i = 0; i < 5000; i++) {
      find('often');
      find(`k${i}`);
    }
    expect(reads()).to.equal(5001);
    for (let i = 0; i < 5000; i++) find(`k${i}`);
    expect(reads()).to.equal(10_001);
  });

  it('do not keep long values', () => {
    const { find, reads } = newReads();
    for (let i = 0; i < 2; i++) find('long', 4097);
    for (let i = 0; i < 2; i++) find('short', 4096);
    expect(reads()).to.equal(3);
  });
});

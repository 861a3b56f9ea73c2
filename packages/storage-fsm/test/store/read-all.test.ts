import { expect } from 'chai';
import { memoryStore } from '../../src/store/memory-store.ts';
import { pageRecordsMax } from '../../src/store/range.ts';
import { namesBelow, pagesBelow } from '../../src/store/read-all.ts';

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at).padStart(5, '0'));

describe('reading all records below a prefix', () => {
  const names = numbered(2 * pageRecordsMax + 1);
  const store = memoryStore();
  before(async () => {
    const paths = [...names.map((name) => `a/${name}`), 'a', 'b/0'];
    await store.commit({ conditions: [], writes: paths.map((path) => ({ path, value: Buffer.from(path) })) });
  });

  it('returns the names of several pages in order, and no others', async () => {
    expect(await namesBelow(store, 'a/')).to.deep.equal(names);
    expect(await namesBelow(store, 'c/')).to.deep.equal([]);
  });

  it('begins after a path', async () => {
    const pages: string[][] = [];
    for await (const records of pagesBelow(store, { prefix: 'a/', after: `a/${names[pageRecordsMax]}` }))
      pages.push(records.map(({ path }) => path.slice(2)));
    expect(pages.flat()).to.deep.equal(names.slice(pageRecordsMax + 1));
  });

  it('reads no further page when its caller stops', async () => {
    let reads = 0;
    const counted = {
      range: (query: Parameters<typeof store.range>[0]) => {
        reads += 1;
        return store.range(query);
      },
    };
    for await (const records of pagesBelow(counted, { prefix: 'a/' })) {
      expect(records).to.have.lengthOf(pageRecordsMax);
      break;
    }
    expect(reads).to.equal(1);
  });
});

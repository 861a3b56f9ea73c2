import { expect } from 'chai';
import { TextCache } from '../src/text-cache.ts';

describe('cached strings', () => {
  const made: string[] = [];
  const get = (texts: TextCache, key: string, length = 10): Promise<string> =>
    texts.get(key, async () => {
      made.push(key);
      return key.repeat(length);
    });
  beforeEach(() => made.splice(0));

  it('are made once, also for concurrent callers', async () => {
    const texts = new TextCache({ charactersMax: 100 });
    expect(await Promise.all([get(texts, 'a'), get(texts, 'a'), get(texts, 'b')])).to.deep.equal([
      'a'.repeat(10),
      'a'.repeat(10),
      'b'.repeat(10),
    ]);
    await get(texts, 'a');
    expect(made).to.deep.equal(['a', 'b']);
  });

  it('are evicted to make room for others, the least recently used first', async () => {
    const texts = new TextCache({ charactersMax: 30 });
    for (const key of 'abcada') await get(texts, key);
    expect(made.join('')).to.equal('abcd');
    await get(texts, 'b');
    expect(made.join('')).to.equal('abcdb');
  });

  it('do not include strings that are too long: they are made each time and evict nothing', async () => {
    const texts = new TextCache({ charactersMax: 30 });
    for (const [key, length] of [
      ['a', 10],
      ['z', 31],
      ['z', 31],
      ['a', 10],
    ] as const)
      await get(texts, key, length);
    expect(made.join('')).to.equal('azz');
  });

  it('are made again for the next caller if making them failed', async () => {
    const texts = new TextCache({ charactersMax: 30 });
    const failed = texts.get('a', () => Promise.reject(new Error('broken')));
    expect(await failed.catch(({ message }: Error) => message)).to.equal('broken');
    expect(await get(texts, 'a', 3)).to.equal('aaa');
  });
});

import { expect } from 'chai';
import { TextCache } from '../src/text-cache.ts';

describe('kept texts', () => {
  const made: string[] = [];
  const get = (texts: TextCache, key: string, length = 10): Promise<string> =>
    texts.get(key, async () => {
      made.push(key);
      return key.repeat(length);
    });
  beforeEach(() => made.splice(0));

  it('are made once, also for those who ask while they are made', async () => {
    const texts = new TextCache({ charactersMax: 100 });
    expect(await Promise.all([get(texts, 'a'), get(texts, 'a'), get(texts, 'b')])).to.deep.equal([
      'a'.repeat(10),
      'a'.repeat(10),
      'b'.repeat(10),
    ]);
    await get(texts, 'a');
    expect(made).to.deep.equal(['a', 'b']);
  });

  it('make room for others: the one that was asked for longest ago goes first', async () => {
    const texts = new TextCache({ charactersMax: 30 });
    for (const key of 'abcada') await get(texts, key);
    expect(made.join('')).to.equal('abcd');
    await get(texts, 'b');
    expect(made.join('')).to.equal('abcdb');
  });

  it('that are too long are made each time, and drive out nothing', async () => {
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

  it('that could not be made are made for the next who asks', async () => {
    const texts = new TextCache({ charactersMax: 30 });
    const failed = texts.get('a', () => Promise.reject(new Error('broken')));
    expect(await failed.catch(({ message }: Error) => message)).to.equal('broken');
    expect(await get(texts, 'a', 3)).to.equal('aaa');
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { canonicalUrl } from '../../src/values/url.ts';

describe('canonicalUrl', () => {
  it('is the same for all spellings of a URL', () => {
    const encoded = (text: string, picked: readonly boolean[]): string =>
      [...text].map((letter, at) => (picked[at] === true ? `%${letter.charCodeAt(0).toString(16)}` : letter)).join('');
    const word = fc.stringMatching(/^[a-z0-9_-]{1,12}$/);
    fc.assert(
      fc.property(word, fc.array(fc.boolean(), { maxLength: 12 }), fc.constantFrom('', ':443'), (path, picked, port) => {
        const written = `HTTPS://user@Keys.Example.${port}/a/../${encoded(path, picked)}?q=${encoded(path, picked)}#fragment`;
        expect(canonicalUrl(written)).to.equal(`https://keys.example/${path}?q=${path}`);
      }),
    );
  });

  for (const [one, other] of [
    ['https://a/', 'https://b/'],
    ['https://a/', 'http://a/'],
    ['https://a/x%2fy', 'https://a/x/y'],
    ['https://a:8443/', 'https://a/'],
    ['https://a/?x', 'https://a/?y'],
  ] as const)
    it(`differs for ${one} and ${other}`, () => {
      expect(canonicalUrl(one)).to.not.equal(canonicalUrl(other));
    });

  it('is undefined for a text that is not a URL', () => {
    expect(canonicalUrl('keys.example')).to.equal(undefined);
  });
});

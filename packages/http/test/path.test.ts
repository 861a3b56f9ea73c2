import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../test/code-points.ts';
import { parsePath, targetCharsMax } from '../src/path.ts';
import { RequestError, type RequestErrorCode } from '../src/reply/request-error.ts';

const codeOf = (target: string): RequestErrorCode | 'accepted' => {
  try {
    parsePath(target);
    return 'accepted';
  } catch (error) {
    if (error instanceof RequestError) return error.code;
    throw error;
  }
};

describe('parsePath', () => {
  for (const { target, path, trailingSlash = false } of [
    { target: '/v1/sys/health', path: 'sys/health' },
    { target: '/v1/a', path: 'a' },
    { target: '/v1/transit/keys/', path: 'transit/keys', trailingSlash: true },
    { target: '/v1/transit/keys/?list=true', path: 'transit/keys', trailingSlash: true },
    { target: '/v1/transit/keys/a.b-c_d', path: 'transit/keys/a.b-c_d' },
    { target: '/v1/transit/keys/...', path: 'transit/keys/...' },
    { target: '/v1/transit/keys/.a', path: 'transit/keys/.a' },
    { target: '/v1/transit/keys/a..', path: 'transit/keys/a..' },
    { target: '/v1/transit/keys/..%41', path: 'transit/keys/..A' },
    { target: '/v1/transit/keys/a%20b', path: 'transit/keys/a b' },
    { target: '/v1/transit/keys/%C3%BC', path: 'transit/keys/ü' },
    { target: '/v1/transit/keys/%F0%9F%94%91', path: 'transit/keys/🔑' },
    { target: '/v1/%74ransit/keys', path: 'transit/keys' },
    { target: '/v1/transit/keys/%2541', path: 'transit/keys/%41' },
    { target: '/v1/transit/keys/%252e%252e', path: 'transit/keys/%2e%2e' },
    { target: '/v1/transit/keys/%252F', path: 'transit/keys/%2F' },
    { target: '/v1/transit/keys/a%3Fb', path: 'transit/keys/a?b' },
    { target: '/v1/transit/keys/a%23b', path: 'transit/keys/a#b' },
    { target: '/v1/transit/keys/a:b', path: 'transit/keys/a:b' },
    { target: '/v1/transit/keys/a;b', path: 'transit/keys/a;b' },
    { target: '/v1/transit/keys/..;', path: 'transit/keys/..;' },
    { target: '/v1/transit/keys/$&+,=@', path: 'transit/keys/$&+,=@' },
    { target: '/v1/transit/keys/%2B+', path: 'transit/keys/++' },
    { target: '/v1/v1/v1', path: 'v1/v1' },
    { target: '/v1/__proto__/constructor', path: '__proto__/constructor' },
    { target: '/v1/a?', path: 'a' },
    { target: '/v1/a?x=/../..//\\', path: 'a' },
    { target: '/v1/a?x=?y', path: 'a' },
  ]) {
    it(`reads ${target} as ${path}`, () => {
      const parsed = parsePath(target);
      expect(parsed.path).to.equal(path);
      expect(parsed.segments.join('/')).to.equal(path);
      expect(parsed.trailingSlash).to.equal(trailingSlash);
    });
  }

  for (const { target, code = 'invalid_path', because } of [
    { target: '/v1/a/./b', because: 'a . segment' },
    { target: '/v1/a/../b', because: 'a .. segment' },
    { target: '/v1/..', because: 'it ends with ..' },
    { target: '/v1/../v1/sys/health', because: '.. leaves the prefix' },
    { target: '/v1/a/.', because: 'it ends with .' },
    { target: '/v1/a/%2e/b', because: 'an encoded . segment' },
    { target: '/v1/a/%2e%2e/b', because: 'an encoded .. segment' },
    { target: '/v1/a/.%2E/b', because: 'a half encoded .. segment' },
    { target: '/v1/a/%2E./b', because: 'the other half' },
    { target: '/v1/a%2Fb', because: 'an encoded slash' },
    { target: '/v1/a%2fb', because: 'an encoded slash in lower case' },
    { target: '/v1/%2F', because: 'nothing but an encoded slash' },
    { target: '/v1/a%5Cb', because: 'an encoded backslash' },
    { target: '/v1/a\\b', because: 'a backslash' },
    { target: '/v1/a\\..\\b', because: 'backslashes as separators' },
    { target: '/v1//a', because: 'an empty first segment' },
    { target: '/v1/a//b', because: 'an empty segment' },
    { target: '/v1/a//', because: 'an empty segment before the trailing slash' },
    { target: '/v1//', because: 'nothing but empty segments' },
    { target: '//v1/a', because: 'one leading slash too many' },
    { target: '//host/v1/a', because: 'a path that some parsers take for a host' },
    { target: '/%761/a', because: 'an encoded prefix' },
    { target: '/v1%2Fa', because: 'an encoded slash within the prefix' },
    { target: '/./v1/a', because: 'a . segment before the prefix' },
    { target: '/x/../v1/a', because: 'a .. segment before the prefix' },
    { target: '/v1\\a', because: 'a backslash after the prefix' },
    { target: '/v1/a%00', because: 'an encoded NUL' },
    { target: '/v1/a%0a', because: 'an encoded line feed' },
    { target: '/v1/a%0d%0aX:%20y', because: 'an encoded header' },
    { target: '/v1/a%7F', because: 'an encoded DEL' },
    { target: '/v1/a%C2%85', because: 'an encoded C1 control character' },
    { target: '/v1/a%E2%80%A8', because: 'an encoded line separator' },
    { target: '/v1/a\u0000', because: 'a raw NUL' },
    { target: '/v1/a\tb', because: 'a raw tab' },
    { target: '/v1/a b', because: 'a raw blank' },
    { target: '/v1/a\u007f', because: 'a raw DEL' },
    { target: '/v1/a\u00fc', because: 'a raw byte above ASCII' },
    { target: '/v1/a%', because: 'a lone percent' },
    { target: '/v1/a%2', because: 'half an encoding' },
    { target: '/v1/a%zz', because: 'an encoding that is not hex' },
    { target: '/v1/a%u0041', because: 'an encoding of another kind' },
    { target: '/v1/a%FF', because: 'a byte that no UTF-8 has' },
    { target: '/v1/a%C0%AF', because: 'an overlong slash' },
    { target: '/v1/a%C0%AE%C0%AE', because: 'overlong dots' },
    { target: '/v1/a%ED%A0%80', because: 'an encoded surrogate' },
    { target: '/v1/a%C3', because: 'a cut off UTF-8 sequence' },
    { target: '/v1/a#b', because: 'a fragment' },
    { target: '/v1/a?x=%', because: 'a lone percent in the query' },
    { target: '/v1/a?x=%FF', because: 'a query that is not UTF-8' },
    { target: 'http://host/v1/a', because: 'absolute form' },
    { target: '*', because: 'asterisk form' },
    { target: 'host:443', because: 'authority form' },
    { target: 'v1/a', because: 'no slash in front' },
    { target: '', because: 'nothing at all' },
    { target: '/', code: 'not_found', because: 'nothing is served there' },
    { target: '/v1', code: 'not_found', because: 'nothing is served there' },
    { target: '/v1/', code: 'not_found', because: 'nothing is served there' },
    { target: '/v1/?list=true', code: 'not_found', because: 'nothing is served there' },
    { target: '/v2/sys/health', code: 'not_found', because: 'outside /v1/' },
    { target: '/V1/sys/health', code: 'not_found', because: 'case counts' },
    { target: '/v10/a', code: 'not_found', because: 'another prefix' },
    { target: '/favicon.ico', code: 'not_found', because: 'outside /v1/' },
    { target: `/v1/${'a'.repeat(targetCharsMax)}`, code: 'path_too_long', because: 'it is too long' },
    { target: `/v1/a?${'a'.repeat(targetCharsMax)}`, code: 'path_too_long', because: 'its query is too long' },
  ]) {
    it(`refuses ${JSON.stringify(target.slice(0, 40))} as ${code}: ${because}`, () => {
      expect(codeOf(target)).to.equal(code);
    });
  }

  it('accepts a target of exactly the maximum length', () => {
    expect(codeOf(`/v1/${'a'.repeat(targetCharsMax - 4)}`)).to.equal('accepted');
  });

  it('decodes the query once and returns the first value', () => {
    const { query } = parsePath('/v1/a?x=%252F&x=2&y=a+b&z');
    expect([query.get('x'), query.get('y'), query.get('z'), query.get('none')]).to.deep.equal(['%2F', 'a b', '', null]);
  });

  const odd = fc.constantFrom(
    '.',
    '..',
    '/',
    '\\',
    '%',
    '%2e',
    '%2E',
    '%2f',
    '%5c',
    '%00',
    '%25',
    '%C3%BC',
    '%C0%AF',
    '?',
    '#',
    'v1',
    'a',
    '\u0000',
    'ü',
    ';',
  );

  it('throws only RequestErrors', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: codePoint }),
          fc.array(odd).map((parts) => `/v1/${parts.join('')}`),
        ),
        (target) => {
          codeOf(target);
        },
      ),
    );
  });

  it('accepts only paths that every parser reads in the same way', () => {
    fc.assert(
      fc.property(fc.array(odd, { minLength: 1 }), (parts) => {
        const target = `/v1/${parts.join('')}`;
        if (codeOf(target) !== 'accepted') return;
        const { path, segments, trailingSlash } = parsePath(target);
        expect(segments).to.not.include.members(['.']).and.not.include.members(['..']).and.not.include.members(['']);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the test checks that none is left
        expect(path).to.not.match(/\\|[\u0000-\u001f\u007f]/);
        // The platform's URL parser, which normalizes and resolves paths, finds nothing to change.
        const { pathname } = new URL(target, 'http://node');
        expect(decodeURIComponent(pathname)).to.equal(`/v1/${path}${trailingSlash ? '/' : ''}`);
      }),
      { numRuns: 2_000 },
    );
  });

  it('decodes what was encoded', () => {
    const text = fc
      .string({ minLength: 1, maxLength: 40 })
      .filter((each) => !/[\\/]|^\.\.?$|\p{Cc}|\u2028|\u2029/u.test(each) && each.isWellFormed());
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), (segments) => {
        expect(parsePath(`/v1/${segments.map(encodeURIComponent).join('/')}`).segments).to.deep.equal(segments);
      }),
    );
  });
});

import { expect } from 'chai';
import { documentUrl, keySetUrl } from '../../src/providers/key-sources.ts';

const issuer = 'https://issuer.example/tenant';

describe('a discovery document', () => {
  it('is below its issuer, with or without a slash', () => {
    for (const slash of ['', '/'])
      expect(documentUrl(`${issuer}${slash}`)).to.equal(`${issuer}/.well-known/openid-configuration`);
  });

  it('names the key set', () => {
    const document = { issuer, jwks_uri: 'https://keys.example/set', scopes_supported: ['openid'] };
    expect(keySetUrl(JSON.stringify(document), issuer)).to.equal('https://keys.example/set');
  });

  for (const [what, document, why] of [
    ['another issuer', { issuer: 'https://other.example', jwks_uri: 'https://k/' }, 'has another issuer'],
    ['a slash more in the issuer', { issuer: `${issuer}/`, jwks_uri: 'https://k/' }, 'has another issuer'],
    ['other letters in the issuer', { issuer: issuer.toUpperCase(), jwks_uri: 'https://k/' }, 'has another issuer'],
    ['a list of issuers', { issuer: [issuer], jwks_uri: 'https://k/' }, 'has another issuer'],
    ['no issuer', { jwks_uri: 'https://k/' }, 'has another issuer'],
    ['no key set', { issuer }, 'has no jwks_uri with https'],
    ['a key set by http', { issuer, jwks_uri: 'http://k/' }, 'has no jwks_uri with https'],
    ['a key set in a file', { issuer, jwks_uri: 'file:///etc/passwd' }, 'has no jwks_uri with https'],
    ['a key set in the document', { issuer, jwks_uri: 'data:,{}' }, 'has no jwks_uri with https'],
    ['a key set at a path', { issuer, jwks_uri: '/keys' }, 'has no jwks_uri with https'],
    ['a number', { issuer, jwks_uri: 7 }, 'has no jwks_uri with https'],
    ['null', null, 'has another issuer'],
    ['a text', 'x', 'has another issuer'],
    ['deep nesting', `${'['.repeat(100)}${']'.repeat(100)}`, 'has'],
    ['very many values', `{"a":[${'0,'.repeat(10_000)}0]}`, 'has more than'],
    ['an HTML page', '<html></html>', 'is not JSON'],
    ['nothing', '', 'is not JSON'],
  ] as const)
    it(`is refused with ${what}`, () => {
      const text = typeof document === 'string' && document !== 'x' ? document : JSON.stringify(document);
      expect(() => keySetUrl(text, issuer)).to.throw(`the discovery document ${why}`);
    });
});

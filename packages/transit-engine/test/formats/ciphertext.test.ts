import { expect } from 'chai';
import fc from 'fast-check';
import { decodePayload, formatVersioned, parseCiphertext } from '../../src/formats/ciphertext.ts';
import { TransitError } from '../../src/values/errors.ts';

describe('parseCiphertext', () => {
  for (const [text, version, payload, because] of [
    ['svc:v1:AAAA', 1, 'AAAA', 'the usual form'],
    ['vault:v7:AAAA', 7, 'AAAA', 'data moves here unchanged'],
    ['acme:v2:AAAA', 2, 'AAAA', "the mount's own prefix"],
    ['svc:v0:AAAA', 1, 'AAAA', 'version 0 is read as 1'],
    ['svc:v007:AAAA', 7, 'AAAA', 'leading zeros'],
    ['svc:v+3:AAAA', 3, 'AAAA', 'a sign'],
    ['svc:v-1:AAAA', -1, 'AAAA', 'negative: below every minimum'],
    ['svc:v1:', 1, '', 'an empty payload is for the key to refuse'],
    ['svc:v1:A:B', 1, 'A:B', 'the payload ends with the text'],
  ] as const) {
    it(`reads ${text}: ${because}`, () => {
      expect(parseCiphertext(text, 'acme')).to.deep.equal({ version, payload });
    });
  }

  for (const [text, message] of [
    ['abc', 'invalid ciphertext: no prefix'],
    ['', 'invalid ciphertext: no prefix'],
    ['SVC:v1:AAAA', 'invalid ciphertext: no prefix'],
    ['svc:V1:AAAA', 'invalid ciphertext: no prefix'],
    ['svc:1:AAAA', 'invalid ciphertext: no prefix'],
    ['other:v1:AAAA', 'invalid ciphertext: no prefix'],
    [' svc:v1:AAAA', 'invalid ciphertext: no prefix'],
    ['svc:v1', 'invalid ciphertext: wrong number of fields'],
    ['svc:v', 'invalid ciphertext: wrong number of fields'],
    ['svc:v:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:vx:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:v1x:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:v1.0:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:v 1:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:v-:AAAA', 'invalid ciphertext: version number could not be decoded'],
    ['svc:v9223372036854775808:AAAA', 'invalid ciphertext: version number could not be decoded'],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}: ${message}`, () => {
      expect(() => parseCiphertext(text, 'svc')).to.throw(TransitError, message);
    });
  }

  it('reads what formatVersioned writes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.integer({ min: 1, max: 1e9 }), (bytes, version) => {
        const parsed = parseCiphertext(formatVersioned('svc', version, Buffer.from(bytes)), 'svc');
        expect(parsed.version).to.equal(version);
        expect([...decodePayload(parsed.payload)]).to.deep.equal([...bytes]);
      }),
    );
  });
});

describe('decodePayload', () => {
  it('has its own error text for invalid base64', () => {
    expect(() => decodePayload('!!')).to.throw(TransitError, 'invalid ciphertext: could not decode base64');
  });
});

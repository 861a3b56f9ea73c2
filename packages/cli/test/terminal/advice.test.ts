import { expect } from 'chai';
import { adviceForConnection, adviceForRefusal } from '../../src/terminal/advice.ts';

describe('the advice for a failed command', () => {
  for (const [message, address, advice] of [
    ['no answer from https://a: ERR_SSL_WRONG_VERSION_NUMBER', 'https://a', /use http:\/\//],
    ['no answer from http://a: read ECONNRESET', 'http://a', /use https:\/\//],
    ['no answer from https://a: read ECONNRESET', 'https://a', /^if the server asks .*--client-cert/],
    ['no answer from https://a: ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'https://a', /^the server asks .*--client-cert/],
    ['no answer from https://a: DEPTH_ZERO_SELF_SIGNED_CERT', 'https://a', /--ca-cert/],
    ['no answer from https://a: UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'https://a', /--ca-cert/],
    ['no answer from https://a: ERR_TLS_CERT_ALTNAME_INVALID', 'https://a', /does not name this host/],
    ['no answer from https://a: ECONNREFUSED', 'https://a', /nothing listens/],
    ['no answer from https://a: TimeoutError', 'https://a', /^$/],
  ] as const)
    it(`fits ${message}`, () => {
      expect(adviceForConnection(message, address)).to.match(advice);
    });

  it('names the command for a sealed and for a new node, and is silent about other refusals', () => {
    expect(adviceForRefusal({ status: 503, message: 'transitd is sealed' })).to.include('operator unseal');
    expect(adviceForRefusal({ status: 503, message: 'transitd is not initialized' })).to.include('operator init');
    const used = 'unless_used_within: uses are counted since yesterday only; nothing was changed';
    expect(adviceForRefusal({ status: 400, message: used })).to.include('--unless-used-within 0');
    expect(adviceForRefusal({ status: 400, message: 'Client sent an HTTP request to an HTTPS server.' })).to.include('https://');
    expect(adviceForRefusal({ status: 400, message: 'no such key version' })).to.equal('');
  });
});

import { expect } from 'chai';
import { mayRepeat, outcomeOf, verdictOfAnswer, verdictOfFailure, waitMs } from '../src/verdict.ts';

describe('the verdict about a failed request', () => {
  for (const { status, errors = [], retryAfterS, verdict, because } of [
    { status: 400, errors: ['bad'], verdict: 'final', because: 'a bad request stays bad' },
    { status: 403, errors: ['permission denied'], verdict: 'final', because: 'the token gets no more rights by a retry' },
    {
      status: 429,
      errors: ['rate limit quota exceeded'],
      retryAfterS: 3,
      verdict: 'final',
      because: 'the rate limit tells the caller to slow down',
    },
    { status: 412, errors: ['not reached'], retryAfterS: 1, verdict: 'again', because: 'a lagging node catches up' },
    {
      status: 400,
      errors: ['X-Service-Index belongs to another cluster'],
      verdict: 'again',
      because: 'the request is repeated without the index',
    },
    { status: 500, errors: ['internal error'], verdict: 'unknown', because: 'an internal error may come after the change' },
    { status: 501, errors: [], verdict: 'final', because: 'the node is not initialized' },
    { status: 502, errors: [], verdict: 'unknown', because: 'a proxy may have forwarded the request' },
    { status: 503, errors: ['no leader'], retryAfterS: 1, verdict: 'again', because: 'the server says that it was not done' },
    { status: 503, errors: ['transitd is sealed'], verdict: 'elsewhere', because: 'only another node can serve it' },
    { status: 503, errors: ['transitd is not initialized'], verdict: 'elsewhere', because: 'only another node can serve it' },
    { status: 503, errors: ['audit: …: nothing was done'], verdict: 'final', because: 'there is no Retry-After' },
    { status: 503, errors: ['audit: …: the request took effect, but …'], verdict: 'unknown', because: 'it was done' },
    {
      status: 503,
      errors: ['audit: …: … failed, and may have taken effect'],
      verdict: 'unknown',
      because: 'it may have been done',
    },
    { status: 503, errors: [], verdict: 'unknown', because: 'a proxy does not know whether it was done' },
    {
      status: 503,
      errors: [],
      retryAfterS: 1,
      verdict: 'unknown',
      because: 'a proxy may send Retry-After and still does not know',
    },
    {
      status: 503,
      errors: ['outcome unknown, …'],
      retryAfterS: 1,
      verdict: 'unknown',
      because: 'the text takes precedence over the header',
    },
    {
      status: 504,
      errors: ['outcome unknown, the change may still take effect: x'],
      verdict: 'unknown',
      because: 'the text says so',
    },
    { status: 504, errors: [], verdict: 'unknown', because: 'a proxy timed out' },
  ] as const)
    it(`${status} ${errors[0] ?? ''} is ${verdict}: ${because}`, () => {
      expect(verdictOfAnswer({ status, errors: [...errors], retryAfterS })).to.equal(verdict);
    });

  for (const { codes, verdict } of [
    { codes: ['ECONNREFUSED'], verdict: 'again' },
    { codes: ['ECONNREFUSED', 'ENETUNREACH'], verdict: 'again' },
    { codes: ['UND_ERR_CONNECT_TIMEOUT'], verdict: 'again' },
    { codes: ['ENOTFOUND'], verdict: 'elsewhere' },
    { codes: ['SELF_SIGNED_CERT_IN_CHAIN'], verdict: 'elsewhere' },
    { codes: ['CERT_HAS_EXPIRED'], verdict: 'elsewhere' },
    { codes: ['ECONNREFUSED', 'ECONNRESET'], verdict: 'unknown' },
    { codes: ['read EHOSTUNREACH'], verdict: 'unknown' },
    { codes: ['ECONNRESET'], verdict: 'unknown' },
    { codes: ['UND_ERR_SOCKET'], verdict: 'unknown' },
    { codes: [], verdict: 'unknown' },
  ] as const)
    it(`for a connection that ends with ${codes.join(' and ') || 'no code'} is ${verdict}`, () => {
      expect(verdictOfFailure(codes)).to.equal(verdict);
    });

  it('repeats requests that were not done; requests that may have been done only if that is safe', () => {
    const repeats = (repeatable: boolean) =>
      (['final', 'again', 'elsewhere', 'unknown'] as const).filter((verdict) => mayRepeat(verdict, { repeatable }));
    expect(repeats(false)).to.deep.equal(['again', 'elsewhere']);
    expect(repeats(true)).to.deep.equal(['again', 'elsewhere', 'unknown']);
    expect(outcomeOf('unknown')).to.equal('unknown');
    expect(outcomeOf('again')).to.equal('not_done');
  });

  it('waits as long as the server asks, or twice as long each round, at most 5 s', () => {
    expect([1, 2, 3, 9].map((round) => waitMs(round, undefined))).to.deep.equal([200, 400, 800, 5000]);
    expect([0, 1, 60].map((seconds) => waitMs(1, seconds))).to.deep.equal([0, 1000, 5000]);
  });
});

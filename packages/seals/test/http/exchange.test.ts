import { expect } from 'chai';
import { exchangeWith } from '../../src/http/exchange.ts';
import { type StubAnswer, stubProvider } from './stub-provider.ts';

describe('an exchange with a provider', () => {
  for (const { what, answer, says } of [
    { what: 'does not answer', answer: () => undefined, says: 'no answer within 0.05 s' },
    {
      what: 'sends its answer too slowly',
      answer: (res) => {
        res.writeHead(200).write('{');
        const timer = setInterval(() => res.write(' '), 5);
        res.on('close', () => clearInterval(timer));
      },
      says: 'no answer within 0.05 s',
    },
    {
      what: 'never ends its answer',
      answer: (res) => {
        const more = (): void => {
          if (res.destroyed) return;
          res.write('x'.repeat(16_384));
          setImmediate(more);
        };
        more();
      },
      says: 'its answer has more than 65536 bytes',
    },
    {
      what: 'switches protocols instead of answering',
      answer: (res) => res.writeHead(101, { connection: 'Upgrade', upgrade: 'other' }).flushHeaders(),
      says: 'the connection ended without an answer',
    },
  ] as readonly { what: string; answer: StubAnswer; says: string }[])
    it(`ends when the provider ${what}`, async () => {
      const provider = await stubProvider(() => answer);
      try {
        const deadlineMs = says.startsWith('no answer') ? 50 : 10_000;
        const exchange = exchangeWith(provider.address, { skipVerify: false }, deadlineMs);
        const error: unknown = await exchange({ method: 'GET', path: '/' }).catch((reason: unknown) => reason);
        expect(error).to.be.an('error').with.property('message', says);
      } finally {
        await provider.close();
      }
    });

  it('sends nothing to another host than that of the address', async () => {
    const [provider, other] = [await stubProvider(() => [200, {}]), await stubProvider(() => [200, {}])];
    try {
      const { host } = new URL(other.address);
      for (const path of [`//${host}/x`, `/\\${host}/x`, `\\\\${host}/x`, `${other.address}/x`, 'https:/x']) {
        const error: unknown = await exchangeWith(provider.address, { skipVerify: false })({ method: 'GET', path }).catch(
          (reason: unknown) => reason,
        );
        expect(error, path).to.be.an('error').with.property('message', 'the path leads to another host');
      }
      expect([...provider.requests, ...other.requests]).to.deep.equal([]);
    } finally {
      await Promise.all([provider.close(), other.close()]);
    }
  });

  it('returns a redirect instead of following it', async () => {
    const provider = await stubProvider(() => [302, '', { location: '/elsewhere' }]);
    try {
      const { status } = await exchangeWith(provider.address, { skipVerify: false })({ method: 'GET', path: '/' });
      expect([status, provider.requests.map(({ path }) => path)]).to.deep.equal([302, ['/']]);
    } finally {
      await provider.close();
    }
  });
});

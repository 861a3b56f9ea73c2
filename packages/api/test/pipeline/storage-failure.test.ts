// The disk fails, or the node stops, while requests run. Such an answer is neither an internal error nor a wrong promise.
import { StorageDamaged, StorageFailed } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('a request during which the storage of the node fails', () => {
  let server: Served;
  /** A token that no request has used, so that this node has to read it. */
  let unused: string;
  const lines: string[] = [];
  beforeEach(async () => {
    lines.length = 0;
    server = await served({ logTo: (line) => void lines.push(line) });
    expect((await server.ask('POST sys/auth/people', { body: { type: 'userpass' } })).status).to.equal(204);
    unused = (await server.ask('POST auth/token/create', { body: {} })).body.auth.client_token;
  });
  afterEach(() => server.close());

  /** Fails all reads of records. The root token is in memory. */
  const failReads = (error: Error): void => {
    server.store.get = () => Promise.reject(error);
    server.store.range = () => Promise.reject(error);
  };
  const expectAnswer = async (asked: ReturnType<Served['ask']>, status: number, text: RegExp): Promise<void> => {
    const answer = await asked;
    expect(answer.text).to.match(text);
    expect(answer.status).to.equal(status);
    expect(lines.filter((line) => line.includes('internal error'))).to.deep.equal([]);
  };
  const stopping = /this node is stopping: its storage has failed or is closed/;
  const unknown = /outcome unknown, the change may still take effect: the storage of this node failed/;

  for (const error of [new StorageFailed('state is closed'), new StorageDamaged('a table is damaged')])
    describe(error.name, () => {
      it('answers a read with 503, and suggests a retry', async () => {
        failReads(error);
        await expectAnswer(server.ask('GET transit/keys/k'), 503, stopping);
        expect((await server.ask('GET transit/keys/k')).headers.get('Retry-After')).to.equal('1');
      });

      it('answers a change with 504, because it may have taken effect', async () => {
        failReads(error);
        await expectAnswer(server.ask('POST transit/keys/k', { body: {} }), 504, unknown);
      });

      it('answers a login with 504', async () => {
        failReads(error);
        await expectAnswer(server.ask('POST auth/people/login/bob', { token: null, body: { password: 'x' } }), 504, unknown);
      });

      it('answers a change with 503 while it looks up the token: nothing was executed', async () => {
        failReads(error);
        await expectAnswer(server.ask('POST transit/keys/k', { token: unused, body: {} }), 503, stopping);
      });
    });

  it('answers 500 to any other error', async () => {
    failReads(new TypeError('a bug'));
    expect((await server.ask('GET transit/keys/k')).status).to.equal(500);
  });
});

import { expect } from 'chai';
import { type Answer, type Served, served } from '../served.ts';

describe('a caller without the rights', () => {
  let at: Served;
  before(async () => {
    at = await served();
  });
  after(() => at.close());

  const shownOf = ({ status, text }: Answer): readonly unknown[] => [status, text];

  for (const [what, query, body] of [
    ['a query', 'other=1', {}],
    ['a query that belongs in the body', 'type=hmac&derived=1&min_available_version=1', {}],
    ['a condition in the query', 'unless_used_within=30d', {}],
    ['a misspelled condition', 'unless_used=1', {}],
    ['a condition in the body', '', { unless_used: '30d' }],
    ['a body that is no object', '', 'text'],
  ] as const)
    it(`does not learn from ${what} which mounts exist`, async () => {
      const { client_token: token } = (await at.ask('POST auth/token/create', { body: { policies: ['default'] } })).body.auth;
      for (const caller of [null, 's.unknown', token])
        for (const line of ['POST *', 'DELETE *', 'POST */trim', 'POST */config']) {
          const askOn = (mount: string): Promise<Answer> =>
            at.ask(`${line.replace('*', `${mount}/keys/k`)}?${query}`, { token: caller, body });
          expect(shownOf(await askOn('transit')), line).to.deep.equal(shownOf(await askOn('nothing')));
        }
    });
});

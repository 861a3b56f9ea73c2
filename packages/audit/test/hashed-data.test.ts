import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { withoutTextsOf } from '../src/hashed-data.ts';

const hash = (text: string): string => `hmac-sha256:${createHash('sha256').update(text).digest('hex')}`;

describe('the texts of a request in an error message', () => {
  it('are replaced by their hashes, completely or only their quoted beginning', () => {
    const secret = 'a secret of more than sixteen characters';
    const data = { name: 'the name', list: [{ secret }, 'abc'] };
    expect(withoutTextsOf(data, `the name: "${secret.slice(0, 20)}…" follows abc`, hash)).to.equal(
      `${hash('the name')}: "${hash(secret)}…" follows abc`,
    );
    expect(withoutTextsOf(data, 'the name and the name', hash)).to.equal(`${hash('the name')} and ${hash('the name')}`);
  });

  it('leave no rest when they overlap, in whatever order the request has them', () => {
    for (const data of [
      ['long', 'a long name', 'name of it'],
      ['name of it', 'a long name', 'long'],
    ])
      expect(withoutTextsOf(data, 'no a long name of it here', hash)).to.equal(
        `no ${hash('a long name')}${hash('name of it')} here`,
      );
  });

  it('are not looked for in the hashes, so that a request cannot make the entry longer with each text', () => {
    const data = ['denied', ...Array.from({ length: 8 }, () => ['sha2', 'hmac']).flat()];
    expect(withoutTextsOf(data, 'permission denied', hash)).to.equal(`permission ${hash('denied')}`);
  });
});

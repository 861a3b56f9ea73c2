import { createHash } from 'node:crypto';
import { runAtOnce } from '@transitd/event-loop';
import { expect } from 'chai';
import { withoutTextsOf } from '../src/quoted-texts.ts';

const hash = (text: string): string => `hmac-sha256:${createHash('sha256').update(text).digest('hex')}`;
const shown = (data: unknown, message: string): string => runAtOnce(withoutTextsOf(data, message, hash));

describe('the texts of a request in an error message', () => {
  it('are replaced by their hashes, completely or only their quoted beginning', () => {
    const secret = 'a secret of more than sixteen characters';
    const data = { name: 'the name', list: [{ secret }, 'abc'] };
    expect(shown(data, `the name: "${secret.slice(0, 20)}…" follows abc`)).to.equal(
      `${hash('the name')}: "${hash(secret)}…" follows abc`,
    );
    expect(shown(data, 'the name and the name')).to.equal(`${hash('the name')} and ${hash('the name')}`);
  });

  it('are replaced too if the request has them as numbers, which an operation may read as texts', () => {
    expect(shown({ hash_algorithm: 20261130 }, 'unknown hash algorithm: 20261130')).to.equal(
      `unknown hash algorithm: ${hash('20261130')}`,
    );
  });

  it('leave no rest when they overlap, in whatever order the request has them', () => {
    for (const data of [
      ['long', 'a long name', 'name of it'],
      ['name of it', 'a long name', 'long'],
    ])
      expect(shown(data, 'no a long name of it here')).to.equal(`no ${hash('a long name')}${hash('name of it')} here`);
  });

  it('are not looked for in the hashes, so that a request cannot make the entry longer with each text', () => {
    const data = ['denied', ...Array.from({ length: 8 }, () => ['sha2', 'hmac']).flat()];
    expect(shown(data, 'permission denied')).to.equal(`permission ${hash('denied')}`);
  });
});

// @live
import { expect } from 'chai';
import { Answer } from '../../process/live-server.ts';
import { freePort } from './free-port.ts';
import { attempt, outcomeOf } from './outcome.ts';

const answer = (status: number, text = ''): Answer => new Answer(status, new Headers(), text);

describe('the outcome of a call', () => {
  for (const [status, text, kind] of [
    [200, '{}', 'done'],
    [204, '', 'done'],
    [400, '{"errors":["key not found"]}', 'refused'],
    [403, '{"errors":["permission denied"]}', 'refused'],
    [503, '{"errors":["no active node"]}', 'refused'],
    [503, '{"errors":["outcome unknown, the change may still take effect: the term ended"]}', 'unknown'],
    [504, '{"errors":["outcome unknown, the change may still take effect: no answer"]}', 'unknown'],
    [504, '', 'unknown'],
    [500, '{"errors":["internal error"]}', 'unknown'],
  ] as const) {
    it(`is "${kind}" after ${status} ${text}`, () => {
      expect(outcomeOf(answer(status, text)).kind).to.equal(kind);
    });
  }

  it('is "refused" if nobody listens, because then nothing was sent', async () => {
    const port = await freePort('127.0.0.1');
    const asked = fetch(`http://127.0.0.1:${port}/`).then(() => answer(200));
    expect(await attempt(asked)).to.deep.equal({ kind: 'refused', status: 0, text: 'ECONNREFUSED' });
  });

  it('is "unknown" if the connection breaks', async () => {
    const broken = new Promise<Answer>((_, reject) => {
      reject(new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) }));
    });
    expect(await attempt(broken)).to.deep.equal({ kind: 'unknown', text: 'ECONNRESET' });
    const late = Promise.reject<Answer>(new DOMException('The operation timed out', 'TimeoutError'));
    expect(await attempt(late)).to.deep.equal({ kind: 'unknown', text: 'TimeoutError: The operation timed out' });
  });
});

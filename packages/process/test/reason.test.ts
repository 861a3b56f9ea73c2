import { expect } from 'chai';
import { reasonOf } from '../src/reason.ts';

const full = Object.assign(new Error('IO error: 000005.log: No space left on device'), { code: 'LEVEL_IO_ERROR' });

describe('the reason in a log line', () => {
  for (const { what, error, reason } of [
    { what: 'a message', error: new Error('no'), reason: 'no' },
    { what: 'text', error: 'no', reason: 'no' },
    { what: 'a code without a message', error: Object.assign(new Error(''), { code: 'ENOSPC' }), reason: 'ENOSPC' },
    {
      what: 'a message and the cause that it hides',
      error: new Error('state failed', { cause: full }),
      reason: 'state failed: LEVEL_IO_ERROR: IO error: 000005.log: No space left on device',
    },
    {
      what: 'a cause once',
      error: new Error('stored no more: ENOSPC: write', { cause: Object.assign(new Error('ENOSPC: write'), { code: 'ENOSPC' }) }),
      reason: 'stored no more: ENOSPC: write',
    },
  ])
    it(`is ${what}`, () => expect(reasonOf(error)).to.equal(reason));

  it('ends for a cause that is its own', () => {
    const error = new Error('a');
    error.cause = error;
    expect(reasonOf(error)).to.equal('a');
  });
});

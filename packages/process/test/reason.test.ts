import { expect } from 'chai';
import { reasonOf } from '../src/reason.ts';

const full = Object.assign(new Error('IO error: 000005.log: No space left on device'), { code: 'LEVEL_IO_ERROR' });

describe('reasonOf', () => {
  for (const { what, error, reason } of [
    { what: 'the message of an error', error: new Error('no'), reason: 'no' },
    { what: 'a thrown text', error: 'no', reason: 'no' },
    { what: 'the code of an error without a message', error: Object.assign(new Error(''), { code: 'ENOSPC' }), reason: 'ENOSPC' },
    {
      what: 'the message and the cause, with the code of the cause',
      error: new Error('state failed', { cause: full }),
      reason: 'state failed: LEVEL_IO_ERROR: IO error: 000005.log: No space left on device',
    },
    {
      what: 'a cause that the message repeats once',
      error: new Error('log write failed: ENOSPC: write', {
        cause: Object.assign(new Error('ENOSPC: write'), { code: 'ENOSPC' }),
      }),
      reason: 'log write failed: ENOSPC: write',
    },
  ])
    it(`returns ${what}`, () => expect(reasonOf(error)).to.equal(reason));

  it('stops at an error that is its own cause', () => {
    const error = new Error('a');
    error.cause = error;
    expect(reasonOf(error)).to.equal('a');
  });
});

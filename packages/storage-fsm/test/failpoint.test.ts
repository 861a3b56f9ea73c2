import { expect } from 'chai';
import { StorageFailed } from '../src/errors.ts';
import { armFailpoints, failpoint } from '../src/failpoint.ts';

describe('failpoint', () => {
  afterEach(() => armFailpoints(undefined));

  it('does nothing unless armed', () => {
    expect(() => failpoint('log.after_fsync')).not.to.throw();
  });

  it('fails once, at the requested pass', () => {
    armFailpoints('log.after_fsync=error:2,state.before_flush=error');
    expect(() => failpoint('log.after_fsync')).not.to.throw();
    expect(() => failpoint('log.after_fsync')).to.throw(StorageFailed, 'failpoint');
    expect(() => failpoint('log.after_fsync')).not.to.throw();
    expect(() => failpoint('state.before_flush')).to.throw(StorageFailed, 'failpoint');
  });

  for (const list of [
    'log.after_sync=error',
    'log.after_fsync',
    'log.after_fsync=stop',
    'log.after_fsync=error:0',
    ',',
    'log.after_fsync=exit:x',
  ])
    it(`refuses the list ${list}`, () => {
      expect(() => armFailpoints(list)).to.throw(TypeError);
    });
});

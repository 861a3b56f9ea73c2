import { expect } from 'chai';
import { TimeSlice } from '../src/time-slice.ts';

describe('TimeSlice', () => {
  it('is over after a few milliseconds of work, and begins again after the event loop has turned', async () => {
    const slice = new TimeSlice();
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    while (!slice.isOver) expect(turned).to.equal(false);
    await slice.next();
    expect(turned).to.equal(true);
    const begunMs = performance.now();
    while (!slice.isOver);
    expect(performance.now() - begunMs).to.be.greaterThan(1);
  });
});

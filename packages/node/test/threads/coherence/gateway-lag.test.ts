import { expect } from 'chai';
import { GatewayLag } from '../../../src/threads/coherence/gateway-lag.ts';

describe('the lag of a gateway', () => {
  it('is too long once a change has waited for more than the limit', () => {
    const lag = new GatewayLag(1000);
    for (const nowMs of [0, 500, 1000]) expect(lag.isTooLong({ published: 1, drained: 0, nowMs })).to.equal(false);
    expect(lag.isTooLong({ published: 1, drained: 0, nowMs: 1001 })).to.equal(true);
  });

  it('is not too long after a pause of the process, until several checks have shown it', () => {
    const lag = new GatewayLag(1000);
    for (const nowMs of [0, 60_000, 60_250]) expect(lag.isTooLong({ published: 1, drained: 0, nowMs })).to.equal(false);
    expect(lag.isTooLong({ published: 1, drained: 0, nowMs: 60_500 })).to.equal(true);
  });

  it('is not too long while the gateway drains, however many changes follow', () => {
    const lag = new GatewayLag(1000);
    for (let at = 0; at < 50; at++)
      expect(lag.isTooLong({ published: 10 * at + 10, drained: 10 * at, nowMs: 900 * at })).to.equal(false);
  });

  it('is not measured from a later change, so a busy cluster does not hide a gateway that stands still', () => {
    const lag = new GatewayLag(1000);
    for (let at = 0; at <= 10; at++) lag.isTooLong({ published: 5 + at, drained: 4, nowMs: 100 * at });
    expect(lag.isTooLong({ published: 99, drained: 4, nowMs: 1001 })).to.equal(true);
  });

  it('counts across the wrap of the numbers', () => {
    const lag = new GatewayLag(1000);
    const last = 2 ** 31 - 1;
    for (const nowMs of [0, 500, 1000]) expect(lag.isTooLong({ published: -(2 ** 31), drained: last, nowMs })).to.equal(false);
    expect(lag.isTooLong({ published: -(2 ** 31), drained: last, nowMs: 1001 })).to.equal(true);
    expect(lag.isTooLong({ published: -(2 ** 31), drained: -(2 ** 31), nowMs: 1002 })).to.equal(false);
  });
});

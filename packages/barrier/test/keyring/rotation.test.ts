import { expect } from 'chai';
import { defaultRotation, rotationDue } from '../../src/index.ts';
import { checkRotation, decodeRotation, encodeRotation } from '../../src/keyring/rotation.ts';

const dayMs = 24 * 60 * 60 * 1000;
const status = (encryptions: number) => ({ term: 1, installTime: new Date(0), encryptions });

describe('rotationDue', () => {
  for (const { config, encryptions = 0, nowMs = 0, due, because } of [
    { config: {}, due: false, because: 'a fresh key is kept' },
    { config: {}, encryptions: 2 ** 31 - 1, due: false, because: 'one value is left' },
    { config: {}, encryptions: 2 ** 31, due: true, because: 'the default limit is reached' },
    { config: { maxOperations: 1_000_000 }, encryptions: 1_000_000, due: true, because: 'the configured limit is reached' },
    { config: {}, nowMs: 1e6 * dayMs, due: false, because: 'age alone does not matter without an interval' },
    { config: { intervalMs: dayMs }, nowMs: dayMs - 1, due: false, because: 'the interval is not over' },
    { config: { intervalMs: dayMs }, nowMs: dayMs, due: true, because: 'the interval is over' },
    {
      config: { enabled: false, intervalMs: dayMs },
      nowMs: 9 * dayMs,
      encryptions: 2 ** 30,
      due: false,
      because: 'it is disabled',
    },
    {
      config: { enabled: false },
      encryptions: 2 ** 31,
      due: true,
      because: 'the limit for random nonces cannot be disabled',
    },
  ])
    it(`is ${due}: ${because}`, () => {
      expect(rotationDue({ ...defaultRotation, ...config }, status(encryptions), nowMs)).to.equal(due);
    });
});

describe('a rotation configuration', () => {
  it('is decoded from its record', () => {
    const config = { enabled: false, maxOperations: 1_000_000, intervalMs: dayMs };
    expect(decodeRotation(encodeRotation(config))).to.deep.equal(config);
  });

  for (const wrong of [
    { maxOperations: 999_999 },
    { maxOperations: 2 ** 31 + 1 },
    { maxOperations: 1_000_000.5 },
    { maxOperations: Number.NaN },
    { intervalMs: -1 },
    { intervalMs: dayMs - 1 },
    { intervalMs: Number.POSITIVE_INFINITY },
  ])
    it(`is refused with ${Object.entries(wrong).join()}`, () => {
      expect(() => checkRotation({ ...defaultRotation, ...wrong }))
        .to.throw()
        .with.property('code', 'invalid_rotation_config');
    });
});

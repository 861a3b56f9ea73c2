import { expect } from 'chai';
import { divergenceOf } from '../../src/roles/divergence.ts';

const epoch = (number: number, start: number, digits = `0${number}`) => ({ number, id: digits.repeat(16), start });
const at = ({ number, id }: { number: number; id: string }, index: number) => ({ number, id, index });

describe('the point at which two histories part', () => {
  const [first, second, third] = [epoch(1, 10), epoch(2, 40), epoch(3, 60)];

  it('is nowhere while one continues the other', () => {
    expect(divergenceOf([first], at(first, 40), [first, second])).to.equal(undefined);
    expect(divergenceOf([first], at(first, 500), [first])).to.equal(undefined);
  });

  it('is the start of the epoch that this cluster was not part of', () => {
    expect(divergenceOf([first], at(first, 41), [first, second])).to.equal(40);
    expect(divergenceOf([first, second], at(second, 90), [first, second, third])).to.equal(60);
  });

  it('is the earlier of the two promotions after the last epoch in common', () => {
    const rival = epoch(2, 30, 'ab');
    expect(divergenceOf([first, rival], at(rival, 90), [first, second])).to.equal(30);
    expect(divergenceOf([first, second], at(second, 90), [first, rival])).to.equal(30);
  });

  it('is before everything without an epoch in common', () => {
    expect(divergenceOf([first], at(first, 41), [epoch(2, 5, 'cd')])).to.equal(0);
  });
});

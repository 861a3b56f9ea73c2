import { expect } from 'chai';
import fc from 'fast-check';
import { columnsOf, objectsOf } from '../../src/sharing/columns.ts';

describe('objects by member', () => {
  const member = fc.constantFrom('a', 'b', 'reference', 'error');
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(''));
  const objects = fc.array(fc.dictionary(member, value), { maxLength: 20 });

  it('are the same objects again, also after a message to another thread', () => {
    fc.assert(
      fc.property(objects, (made) => {
        expect(objectsOf(structuredClone(columnsOf(made)))).to.deep.equal(made.map((object) => ({ ...object })));
      }),
    );
  });

  it('have a member of one value once', () => {
    const options = { hash: 'sha2-256' };
    const columns = columnsOf([
      { input: 'x', options },
      { input: 'y', options },
    ]);
    expect(columns).to.deep.equal({
      count: 2,
      members: [
        ['input', { each: ['x', 'y'] }],
        ['options', { all: options }],
      ],
    });
  });

  it('lose a member that is undefined, so a result without an error has none', () => {
    const [first, second] = objectsOf(columnsOf([{ error: undefined }, { error: 'x' }]));
    expect([first && 'error' in first, second]).to.deep.equal([false, { error: 'x' }]);
  });
});

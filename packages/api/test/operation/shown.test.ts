import { boolean, integer, string } from '@transitd/http';
import { expect } from 'chai';
import { shown } from '../../src/operation/shown.ts';

describe('an object in answers', () => {
  const person = shown<{ readonly name: string; readonly age?: number }>({
    name: [string, ({ name }) => name],
    'age?': [integer, ({ age }) => age],
    adult: [boolean, ({ age = 0 }) => age >= 18],
  });

  it('has its members in the order of their declaration, without those that are undefined', () => {
    expect(JSON.stringify(person.json({ name: 'a', age: 20 }))).to.equal('{"name":"a","age":20,"adult":true}');
    expect(JSON.stringify(person.json({ name: 'a' }))).to.equal('{"name":"a","adult":false}');
  });

  it('has a schema that requires the members that are always present', () => {
    expect(person.schema).to.deep.equal({
      type: 'object',
      properties: { name: { type: 'string' }, adult: { type: 'boolean' }, age: { type: 'integer' } },
      required: ['name', 'adult'],
    });
  });
});

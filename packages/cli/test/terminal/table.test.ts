import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import { cellOf, rowsOf, tableText } from '../../src/terminal/table.ts';

describe('tables', () => {
  it('align their columns below their titles', () => {
    expect(
      tableText(
        ['Key', 'Value'],
        [
          ['a', 1],
          ['longer', 'x'],
        ],
      ).split('\n'),
    ).to.deep.equal(['Key       Value', '---       -----', 'a         1', 'longer    x']);
  });

  for (const { value, cell } of [
    { value: 'text', cell: 'text' },
    { value: ['a', 'b'], cell: 'a, b' },
    { value: [], cell: 'none' },
    { value: null, cell: 'n/a' },
    { value: false, cell: 'false' },
    { value: { a: [1] }, cell: '{"a":[1]}' },
  ])
    it(`show ${JSON.stringify(value)} as ${cell}`, () => expect(cellOf(value)).to.equal(cell));

  it('escape control characters from the server', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), (text) => {
        expect(tableText(['A'], [[text]])).not.to.match(/(?![\n\t])\p{Cc}/u);
      }),
    );
  });

  for (const [titles, row, lines] of [
    [
      ['Key', 'Value'],
      ['a', 'x\nroot    yes'],
      ['a      x', '       root    yes'],
    ],
    [['Key', 'Value'], ['a\nroot', 'x'], ['a\\u{a}root    x']],
    [['Key'], ['a\nroot'], ['a', '    root']],
  ] as const)
    it(`keep ${JSON.stringify(row)} from imitating a row`, () =>
      expect(tableText(titles, [row]).split('\n').slice(2)).to.deep.equal(lines));

  const envelope = { request_id: 'r', data: null, auth: null, wrap_info: null, warnings: null };
  const auth = {
    client_token: 's.x',
    accessor: 'a',
    lease_duration: 0,
    renewable: false,
    token_policies: ['root'],
    metadata: { user: 'u' },
  };
  for (const { what, answer, names } of [
    { what: 'data', answer: { ...envelope, data: { a: 1 } }, names: ['a'] },
    {
      what: 'a token',
      answer: { ...envelope, auth },
      names: ['token', 'token_accessor', 'token_duration', 'token_renewable', 'token_policies', 'token_meta_user'],
    },
    {
      what: 'a wrapping token instead of the data',
      answer: {
        ...envelope,
        data: { a: 1 },
        wrap_info: { token: 't', accessor: 'a', ttl: 1, creation_time: '', creation_path: '' },
      },
      names: [
        'wrapping_token',
        'wrapping_accessor',
        'wrapping_token_ttl',
        'wrapping_token_creation_time',
        'wrapping_token_creation_path',
      ],
    },
    { what: 'a response without an envelope', answer: { sealed: true }, names: ['sealed'] },
    { what: 'nothing for an empty response', answer: undefined, names: [] },
  ])
    it(`show ${what}`, () => expect(rowsOf(answer).map(([name]) => name)).to.deep.equal(names));
});

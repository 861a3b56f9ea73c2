import { expect } from 'chai';
import fc from 'fast-check';
import { type Asked, History, type KeyKind } from './history.ts';

/** A call from one position to another with what was heard; no end: nobody knows. */
type Line = readonly [asked: Asked, from: number, to?: number, value?: number];

const create = (value: number): Asked => ({ kind: 'create', value });
const set = (value: number): Asked => ({ kind: 'set', value });
const remove: Asked = { kind: 'delete' };
const rotate: Asked = { kind: 'rotate' };
const read: Asked = { kind: 'read' };

/** The history that the lines tell, with calls and returns recorded in the order of their positions. */
function recorded(kind: KeyKind, lines: readonly Line[]): History {
  const history = new History();
  const calls = new Map<Line, ReturnType<History['begin']>>();
  const events = lines.flatMap((line) => {
    const [asked, from, to, value = 0] = line;
    const call = { at: from, run: () => calls.set(line, history.begin('k', kind, asked)) };
    const end = () => {
      const begun = calls.get(line);
      if (begun !== undefined) history.returned(begun, value);
    };
    return to === undefined ? [call] : [call, { at: to, run: end }];
  });
  for (const { run } of events.toSorted((a, b) => a.at - b.at)) run();
  return history;
}

describe('the history of a cluster under test', () => {
  const cases: readonly (readonly [name: string, kind: KeyKind, lines: readonly Line[], verdict: string])[] = [
    [
      'a read after a set',
      'setting',
      [
        [create(5), 1, 2, 5],
        [set(6), 3, 4, 6],
        [read, 5, 6, 6],
      ],
      'linearizable',
    ],
    [
      'a create that found a key',
      'setting',
      [
        [create(5), 1, 2, 5],
        [create(6), 3, 4, 5],
      ],
      'linearizable',
    ],
    [
      'a set with unknown outcome that is seen later',
      'setting',
      [
        [create(5), 1, 2, 5],
        [set(6), 3],
        [read, 4, 5, 5],
        [read, 6, 7, 6],
      ],
      'linearizable',
    ],
    [
      'a create with unknown outcome that never was',
      'setting',
      [
        [create(5), 1],
        [read, 2, 3, 0],
        [create(6), 4, 5, 6],
      ],
      'linearizable',
    ],
    [
      'a deleted key that is gone and made anew',
      'setting',
      [
        [create(5), 1, 2, 5],
        [remove, 3, 4],
        [read, 5, 6, 0],
        [create(7), 7, 8, 7],
      ],
      'linearizable',
    ],
    [
      'two deletes with unknown outcome, each seen',
      'setting',
      [
        [create(5), 1, 2, 5],
        [remove, 3],
        [remove, 4],
        [read, 5, 6, 0],
        [create(7), 7, 8, 7],
        [read, 9, 10, 0],
      ],
      'linearizable',
    ],
    [
      'a lost set',
      'setting',
      [
        [create(5), 1, 2, 5],
        [set(6), 3, 4, 6],
        [read, 5, 6, 5],
      ],
      'violated',
    ],
    [
      'a lost key',
      'setting',
      [
        [create(5), 1, 2, 5],
        [read, 3, 4, 0],
      ],
      'violated',
    ],
    [
      'a key that comes back after its delete',
      'setting',
      [
        [create(5), 1, 2, 5],
        [remove, 3, 4],
        [read, 5, 6, 5],
      ],
      'violated',
    ],
    [
      'a value that nobody set',
      'setting',
      [
        [create(5), 1, 2, 5],
        [read, 3, 4, 9],
      ],
      'violated',
    ],
    [
      'two creates that both won',
      'setting',
      [
        [create(5), 1, 4, 5],
        [create(6), 2, 3, 6],
      ],
      'violated',
    ],
    [
      'an old value after a new one was seen',
      'setting',
      [
        [create(5), 1, 2, 5],
        [set(6), 3, 10, 6],
        [read, 4, 5, 6],
        [read, 6, 7, 5],
      ],
      'violated',
    ],
    [
      'an unknown create that undoes a set',
      'setting',
      [
        [create(5), 1, 2, 5],
        [create(6), 3],
        [set(7), 4, 5, 7],
        [read, 6, 7, 6],
      ],
      'violated',
    ],
    [
      'rotations one after the other',
      'counter',
      [
        [rotate, 1, 2, 2],
        [rotate, 3, 4, 3],
        [read, 5, 6, 3],
      ],
      'linearizable',
    ],
    [
      'concurrent rotations',
      'counter',
      [
        [rotate, 1, 4, 3],
        [rotate, 2, 3, 2],
        [read, 5, 6, 3],
      ],
      'linearizable',
    ],
    [
      'a rotation with unknown outcome that was done',
      'counter',
      [
        [rotate, 1],
        [rotate, 2, 3, 3],
      ],
      'linearizable',
    ],
    [
      'a rotation with unknown outcome that is done late',
      'counter',
      [
        [rotate, 1],
        [read, 2, 3, 1],
        [rotate, 4, 5, 2],
        [read, 6, 7, 3],
      ],
      'linearizable',
    ],
    [
      'of two unknown rotations one that was done',
      'counter',
      [
        [rotate, 1],
        [rotate, 2],
        [read, 3, 4, 2],
        [rotate, 5, 6, 3],
      ],
      'linearizable',
    ],
    [
      'one version for two rotations',
      'counter',
      [
        [rotate, 1, 2, 2],
        [rotate, 3, 4, 2],
      ],
      'violated',
    ],
    [
      'a lost rotation',
      'counter',
      [
        [rotate, 1, 2, 2],
        [read, 3, 4, 1],
      ],
      'violated',
    ],
    [
      'a rotation done twice',
      'counter',
      [
        [rotate, 1, 2, 2],
        [read, 3, 4, 3],
      ],
      'violated',
    ],
    [
      'an unknown rotation seen before it was asked for',
      'counter',
      [
        [read, 1, 2, 2],
        [rotate, 3],
      ],
      'violated',
    ],
    [
      'versions in the wrong order',
      'counter',
      [
        [rotate, 1, 2, 3],
        [rotate, 3, 4, 2],
      ],
      'violated',
    ],
  ];
  for (const [name, kind, lines, verdict] of cases) {
    it(`is ${verdict} with ${name}`, () => {
      const history = recorded(kind, lines);
      expect(history.verdict('k'), history.text('k')).to.equal(verdict);
      expect(history.verdicts().size).to.equal(verdict === 'linearizable' ? 0 : 1);
    });
  }

  it('leaves out what was refused, so that its effect would be unexplained', () => {
    const history = new History();
    history.refused(history.begin('k', 'setting', create(5)));
    expect(history.size).to.equal(0);
    history.returned(history.begin('k', 'setting', read), 5);
    expect(history.verdict('k')).to.equal('violated');
  });

  it('knows the highest version that was acknowledged', () => {
    const history = recorded('counter', [
      [rotate, 1, 2, 2],
      [rotate, 3, 4, 3],
      [rotate, 5],
      [read, 6, 7, 4],
    ]);
    expect(history.floor('k')).to.equal(3);
  });

  it('accepts whatever one store answered, with answers that got lost', () => {
    const steps = fc.array(
      fc.record({ client: fc.nat(2), kind: fc.constantFrom('rotate', 'read'), lost: fc.boolean(), overlaps: fc.boolean() }),
    );
    fc.assert(
      fc.property(steps, (list) => {
        const history = new History();
        let version = 1;
        const late: (() => void)[] = [];
        for (const { kind, lost, overlaps } of list) {
          const call = history.begin('k', 'counter', kind === 'rotate' ? rotate : read);
          if (kind === 'rotate') version += 1;
          const heard = version;
          if (lost) continue;
          if (overlaps) late.push(() => history.returned(call, heard));
          else {
            history.returned(call, heard);
            for (const end of late.splice(0)) end();
          }
        }
        expect(history.verdict('k'), history.text('k')).to.equal('linearizable');
      }),
    );
  });
});

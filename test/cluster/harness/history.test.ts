import { expect } from 'chai';
import fc from 'fast-check';
import { type Asked, History, type KeyKind } from './history.ts';

const rotate: Asked = { kind: 'rotate' };
const read: Asked = { kind: 'read' };

interface Line {
  readonly asked: Asked;
  readonly from: number;
  /** Absent if the outcome is unknown. */
  readonly to: number | undefined;
  readonly heard: number;
}

/** Parses `set 5 @ 1-2 = 5`: called at 1, returned at 2 with the number 5. Without an answer: `set 5 @ 1`. */
function lineOf(text: string): Line {
  const match = /^(create|set|delete|rotate|read)(?: (\d+))? @ (\d+)(?:-(\d+) = (\d+))?$/.exec(text.trim());
  if (match === null) throw new Error(`not a line: ${text}`);
  const [, kind, value, from, to, heard] = match;
  const asked = { kind, ...(value !== undefined && { value: Number(value) }) } as Asked;
  return { asked, from: Number(from), to: to === undefined ? undefined : Number(to), heard: Number(heard ?? 0) };
}

/** Returns the history that these lines describe, with calls and returns recorded in the order of their positions. */
function recorded(kind: KeyKind, text: string): History {
  const history = new History();
  const events = text.split(',').flatMap((line) => {
    const { asked, from, to, heard } = lineOf(line);
    let call: ReturnType<History['begin']> | undefined;
    const begin = () => {
      call = history.begin('k', kind, asked);
    };
    const end = () => call && history.returned(call, heard);
    return to === undefined
      ? [{ at: from, run: begin }]
      : [
          { at: from, run: begin },
          { at: to, run: end },
        ];
  });
  for (const { run } of events.toSorted((a, b) => a.at - b.at)) run();
  return history;
}

const sound: readonly (readonly [name: string, kind: KeyKind, lines: string])[] = [
  ['a read after a set', 'setting', 'create 5 @ 1-2 = 5, set 6 @ 3-4 = 6, read @ 5-6 = 6'],
  ['a create that found a key', 'setting', 'create 5 @ 1-2 = 5, create 6 @ 3-4 = 5'],
  ['an unanswered set that is seen later', 'setting', 'create 5 @ 1-2 = 5, set 6 @ 3, read @ 4-5 = 5, read @ 6-7 = 6'],
  ['an unanswered create that had no effect', 'setting', 'create 5 @ 1, read @ 2-3 = 0, create 6 @ 4-5 = 6'],
  ['a key created again', 'setting', 'create 5 @ 1-2 = 5, delete @ 3-4 = 0, read @ 5-6 = 0, create 7 @ 7-8 = 7'],
  [
    'two unanswered deletes, each seen',
    'setting',
    'create 5 @ 1-2 = 5, delete @ 3, delete @ 4, read @ 5-6 = 0, create 7 @ 7-8 = 7, read @ 9-10 = 0',
  ],
  ['rotations one after the other', 'counter', 'rotate @ 1-2 = 2, rotate @ 3-4 = 3, read @ 5-6 = 3'],
  ['concurrent rotations', 'counter', 'rotate @ 1-4 = 3, rotate @ 2-3 = 2, read @ 5-6 = 3'],
  ['an unanswered rotation that was done', 'counter', 'rotate @ 1, rotate @ 2-3 = 3'],
  ['an unanswered rotation that is done late', 'counter', 'rotate @ 1, read @ 2-3 = 1, rotate @ 4-5 = 2, read @ 6-7 = 3'],
  ['two unanswered rotations, one of them done', 'counter', 'rotate @ 1, rotate @ 2, read @ 3-4 = 2, rotate @ 5-6 = 3'],
];
const broken: typeof sound = [
  ['a lost set', 'setting', 'create 5 @ 1-2 = 5, set 6 @ 3-4 = 6, read @ 5-6 = 5'],
  ['a lost key', 'setting', 'create 5 @ 1-2 = 5, read @ 3-4 = 0'],
  ['a key that comes back after its delete', 'setting', 'create 5 @ 1-2 = 5, delete @ 3-4 = 0, read @ 5-6 = 5'],
  ['a value that nobody set', 'setting', 'create 5 @ 1-2 = 5, read @ 3-4 = 9'],
  ['two creates that both won', 'setting', 'create 5 @ 1-4 = 5, create 6 @ 2-3 = 6'],
  ['an old value after a new one', 'setting', 'create 5 @ 1-2 = 5, set 6 @ 3-10 = 6, read @ 4-5 = 6, read @ 6-7 = 5'],
  ['an unanswered create that undoes a set', 'setting', 'create 5 @ 1-2 = 5, create 6 @ 3, set 7 @ 4-5 = 7, read @ 6-7 = 6'],
  ['one version for two rotations', 'counter', 'rotate @ 1-2 = 2, rotate @ 3-4 = 2'],
  ['a lost rotation', 'counter', 'rotate @ 1-2 = 2, read @ 3-4 = 1'],
  ['a rotation done twice', 'counter', 'rotate @ 1-2 = 2, read @ 3-4 = 3'],
  ['a rotation seen before it was asked for', 'counter', 'read @ 1-2 = 2, rotate @ 3'],
  ['versions in the wrong order', 'counter', 'rotate @ 1-2 = 3, rotate @ 3-4 = 2'],
];

describe('the history of a cluster under test', () => {
  for (const { cases, verdict } of [
    { cases: sound, verdict: 'linearizable' },
    { cases: broken, verdict: 'violated' },
  ]) {
    for (const [name, kind, lines] of cases) {
      it(`is ${verdict} with ${name}`, () => {
        const history = recorded(kind, lines);
        expect(history.verdict('k'), history.text('k')).to.equal(verdict);
        expect(history.verdicts().size).to.equal(verdict === 'linearizable' ? 0 : 1);
      });
    }
  }

  it('leaves out refused calls, so that their effect would be unexplained', () => {
    const history = new History();
    history.refused(history.begin('k', 'setting', { kind: 'create', value: 5 }));
    expect(history.size).to.equal(0);
    history.returned(history.begin('k', 'setting', read), 5);
    expect(history.verdict('k')).to.equal('violated');
  });

  it('knows the highest acknowledged version', () => {
    const history = recorded('counter', 'rotate @ 1-2 = 2, rotate @ 3-4 = 3, rotate @ 5, read @ 6-7 = 4');
    expect(history.floor('k')).to.equal(3);
  });

  it('accepts every answer of a single store, also with lost answers', () => {
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

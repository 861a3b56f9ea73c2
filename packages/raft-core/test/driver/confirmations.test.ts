import { expect } from 'chai';
import { Confirmations } from '../../src/driver/confirmations.ts';
import type { ConfirmOutcome } from '../../src/driver/outcome.ts';
import type { Message } from '../../src/types.ts';

type Question = Extract<Message, { type: 'Confirm' }>;
type Answer = Extract<Message, { type: 'ConfirmResp' }>;

const clusterId = 'c';
const node = (nodeId: number, incarnation = 1): Confirmations => new Confirmations({ nodeId, clusterId, incarnation });

/** Asks node 2; returns the question and the outcomes. */
function asked(asker: Confirmations, index: number): { readonly question: Question; readonly outcomes: ConfirmOutcome[] } {
  const outcomes: ConfirmOutcome[] = [];
  asker.queue({ to: 2, index, done: (outcome) => outcomes.push(outcome) });
  const [question] = asker.ask(1_000) as readonly Question[];
  if (question === undefined) throw new Error('nothing was asked');
  return { question, outcomes };
}

const answer = (question: Question, index: number): Answer => ({ ...question, type: 'ConfirmResp', from: 2, to: 1, index });
const applied = (index: number): ConfirmOutcome => ({ kind: 'applied', index });

describe('The question whether an entry is applied', () => {
  it('is answered once it is, with all that is applied then, and once only', () => {
    const [one, two] = [node(1), node(2, 7)];
    const { question, outcomes } = asked(one, 5);
    two.receive(question);
    expect(two.answers(4)).to.deep.equal([]);
    const answers = two.answers(6) as readonly Answer[];
    expect(answers).to.deep.equal([answer(question, 6)]);
    expect(two.answers(7)).to.deep.equal([]);
    for (const each of [...answers, ...answers]) one.receive(each);
    expect(outcomes).to.deep.equal([applied(6)]);
  });

  it('is the newest one of its asker: an earlier one is no longer answered', () => {
    const [one, two] = [node(1), node(2)];
    const [first, second] = [asked(one, 5), asked(one, 9)];
    for (const { question } of [first, second]) two.receive(question);
    expect(two.answers(8)).to.deep.equal([]);
    expect(two.answers(9)).to.deep.equal([answer(second.question, 9)]);
  });

  for (const [name, changed] of Object.entries<(answer: Answer) => Answer>({
    'for an earlier question': (given) => ({ ...given, request: { ...given.request, id: given.request.id - 1 } }),
    'for a later question': (given) => ({ ...given, request: { ...given.request, id: given.request.id + 1 } }),
    'for a question of an earlier incarnation of the asker': (given) => ({
      ...given,
      request: { ...given.request, incarnation: 3 },
    }),
    'of another node': (given) => ({ ...given, from: 3 }),
    'of another cluster': (given) => ({ ...given, clusterId: 'another' }),
    'for another node': (given) => ({ ...given, to: 3 }),
    'of the asker itself': (given) => ({ ...given, from: 1 }),
  }))
    it(`is not ended by an answer ${name}`, () => {
      const one = node(1, 4);
      const earlier = asked(one, 8);
      one.expire(1_000);
      expect(earlier.outcomes).to.deep.equal([{ kind: 'refused', reason: 'unanswered' }]);
      const { question, outcomes } = asked(one, 9);
      one.receive(changed(answer(question, 9)));
      expect(outcomes).to.deep.equal([]);
      one.receive(answer(question, 9));
      expect(outcomes).to.deep.equal([applied(9)]);
    });

  it('of another cluster, or to another node, is not answered', () => {
    const two = node(2);
    const { question } = asked(node(1), 1);
    for (const wrong of [{ clusterId: 'another' }, { to: 3 }, { from: 2 }]) two.receive({ ...question, ...wrong });
    expect(two.answers(9)).to.deep.equal([]);
  });

  for (const [name, end, reason] of [
    ['at its deadline', (one: Confirmations) => one.expire(1_000), 'unanswered'],
    ['when the connection ends', (one: Confirmations) => one.unreachable(2), 'unanswered'],
    ['when the node stops', (one: Confirmations) => one.refuseAll('stopped'), 'stopped'],
  ] as const)
    it(`ends ${name}, and a late answer changes nothing`, () => {
      const one = node(1);
      const { question, outcomes } = asked(one, 5);
      one.expire(999);
      one.unreachable(3);
      expect(outcomes).to.deep.equal([]);
      end(one);
      one.receive(answer(question, 5));
      expect(outcomes).to.deep.equal([{ kind: 'refused', reason }]);
    });

  it('that was not sent yet ends when the node stops', () => {
    const one = node(1);
    const outcomes: ConfirmOutcome[] = [];
    one.queue({ to: 2, index: 1, done: (outcome) => outcomes.push(outcome) });
    one.refuseAll('faulty');
    expect(outcomes).to.deep.equal([{ kind: 'refused', reason: 'faulty' }]);
    expect(one.ask(1_000)).to.deep.equal([]);
  });
});

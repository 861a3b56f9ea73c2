import { encodeMessage, type Message, type NodeId, raftLimits } from '@transitd/raft-core';
import { expect } from 'chai';
import { Xorshift32 } from '../../../raft-core/src/core/election/election-clock.ts';
import { type Input, take } from '../../src/exhaustive/local-states.ts';
import { type Renaming, renamed, renamedMessage, renamings } from '../../src/exhaustive/renaming.ts';
import { jitterSeed, SmallNode } from '../../src/exhaustive/small-node.ts';
import { SimRandom } from '../../src/fakes/sim-random.ts';

const voters = [1, 2, 3];

/** Everything that happened to one node, and the resulting state. */
interface Life {
  readonly id: NodeId;
  readonly inputs: readonly Input[];
  readonly print: string;
  /** The event that follows. */
  next?: Input;
}

const textOf = (messages: readonly Message[]): string[] => messages.map((message) => encodeMessage(message).join()).sort();

function play(id: NodeId, inputs: readonly Input[]): { readonly print: string; readonly sent: readonly Message[] } {
  const node = new SmallNode(id, voters);
  let sent: readonly Message[] = [];
  for (const input of inputs) sent = take(node, input);
  return { print: node.print, sent };
}

/** One history for each different state. */
const differing = (lives: readonly Life[], what: (life: Life) => unknown): Life[] => [
  ...new Map(lives.map((life) => [JSON.stringify(what(life)), life])).values(),
];

/** A core may refuse an input that is only possible in another history. */
function goOn({ id, inputs }: Life, input: Input): unknown {
  try {
    const { print, sent } = play(id, [...inputs, input]);
    return [print, textOf(sent)];
  } catch (error) {
    return String(error);
  }
}

/** Three cores with random inputs; collects the history of each after every input. */
function livesOf(seed: number): Life[] {
  const random = new SimRandom(seed);
  const nodes = voters.map((id) => ({ node: new SmallNode(id, voters), inputs: [] as Input[] }));
  const wire: Message[] = [];
  const lives: Life[] = [];
  for (let step = 0; step < 30; step++) {
    const message = random.chance(0.7) ? wire.splice(random.below(Math.max(1, wire.length)), 1)[0] : undefined;
    const id = message?.to ?? random.pick(voters);
    const other: Input = random.chance(0.7) ? { kind: 'pass' } : { kind: 'propose', data: Uint8Array.of(step) };
    const input: Input = message === undefined ? other : { kind: 'message', message };
    for (const { node, inputs } of nodes.filter((each) => each.node.id === id)) {
      if (input.kind === 'propose' && node.status.role !== 'leader') continue;
      const before = lives.findLast((life) => life.id === id);
      if (before !== undefined) before.next = input;
      inputs.push(input);
      wire.push(...take(node, input));
      lives.push({ id, inputs: [...inputs], print: node.print });
    }
  }
  return lives;
}

describe('a small node', () => {
  const lives = Array.from({ length: 60 }, (_, seed) => livesOf(seed)).flat();

  it('behaves alike after two histories that led to the same state', () => {
    let pairs = 0;
    for (const group of Map.groupBy(lives, ({ print }) => print).values()) {
      const [one, ...others] = differing(group, ({ inputs }) => inputs);
      const nexts = differing(group, ({ next }) => next).flatMap(({ next }) => next ?? []);
      for (const [at, other] of others.entries()) {
        pairs += 1;
        const input = nexts[at % nexts.length];
        if (one !== undefined && input !== undefined) expect(goOn(other, input), one.print).to.deep.equal(goOn(one, input));
      }
    }
    expect(pairs).to.be.above(100);
  });

  it('behaves the same under any other name', () => {
    for (const { id, inputs } of lives.filter((_, at) => at % 10 === 0)) {
      const own = play(id, inputs);
      for (const renaming of renamings(3).slice(1)) {
        const { sent } = play(
          renamed(id, renaming),
          inputs.map((input) => inputRenamed(input, renaming)),
        );
        expect(textOf(sent)).to.deep.equal(textOf(own.sent.map((message) => renamedMessage(message, renaming))));
      }
    }
  });

  it('never draws a random timeout of 0, which would let it campaign a step sooner', () => {
    const random = new Xorshift32(jitterSeed);
    const jitters = Array.from({ length: 1_000 }, () => random.next() % raftLimits.electionJitterMs);
    expect(Math.min(...jitters)).to.be.above(0);
  });
});

function inputRenamed(input: Input, renaming: Renaming): Input {
  return input.kind === 'message' ? { kind: 'message', message: renamedMessage(input.message, renaming) } : input;
}

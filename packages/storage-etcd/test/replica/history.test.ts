// Two nodes, whose requests get lost or late, whose watches are cut and whose leases end: what was acknowledged stays, and no later.
import { expect } from 'chai';
import fc from 'fast-check';
import { until } from '../../../process/test/until.ts';
import { Copy } from '../../src/copy/copy.ts';
import { keysBelow } from '../../src/copy/keys.ts';
import type { Fate, Faults } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { seeded } from '../fake/seeded.ts';
import { type FakeNode, fakeNode, outcomeOf, put, textAt } from './fake-nodes.ts';

const keys = keysBelow('test');

const paths = ['a', 'b'] as const;

type Step =
  | {
      readonly kind: 'write';
      readonly node: number;
      readonly path: string;
      readonly isLarge: boolean;
      readonly isConditional: boolean;
    }
  | { readonly kind: 'end lease' | 'deliver' | 'compact' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      node: fc.nat(1),
      path: fc.constantFrom(...paths),
      isLarge: fc.nat(9).map((number) => number === 0),
      isConditional: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom({ kind: 'end lease' as const }, { kind: 'deliver' as const }, { kind: 'compact' as const }),
  },
);

const faultsOf: readonly Fate[] = ['answer lost', 'request lost', 'late'];

/** One in five transactions has no answer, one in twenty messages of a watch does not arrive. */
const faultsBy = (random: () => number): Faults => ({
  fateOf: () => (random() < 0.8 ? 'answered' : (faultsOf[Math.floor(random() * faultsOf.length)] ?? 'answered')),
  cuts: () => random() < 0.05,
  fragment: () => Math.ceil(random() * 60),
});

/** Per path: the number of the newest acknowledged write, and of every later write whose outcome is unknown. */
class Acknowledged {
  readonly #allowed = new Map<string, Set<string>>();

  acknowledged(path: string, value: string): void {
    this.#allowed.set(path, new Set([value]));
  }

  unknown(path: string, value: string): void {
    this.allowed(path).add(value);
  }

  allowed(path: string): Set<string> {
    const allowed = this.#allowed.get(path) ?? new Set(['none']);
    this.#allowed.set(path, allowed);
    return allowed;
  }
}

async function play(steps: readonly Step[], random: () => number): Promise<void> {
  const server = new FakeServer();
  const nodes: FakeNode[] = [];
  const counts: number[] = [];
  server.listeners.add(() => {
    const [row] = server.rows(keys.reserved, undefined);
    if (row !== undefined) counts.push(Number(Buffer.from(row.value).toString()));
  });
  for (const nodeId of [1, 2]) nodes.push(await fakeNode(server, nodeId, faultsBy(random)));
  const history = new Acknowledged();
  let number = 0;
  const act = async (one: Step): Promise<void> => {
    if (one.kind === 'deliver') for (const { etcd } of nodes) etcd.deliver();
    else if (one.kind === 'compact') server.compact();
    else if (one.kind === 'end lease') for (const lease of [...server.leases]) server.endLease(lease);
    else if (one.kind === 'write') {
      const node = nodes[one.node];
      if (node === undefined) return;
      if (!node.replica.status().ready) await until(() => nodes.some(({ replica }) => replica.status().ready));
      number += 1;
      const value = String(number);
      const base = put(one.path, value);
      const revision = (await node.replica.get(one.path))?.revision ?? 0;
      const more = Array.from({ length: one.isLarge ? 120 : 0 }, (_, i) => ({ path: `large/${i}`, value: Buffer.from(value) }));
      const conditions = one.isConditional ? [{ path: one.path, revision }] : [];
      const outcome = await outcomeOf(node.replica.commit({ conditions, writes: [...base.writes, ...more] }));
      if (outcome === 'committed') history.acknowledged(one.path, value);
      else if (outcome === 'outcome_unknown') history.unknown(one.path, value);
    }
  };
  try {
    // A client for each path, so that commits of different paths, also staged ones, are under way at the same time.
    await Promise.all(
      paths.map(async (path) => {
        for (const one of steps) if (one.kind === 'write' ? one.path === path : path === paths[0]) await act(one);
      }),
    );
    for (const { etcd } of nodes) etcd.faults = {};
    for (const { etcd } of nodes) etcd.deliver();
    await until(() => nodes.some(({ replica }) => replica.status().ready));
    expect(counts, 'the count of reserved values falls').to.deep.equal(counts.toSorted((one, other) => one - other));
    const truth = new Copy(keys, { revision: server.revision, rows: server.rows(keys.start, keys.end) });
    for (const node of nodes) {
      await node.replica.fresh();
      for (const path of paths) {
        const value = (await textAt(node, path)) ?? 'none';
        expect([...history.allowed(path)], `${path} at ${node.replica.status().nodeId}`).to.include(value);
        expect(value).to.equal(Buffer.from(truth.get(path)?.value ?? Buffer.from('none')).toString());
        expect((await node.replica.get(path))?.revision).to.equal(truth.get(path)?.revision);
      }
    }
  } finally {
    for (const node of nodes) await node.close();
  }
}

describe('two nodes over an unreliable etcd', () => {
  it('keep every acknowledged write, and agree with etcd', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), fc.nat(), (steps, seed) => play(steps, seeded(seed))),
      { numRuns: 150 },
    );
  });
});

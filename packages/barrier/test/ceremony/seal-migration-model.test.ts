// All states of three nodes during a migration, under every order of restarts, crashes and changes of the configuration.
import { expect } from 'chai';
import { BarrierError, type OneSeal, type SealConfig } from '../../src/index.ts';
import { idOf, sealOf } from '../../src/seal/seal-config.ts';
import { FakeProvider } from '../seal/fake-provider.ts';

type Configured = 'old' | 'both' | 'new';
type Stored = 'old' | 'new';

/** The two seals of a migration: of different types, or of one type. */
const moves: readonly { readonly what: string; readonly seals: Readonly<Record<Stored, OneSeal>> }[] = [
  {
    what: 'from shares to a provider',
    seals: { old: { type: 'shamir' }, new: { type: 'transit', provider: new FakeProvider() } },
  },
  {
    what: 'from one provider to another of its type',
    seals: {
      old: { type: 'transit', provider: new FakeProvider() },
      new: { type: 'transit', provider: new FakeProvider(), name: 'new' },
    },
  },
];

interface NodeState {
  readonly configured: Configured;
  readonly isUp: boolean;
}
interface ClusterState {
  readonly nodes: readonly NodeState[];
  readonly stored: Stored;
}

type Seals = Readonly<Record<Stored, OneSeal>>;

const configurationOf = (configured: Configured, seals: Seals): SealConfig =>
  configured === 'both' ? { ...seals.new, migrateFrom: seals.old } : seals[configured];

const accepts = ({ configured }: NodeState, stored: Stored, seals: Seals): boolean => {
  try {
    sealOf(configurationOf(configured, seals), idOf(seals[stored]));
    return true;
  } catch (error) {
    if (error instanceof BarrierError && error.code === 'seal_mismatch') return false;
    throw error;
  }
};

/** @param isPatient - the operators keep the documented order: all nodes accept both seals until the migration */
function* nextStates({ nodes, stored }: ClusterState, isPatient: boolean, seals: Seals): Generator<ClusterState> {
  const withNode = (at: number, node: NodeState): ClusterState => ({ nodes: nodes.with(at, node), stored });
  for (const [at, node] of nodes.entries()) {
    yield withNode(at, { ...node, isUp: !node.isUp }); // a crash, or a start
    if (node.configured === 'old' && !node.isUp) yield withNode(at, { ...node, configured: 'both' });
    if (node.configured === 'both' && !node.isUp && (stored === 'new' || !isPatient))
      yield withNode(at, { ...node, configured: 'new' });
    const hasQuorum = nodes.filter(({ isUp }) => isUp).length >= 2;
    const mayMigrate = node.isUp && node.configured === 'both' && hasQuorum && accepts(node, stored, seals);
    if (mayMigrate && (!isPatient || nodes.every(({ configured }) => configured === 'both'))) yield { nodes, stored: 'new' };
  }
}

function reachable(isPatient: boolean, seals: Seals): readonly ClusterState[] {
  const start: ClusterState = { nodes: Array(3).fill({ configured: 'old', isUp: true }), stored: 'old' };
  const seen = new Map([[JSON.stringify(start), start]]);
  for (const state of seen.values())
    for (const next of nextStates(state, isPatient, seals)) {
      const key = JSON.stringify(next);
      if (!seen.has(key)) seen.set(key, next);
    }
  return [...seen.values()];
}

for (const { what, seals } of moves)
  describe(`a seal migration ${what}, in all states of three nodes`, () => {
    it('leaves every node able to open the records if the documented order is kept', () => {
      const states = reachable(true, seals);
      expect(states.length).to.be.above(100);
      expect(
        states.some(({ nodes, stored }) => stored === 'new' && nodes.every(({ configured }) => configured === 'new')),
      ).to.equal(true);
      for (const { nodes, stored } of states) expect(nodes.every((node) => accepts(node, stored, seals))).to.equal(true);
    });

    it('leaves a node that opens the records after a migration that came too early', () => {
      const early = reachable(false, seals).filter(({ stored }) => stored === 'new');
      expect(early.length).to.be.above(100);
      for (const { nodes, stored } of early) expect(nodes.some((node) => accepts(node, stored, seals))).to.equal(true);
    });

    it('can lock nodes out if the old seal is dropped before the migration: the record says which seal to configure again', () => {
      const locked = reachable(false, seals).filter(({ nodes, stored }) => nodes.every((node) => !accepts(node, stored, seals)));
      expect(locked.length).to.be.above(0);
      for (const { stored } of locked) expect(stored).to.equal('old');
      expect(accepts({ configured: 'both', isUp: true }, 'old', seals)).to.equal(true);
    });
  });

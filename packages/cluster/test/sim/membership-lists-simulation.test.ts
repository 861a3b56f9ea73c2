import { expect } from 'chai';
import { certificatesOf, noCommittedMembers } from '../../src/membership/membership.ts';
import { judgeList, type ListContent } from '../../src/membership/signed-list.ts';
import { Broken, type ListDecisions, type ListNode, ListWorld, realListDecisions, requires } from './list-world.ts';

const steps = 150;
const seeds = 60;

/**
 * Each node admits exactly the members of its own log and, if the log is older than the newest list, those of that list. So a node that was
 * removed is admitted by no older list.
 */
function checkAdmissions(world: ListWorld, node: ListNode): void {
  const { log, newest } = node.disk;
  const listed = newest !== undefined && newest.index > log.index ? newest.members : [];
  const allowed = new Set([...log.membership.members, ...listed].flatMap(certificatesOf));
  for (const certificate of world.certificates.keys()) {
    const facts = { node: node.id, certificate, log: log.index, list: newest?.index };
    const isAdmitted = world.admits(node, certificate);
    requires(
      isAdmitted === allowed.has(certificate),
      'a node admits the members of its log and of a newer list, and no other',
      facts,
    );
  }
  const signed = newest && world.history.get(newest.index);
  requires(newest === undefined || newest.members === signed?.members, 'a list names a committed configuration');
}

/** Heals everything, and returns the pairs of members that do not admit each other in the end. */
function apartAtTheEnd(world: ListWorld): readonly string[] {
  world.mend();
  const all = [...world.nodes.values()];
  for (const node of all) node.isUp = true;
  for (let round = 0; round < 6; round += 1) {
    world.heartbeats();
    for (const from of all) for (const to of all) world.present(from, to);
  }
  requires(world.leader !== undefined, 'a healed cluster has a leader');
  // A node whose disk was rolled back may have lost its certificate; it has to join again.
  const current = world.newest.membership.members.flatMap((member) => {
    const node = world.nodes.get(member.id);
    return node !== undefined && certificatesOf(member).includes(node.disk.certificate) ? [node] : [];
  });
  return current.flatMap((one) =>
    current.filter((other) => other !== one && !world.isConnected(one, other)).map((other) => `${one.id} and ${other.id}`),
  );
}

/** The events of one step; frequent ones are listed several times. */
const events: readonly ((world: ListWorld, node: ListNode) => void)[] = [
  ...Array<(world: ListWorld) => void>(4).fill((world) => world.change()),
  ...Array<(world: ListWorld) => void>(3).fill((world) => world.heartbeats()),
  (world, node) => world.present(node, world.random.pick([...world.nodes.values()])),
  (world, node) => world.present(node, world.random.pick([...world.nodes.values()])),
  (_world, node) => {
    node.isUp = false;
  },
  (world) => {
    const node = world.random.pick([...world.nodes.values()].filter(({ isUp }) => !isUp).concat([...world.nodes.values()]));
    node.isUp = true;
    node.restart();
  },
  (world, node) => {
    if (world.random.chance(0.5)) world.isolate(node.id);
  },
  // Seldom, so that all members that a node knows can be replaced meanwhile.
  (world) => {
    if (world.random.chance(0.2)) world.mend();
  },
  (_world, node) => {
    node.kept = node.disk;
  },
  (world, node) => {
    if (world.random.chance(0.3)) world.rollBack(node);
  },
];

interface Played {
  readonly failure?: string;
  readonly rescued: number;
  readonly changes: number;
}

function play(seed: number, decisions: ListDecisions): Played {
  const world = new ListWorld(seed, decisions);
  const played = () => ({ rescued: world.rescued, changes: world.history.size - 1 });
  try {
    for (let n = 0; n < steps; n += 1) {
      world.random.pick(events)(world, world.random.pick([...world.nodes.values()]));
      for (const node of world.nodes.values()) checkAdmissions(world, node);
    }
    const apart = apartAtTheEnd(world);
    requires(apart.length === 0, 'in the end all members admit each other', { apart });
    for (const node of world.nodes.values()) checkAdmissions(world, node);
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { ...played(), failure: `seed ${seed}: ${error.message}` };
  }
  return played();
}

const allSeeds = Array.from({ length: seeds }, (_, at) => at + 1);

const nameAll = (node: ListNode, certificate: string): boolean =>
  realListDecisions.admits(node, certificate) ||
  node.disk.newest?.members.some((member) => certificatesOf(member).includes(certificate)) === true;

const faults: Readonly<Record<string, readonly [change: Partial<ListDecisions>, rule: RegExp]>> = {
  'an older list replaces a newer one': [
    { judge: (list, context) => judgeList(list, { ...context, newest: noCommittedMembers, committed: noCommittedMembers }) },
    /never falls|below the node's log/,
  ],
  "a list below the node's log is taken": [
    { judge: (list, context) => judgeList(list, { ...context, committed: { index: 0, members: [] } }) },
    /below the node's log/,
  ],
  'a list admits nodes after the log has reached its index': [{ admits: nameAll }, /and no other/],
  'a list counts as the configuration of the log': [
    {
      takes: (node: ListNode, list: ListContent) => {
        realListDecisions.takes(node, list);
        node.append({ index: list.index, membership: { members: list.members, removed: [] } });
      },
    },
    /changes no configuration/,
  ],
  'a list is taken from a node that it does not name': [
    {
      judge: (list, context) => {
        const [named] = list.members;
        return named === undefined ? 'known' : judgeList(list, { ...context, caller: { id: named.id } });
      },
    },
    /only from a node that it names/,
  ],
  'no list is taken': [{ judge: () => 'known' }, /in the end all members admit each other/],
  'no list is signed': [{ signs: false }, /in the end all members admit each other/],
};

describe('signed membership lists, while members change, links fail and disks are rolled back', () => {
  it('only admit, never older than the log, and in the end all members admit each other', () => {
    const played = allSeeds.map((seed) => play(seed, realListDecisions));
    expect(played.flatMap(({ failure }) => failure ?? [])).to.deep.equal([]);
    const sum = (of: (one: Played) => number): number => played.reduce((total, one) => total + of(one), 0);
    expect(
      sum(({ changes }) => changes),
      'changes',
    ).to.be.greaterThan(500);
    expect(
      sum(({ rescued }) => rescued),
      'nodes that knew none of the members',
    ).to.be.greaterThan(10);
  });

  for (const [fault, [change, rule]] of Object.entries(faults))
    it(`detects that ${fault}`, () => {
      const failureOf = (seed: number): string => play(seed, { ...realListDecisions, ...change }).failure ?? '';
      expect(allSeeds.some((seed) => rule.test(failureOf(seed)))).to.equal(true);
    });
});

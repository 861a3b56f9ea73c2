// Writes that a node planned in one active role, and that would be sent in a later one: another node was active in between.
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { stage, swap } from '../../../storage-fsm/test/snapshot/restore-steps.ts';
import type { EtcdTxn } from '../../src/etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { type FakeNode, fakeNode, outcomeOf, put, textAt } from './fake-nodes.ts';

const isPutOf = ({ success }: EtcdTxn, key: string): boolean =>
  success.some((one) => (one.kind === 'txn' ? isPutOf(one.txn, key) : one.kind === 'put' && one.key === key));

describe('a write that was planned in an earlier active role', () => {
  let server: FakeServer;
  let first: FakeNode;
  let second: FakeNode;
  /** Whether the first node sees no changes. */
  let isBlind: boolean;
  beforeEach(async () => {
    server = new FakeServer();
    isBlind = false;
    first = await fakeNode(server, 1, { holdsWatch: () => isBlind });
    await first.replica.leads;
    second = await fakeNode(server, 2);
    second.replica.mayLead = false;
  });
  afterEach(async () => {
    for (const node of [first, second]) await node.close();
  });

  const textOf = (key: string): string => Buffer.from(server.rows(key, undefined)[0]?.value ?? '').toString();
  const isVacant = (): boolean => server.rows('test/m/active', undefined).length === 0;

  /**
   * Delays the first node's first transaction that puts this key, and counts its later ones.
   * @param at - before etcd executes the transaction, or before its answer arrives
   */
  const delayed = (key: string, at: 'request' | 'answer') => {
    const send = first.etcd.txn.bind(first.etcd);
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    const delayed = { isThere: false, release, later: 0 };
    first.etcd.txn = async (txn) => {
      if (!isPutOf(txn, key)) return send(txn);
      if (delayed.isThere) return send(txn).finally(() => delayed.later++);
      delayed.isThere = true;
      if (at === 'request') await isReleased;
      const answer = await send(txn);
      await isReleased;
      return answer;
    };
    return delayed;
  };

  /** The first node loses the role, the second one has it and does this, and the first node takes it again without having seen that. */
  const whileReplaced = async (act: () => Promise<unknown>): Promise<void> => {
    first.replica.mayLead = false;
    await until(() => isVacant() && first.replica.status().leader === 0);
    isBlind = true;
    second.replica.mayLead = true;
    await until(() => second.replica.status().ready);
    await act();
    second.replica.mayLead = false;
    await until(isVacant);
    first.replica.mayLead = true;
    await until(() => first.replica.status().role !== 'candidate' && !isVacant());
  };

  /** Shows the first node all changes. */
  const unblind = async (): Promise<void> => {
    isBlind = false;
    server.txn({ compares: [], success: [{ kind: 'put', key: 'other', value: Buffer.from('') }], failure: [] });
    await until(() => first.replica.status().ready);
  };

  it('reserves no values that another node has reserved', async () => {
    await first.replica.commit(stage('one', 0, ['a', '1']));
    await first.replica.commit(swap('one', [['a', '1']])); // gives up what was reserved, so that the next commits reserve
    const reservation = delayed('test/m/reserved', 'request');
    const commits = ['b', 'c'].map((path) => outcomeOf(first.replica.commit(put(path, '1'))));
    await until(() => reservation.isThere);
    let written = 0;
    await whileReplaced(async () => {
      await second.replica.commit(put('d', '1'));
      second.replica.mayLead = false;
      await until(isVacant);
      second.replica.mayLead = true;
      await until(() => second.replica.status().ready);
      written = second.replica.status().valuesWritten;
    });
    const reserved = Number(textOf('test/m/reserved'));
    reservation.release();
    await until(() => reservation.later > 0);
    expect(Number(textOf('test/m/reserved'))).to.be.at.least(reserved);
    await unblind();
    for (const outcome of await Promise.all(commits)) expect(outcome).to.be.oneOf(['busy', 'not_leader']);
    expect(first.replica.status().valuesWritten).to.be.at.least(written);
  });

  it('takes no staged record to its key after another node has changed it', async () => {
    const unpacking = delayed('test/r/many/0', 'answer');
    const writes = Array.from({ length: 250 }, (_, i) => ({ path: `many/${i}`, value: Buffer.from('staged') }));
    expect(await outcomeOf(first.replica.commit({ conditions: [], writes }))).to.equal('committed');
    await until(() => unpacking.isThere);
    await whileReplaced(async () => {
      expect(await outcomeOf(second.replica.commit(put('many/200', 'later')))).to.equal('committed');
    });
    unpacking.release();
    await unblind();
    expect(textOf('test/r/many/200')).to.contain('later');
    for (const node of [first, second]) {
      await node.replica.fresh();
      expect(await textAt(node, 'many/200')).to.equal('later');
    }
  });
});

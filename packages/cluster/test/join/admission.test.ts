import type { ConfState, DriverStatus, PeerStatus } from '@transitd/raft-core';
import { expect } from 'chai';
import { Admissions } from '../../src/join/admission.ts';
import { makeRequest } from '../../src/membership/authority.ts';
import type { Decision, MemberChange } from '../../src/membership/configuration-changes.ts';
import type { Membership } from '../../src/membership/membership.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';
import { clusterId, type TestCluster, testCluster } from '../credentials.ts';

const leader = 1;

describe('the admission of a node', () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await testCluster();
  });

  /** A single leader, and its status of the nodes that it admits. */
  async function desk() {
    const self = await cluster.node(leader);
    let membership: Membership = {
      members: [
        {
          id: leader,
          name: 'n1',
          apiAddress: 'http://127.0.0.1:8200',
          clusterAddress: '127.0.0.1:1',
          certificate: self.certificate,
          nonVoter: false,
          levels: { oldest: 1, newest: 1 },
        },
      ],
      removed: [],
    };
    const peers = new Map<number, Partial<PeerStatus>>();
    let last: Promise<unknown> = Promise.resolve();
    const make = (decide: Decision): Promise<MemberChange | undefined> => {
      const made = last.then(() => {
        const change = decide({} as ConfState, membership);
        if (change === undefined) return undefined;
        ({ membership } = change);
        for (const { id } of membership.members)
          if (id !== leader && !peers.has(id)) peers.set(id, { learner: true, match: 0, silentMs: 0 });
        return change;
      });
      last = made.catch(() => undefined);
      return made;
    };
    const level = { now: 1, afterChallenge: undefined as number | undefined };
    const joins = async (id: number, name = 'twin', levels = { oldest: 1, newest: 1 }): Promise<string> => {
      const { request } = await makeRequest(id);
      const addresses = { apiAddress: 'http://127.0.0.1:82', clusterAddress: '127.0.0.1:2' };
      const joiner = { id, name, ...addresses, nonVoter: false, levels, request };
      const levelNow = (): number => {
        const { now } = level;
        level.now = level.afterChallenge ?? now;
        return now;
      };
      const known = () => [...peers].map(([peer, status]) => ({ id: peer, ...status }) as PeerStatus);
      const admissions = new Admissions({
        config: { node_id: 'n1-renamed' },
        storage: {
          driver: { status: () => ({ nodeId: leader }) as DriverStatus, peers: known },
          machine: {
            get featureLevel() {
              return levelNow();
            },
          },
        },
        changes: { make },
        authority: { clusterId, readOrMake: async () => cluster.authority },
        ownEntry: { update: async () => undefined },
      });
      return admissions.admit(joiner).then(
        () => 'admitted',
        (error: unknown) => (error instanceof ClusterError ? `${error.code}: ${error.message}` : String(error)),
      );
    };
    /** Adds a second member with the same name, as a renamed node once could. */
    const doubled = (id: number, name: string): void => {
      const double = { apiAddress: 'http://127.0.0.1:83', clusterAddress: '127.0.0.1:3', certificate: '3'.repeat(64) };
      membership = {
        ...membership,
        members: [...membership.members, { id, name, nonVoter: false, levels: { oldest: 1, newest: 1 }, ...double }],
      };
      peers.set(id, { learner: false, match: 9, silentMs: 20_000 });
    };
    return {
      joins,
      doubled,
      peers,
      level,
      listed: () => membership.members,
      members: () => membership.members.map(({ id }) => id),
    };
  }

  it('succeeds for one of three joiners with the same name', async () => {
    const { joins, members } = await desk();
    const answers = await Promise.all([2, 3, 4].map((id) => joins(id)));
    expect(answers.filter((answer) => answer === 'admitted')).to.have.length(1);
    expect(answers.filter((answer) => answer.startsWith('name_taken'))).to.have.length(2);
    expect(members()).to.deep.equal([1, 2 + answers.indexOf('admitted')]);
  });

  it('can be repeated by the same node until the leader has heard it: the answer may have been lost', async () => {
    const { joins, peers, members } = await desk();
    expect(await joins(2)).to.equal('admitted');
    expect(await joins(2)).to.equal('admitted');
    expect(members()).to.deep.equal([1, 2]);
    peers.set(2, { learner: true, match: 9, silentMs: 0 });
    expect(await joins(2)).to.match(/^name_taken/);
  });

  it('replaces a member with the same name after ten seconds of silence; an earlier refusal names that time', async () => {
    const { joins, peers, members } = await desk();
    await joins(2);
    peers.set(2, { learner: false, match: 9, silentMs: 2_120 });
    expect(await joins(3)).to.match(/heard 2\.1 s ago; .* silent for 10 s$/);
    peers.set(2, { learner: false, match: 9, silentMs: 10_000 });
    expect(await joins(3)).to.equal('admitted');
    expect(members()).to.deep.equal([1, 3]);
  });

  it('is refused under the name of the active node, stored or only configured so far', async () => {
    const { joins, members } = await desk();
    for (const name of ['n1', 'n1-renamed']) expect(await joins(2, name)).to.match(/^name_taken: .* belongs to the active node/);
    expect(members()).to.deep.equal([1]);
  });

  it('is refused under a name that two members have, silent or not: the operator says which of them is gone', async () => {
    const { joins, doubled, peers, members } = await desk();
    await joins(2);
    peers.set(2, { learner: false, match: 9, silentMs: 10_000 });
    doubled(3, 'twin');
    expect(await joins(4)).to.equal(
      'name_taken: the members with the ids 2, 3 have the same name twin: remove one of them by its id',
    );
    expect(members()).to.deep.equal([1, 2, 3]);
  });

  it('lists the feature levels that the joiner announced', async () => {
    const { joins, listed } = await desk();
    await joins(2, 'n2', { oldest: 1, newest: 3 });
    expect(listed().find(({ id }) => id === 2)?.levels).to.deep.equal({ oldest: 1, newest: 3 });
  });

  it('is refused for a node that does not support the feature level of the cluster', async () => {
    const { joins, level, members } = await desk();
    level.now = 2;
    expect(await joins(2, 'n2', { oldest: 1, newest: 1 })).to.equal(
      'level_unsupported: the cluster is at feature level 2, and the joining node supports level 1: install a release that supports level 2 on this node',
    );
    expect(await joins(2, 'n2', { oldest: 3, newest: 4 })).to.match(
      /supports levels 3 to 4: raise the feature level of the cluster/,
    );
    expect(members()).to.deep.equal([leader]);
    expect(await joins(2, 'n2', { oldest: 1, newest: 2 })).to.equal('admitted');
  });

  it('is refused for a node whose level was left behind while its join was under way', async () => {
    const { joins, level, members } = await desk();
    level.afterChallenge = 2;
    expect(await joins(2, 'n2', { oldest: 1, newest: 1 })).to.match(/^level_unsupported/);
    expect(members()).to.deep.equal([leader]);
  });
});

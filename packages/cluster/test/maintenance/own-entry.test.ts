import type { ConfState } from '@transitd/raft-core';
import type { Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { updateOwnEntry } from '../../src/maintenance/member-entries.ts';
import type { MemberChange } from '../../src/membership/configuration-changes.ts';
import type { Membership } from '../../src/membership/membership.ts';
import { clusterId, memberAt, testCluster } from '../credentials.ts';

describe("the update of a node's own membership entry", () => {
  it('takes a new name, unless another member has it: then it keeps the former one and returns that member', async () => {
    const cluster = await testCluster();
    const [self, other] = [await cluster.node(1), await cluster.node(2)];
    let membership: Membership = { members: [memberAt(self, 1), memberAt(other, 2)], removed: [] };
    const make = async (decide: (conf: ConfState, before: Membership) => MemberChange | undefined): Promise<void> => {
      membership = decide({} as ConfState, membership)?.membership ?? membership;
    };
    const renamed = (name: string) =>
      updateOwnEntry({
        ...{ store: {} as Store, changes: { make } as never, clusterId, nodeId: 1, current: () => undefined },
        self: () => ({ ...memberAt(self, 1), name }),
        identity: () => self.identity,
        setIdentity: async () => undefined,
      });
    expect((await renamed('node-2'))?.id).to.equal(2);
    expect(membership.members.map(({ name }) => name)).to.deep.equal(['node-1', 'node-2']);
    expect(await renamed('node-9')).to.equal(undefined);
    expect(membership.members.map(({ name }) => name)).to.have.members(['node-9', 'node-2']);
  });
});

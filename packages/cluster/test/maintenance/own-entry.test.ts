import type { Logger } from '@transitd/process';
import type { ConfState } from '@transitd/raft-core';
import { expect } from 'chai';
import { OwnEntry } from '../../src/maintenance/own-entry.ts';
import type { Decision, MemberChange } from '../../src/membership/configuration-changes.ts';
import type { Membership } from '../../src/membership/membership.ts';
import type { ClusterHost } from '../../src/ports/cluster-host.ts';
import { clusterId, memberAt, testCluster } from '../credentials.ts';

describe("the update of a node's own membership entry", () => {
  it('takes a new name, unless another member has it: then it keeps the former one and logs that member, once', async () => {
    const cluster = await testCluster();
    const [self, other] = [await cluster.node(1), await cluster.node(2)];
    let membership: Membership = { members: [memberAt(self, 1), memberAt(other, 2)], removed: [] };
    const make = async (decide: Decision): Promise<MemberChange | undefined> => {
      const change = decide({} as ConfState, membership);
      membership = change?.membership ?? membership;
      return change;
    };
    const namesakes: unknown[] = [];
    const log = { error: ({ namesake }: { readonly namesake: unknown }) => namesakes.push(namesake) } as unknown as Logger;
    const { apiAddress, clusterAddress } = memberAt(self, 1);
    const named = (node_id: string): OwnEntry =>
      new OwnEntry({
        host: { config: { node_id, cluster_addr: clusterAddress } as ClusterHost['config'], api: { url: apiAddress }, log },
        ...{ nodeId: 1, changes: { make }, membershipList: { identity: self.identity, committedAuthority: undefined } },
        authority: { clusterId, readOrMake: async () => cluster.authority },
        port: { useIdentity: () => expect.fail('the certificate is not due') },
      });
    const taken = named('node-2');
    for (let round = 0; round < 2; round++) await taken.update();
    expect(namesakes).to.deep.equal([2]);
    expect(membership.members.map(({ name }) => name)).to.have.members(['node-1', 'node-2']);
    await named('node-9').update();
    expect(namesakes).to.deep.equal([2]);
    expect(membership.members.map(({ name }) => name)).to.have.members(['node-9', 'node-2']);
  });
});

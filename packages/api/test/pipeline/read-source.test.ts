import type { Node } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { readSource } from '../../src/pipeline/read-source.ts';

interface State {
  readonly readRole?: 'active' | 'reader';
  /** The node knows of no newer leader: it was elected, or is being elected. */
  readonly mayLead?: boolean;
  /** A quorum confirms that the node leads. */
  readonly leads?: boolean;
}

const nodeOf = ({ readRole, mayLead = false, leads = false }: State): Node =>
  ({
    eligibility: { readRole, mayLead, becomesActive: async () => leads, canForward: true, clusterId: undefined },
  }) as unknown as Node;

describe('the source of an answer', () => {
  for (const { node, where, forwarded = false, headers = {}, source } of [
    { node: { readRole: 'active', mayLead: true }, where: 'leader', source: 'active' },
    { node: { readRole: 'reader' }, where: 'leader', source: 'none' },
    { node: { readRole: 'reader' }, where: 'replica', source: 'reader' },
    { node: { readRole: 'reader' }, where: 'replica', headers: { 'x-vault-forward': 'active-node' }, source: 'none' },
    // A standby that was elected a moment ago: it may still be a reader, and has no lease yet.
    { node: { readRole: 'reader', mayLead: true, leads: true }, where: 'leader', source: 'active' },
    { node: { readRole: 'reader', mayLead: true, leads: true }, where: 'replica', source: 'active' },
    { node: { mayLead: true, leads: true }, where: 'leader', source: 'active' },
    { node: { mayLead: true, leads: true }, where: 'leader', forwarded: true, source: 'active' },
    // A leader that was deposed and does not know it.
    { node: { readRole: 'reader', mayLead: true }, where: 'leader', source: 'none' },
    { node: { readRole: 'reader', mayLead: true }, where: 'replica', source: 'reader' },
    { node: { readRole: 'reader' }, where: 'leader', forwarded: true, source: 'refused' },
    { node: { mayLead: true }, where: 'leader', forwarded: true, source: 'refused' },
  ] as const)
    it(`is '${source}' for ${JSON.stringify({ node, where, forwarded, headers })}`, async () => {
      const options = { node: nodeOf(node), ...(forwarded && { forwarded }) };
      const found = Promise.resolve(readSource(headers, where, options)).catch((error: unknown) => {
        expect(error).to.be.instanceOf(StoreError).with.property('code', 'not_leader');
        return 'refused';
      });
      expect(await found).to.equal(source);
    });
});

import { expect } from 'chai';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { parseConfig } from '../../src/config.ts';
import { Answering } from '../../src/node/answering.ts';
import { nobody } from '../../src/node/observer.ts';
import type { Storage } from '../../src/node/storage.ts';

const config = parseConfig({
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
  seal: { type: 'shamir' },
});

/** A node that leads under a lease, and had an echo answered a moment ago. */
function leading({ agrees, differs, serves = true }: { agrees: boolean; differs: boolean; serves?: boolean }): Answering {
  const driver = { status: () => ({ ready: true, role: 'leader', appliedIndex: 7 }), leaseRead: () => true };
  const heartbeats = { appliedSentMs: () => performance.now() };
  return new Answering({
    config,
    serves: () => serves,
    storage: () => ({ driver, replica: { fresh: async () => undefined } }) as unknown as Storage,
    cluster: () => ({ agrees, differs, heartbeats }) as unknown as Cluster,
    observer: nobody,
  });
}

describe('where a request is answered', () => {
  for (const { what, node, active } of [
    { what: 'whose records were shown to be the cluster’s', node: leading({ agrees: true, differs: false }), active: true },
    { what: 'whose records nobody has compared', node: leading({ agrees: false, differs: false }), active: true },
    { what: 'whose records were shown to be others', node: leading({ agrees: false, differs: true }), active: false },
    { what: 'that is sealed', node: leading({ agrees: true, differs: false, serves: false }), active: false },
  ])
    it(`a leader ${what} is ${active ? '' : 'not '}the active node`, async () => {
      expect(node.active).to.equal(active);
      expect(node.standing).to.equal(active ? 'active' : undefined);
      expect(await node.leads()).to.equal(active);
      expect(await node.begins()).to.equal(active);
    });
});

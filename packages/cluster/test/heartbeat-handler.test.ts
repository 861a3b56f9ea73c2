import { expect } from 'chai';
import { type HeartbeatHandlerOptions, heartbeatHandler } from '../src/heartbeat-handler.ts';
import type { HeartbeatRequest } from '../src/standbys/heartbeat-wire.ts';
import type { ClusterAnswer } from '../src/transport/cluster-call.ts';

const request: HeartbeatRequest = {
  name: 'n2',
  apiAddress: 'http://10.0.0.2:8200',
  clusterAddress: '10.0.0.2:8201',
  appliedIndex: 7,
  intervalMs: 1_000,
  serves: true,
  sealed: false,
  diskLow: false,
  levels: { oldest: 1, newest: 1 },
  differs: false,
  version: '0.1.0',
  hostname: 'two',
  listIndex: 0,
};
const committed = { index: 5, members: [] };

interface AskedNode {
  readonly isActive?: boolean;
  readonly removed?: boolean;
  readonly holdsLease?: boolean;
  /** Asks a quorum whether this node still leads. */
  readonly fresh?: () => Promise<void>;
  /** Whether the caller was removed, as of now. */
  readonly hasRemovedCaller?: () => boolean;
}

/** Sends a heartbeat to a node that is active under a lease by default. */
async function heartbeat(json: object, node: AskedNode = {}) {
  const received: number[] = [];
  const driver = { status: () => ({ commitIndex: 9 }) };
  const machine = { applied: { appliedIndex: 9, digest: 1n } };
  const handler = heartbeatHandler({
    storage: {
      driver,
      machine,
      holdsLease: () => node.holdsLease ?? true,
      replica: { fresh: node.fresh ?? (async () => undefined) },
    },
    connections: {
      membershipList: { committed, removedAt: () => (node.hasRemovedCaller?.() === true ? 5 : undefined) },
      removed: node.removed ?? false,
      peers: { standbys: { heartbeatReceived: (id: number) => received.push(id) } },
    },
    role: {
      get isActive() {
        return node.isActive ?? true;
      },
    },
    config: { cluster_heartbeat_interval: 1_000 },
    lists: { newest: undefined },
    digestCheck: { run: async () => undefined },
  } as unknown as HeartbeatHandlerOptions);
  const channel = (): Buffer => Buffer.alloc(0);
  const call = {
    from: 2,
    certificate: '',
    channel,
    proved: () => undefined,
    body: Buffer.from(JSON.stringify(json)),
    query: new URLSearchParams(),
  };
  const answer = (await handler(call)) as Extract<ClusterAnswer, { status: number }>;
  return { status: answer.status, json: JSON.parse(JSON.stringify(answer.json)), received };
}

describe('POST /cluster/echo', () => {
  it('is answered by the active node, which records the report', async () => {
    const { status, received } = await heartbeat(request);
    expect(status).to.equal(200);
    expect(received).to.deep.equal([2]);
  });

  for (const intervalMs of [999, 1_001, 60_000])
    it(`refuses an interval of ${intervalMs} ms where it is 1000 ms, and records nothing`, async () => {
      const refused = await heartbeat({ ...request, intervalMs });
      expect(refused).to.deep.equal({ status: 409, json: { intervalMs: 1_000 }, received: [] });
    });

  it('refuses a heartbeat without an interval as malformed', async () => {
    const { intervalMs: _, ...rest } = request;
    expect(await heartbeat(rest)).to.deep.include({ status: 400, received: [] });
  });

  it('reports the committed members on a node that is not active', async () => {
    const refused = await heartbeat(request, { isActive: false });
    expect(refused).to.deep.equal({ status: 503, json: { active: false, committed }, received: [] });
  });

  it('is answered without a lease only once a quorum has confirmed that the node still leads', async () => {
    const holdsLease = false;
    const deposed = { isActive: true, holdsLease, fresh: () => Promise.reject(new Error('no quorum answers')) };
    expect(await heartbeat(request, deposed)).to.deep.include({ status: 503, received: [] });
    expect(await heartbeat(request, { holdsLease })).to.deep.include({ status: 200, received: [2] });
    const [before, after] = [true, false];
    let isActive = before;
    const overtaken = {
      holdsLease,
      get isActive() {
        return isActive;
      },
      fresh: async () => {
        isActive = after;
      },
    };
    expect(await heartbeat(request, overtaken), 'another node leads by now').to.deep.include({ status: 503, received: [] });
  });

  it('permits nothing to a node that is removed while a quorum confirms that this node leads', async () => {
    let isRemoved = false;
    const fresh = async (): Promise<void> => {
      isRemoved = true;
    };
    const answer = await heartbeat(request, { holdsLease: false, fresh, hasRemovedCaller: () => isRemoved });
    expect(answer).to.deep.equal({ status: 503, json: { active: false, committed }, received: [] });
  });

  it('reports no members on a removed node', async () => {
    const refused = await heartbeat(request, { isActive: false, removed: true });
    expect(refused).to.deep.equal({ status: 503, json: { active: false }, received: [] });
  });
});

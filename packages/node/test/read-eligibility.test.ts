import type { Cluster, Storage } from '@transitd/cluster';
import { parseConfig } from '@transitd/configuration';
import { noObserver } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ReadEligibility } from '../src/read-eligibility.ts';

const config = parseConfig({
  node_id: 'n1',
  data_dir: '/var/lib/transitd',
  listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
  seal: { type: 'shamir' },
});

/** A node that leads, under a lease unless given, and had an echo answered a moment ago. */
function leading({
  agrees = true,
  differs = false,
  isUnsealed = true,
  isAwake = true,
  lease = true,
  ready = (): boolean => true,
  clockJumpedMs = Number.NEGATIVE_INFINITY,
  fresh = async (): Promise<void> => undefined,
}): ReadEligibility {
  const driver = { status: () => ({ ready: ready(), role: 'leader', appliedIndex: 7 }) };
  const sentMs = performance.now();
  const heartbeats = { appliedSentMs: () => sentMs };
  return new ReadEligibility({
    config,
    isUnsealed: () => isUnsealed,
    storage: () =>
      ({
        driver,
        isAwake: () => isAwake,
        holdsLease: () => lease,
        clockJumpedMs: () => clockJumpedMs,
        replica: { fresh },
      }) as unknown as Storage,
    cluster: () => ({ agrees, differs, heartbeats }) as unknown as Cluster,
    observer: noObserver,
  });
}

describe('where a request is answered', () => {
  for (const { what, node, active } of [
    { what: 'whose records were shown to be the cluster’s', node: leading({ agrees: true, differs: false }), active: true },
    { what: 'whose records nobody has compared', node: leading({ agrees: false, differs: false }), active: true },
    { what: 'whose records were shown to be others', node: leading({ agrees: false, differs: true }), active: false },
    { what: 'that is sealed', node: leading({ agrees: true, differs: false, isUnsealed: false }), active: false },
  ])
    it(`a leader ${what} is ${active ? '' : 'not '}the active node`, async () => {
      expect(node.active).to.equal(active);
      expect(node.activeForCertain).to.equal(active);
      expect(node.readRole).to.equal(active ? 'active' : undefined);
      expect(await node.confirmLeadership()).to.equal(active);
      expect(await node.becomesActive()).to.equal(active);
    });

  it('a leader that was only just elected is waited for until it is ready', async () => {
    let looks = 0;
    const node = leading({
      ready: () => {
        looks += 1;
        return looks > 3;
      },
    });
    expect(node.active).to.equal(false);
    expect(node.mayLead).to.equal(true);
    expect(await node.becomesActive()).to.equal(true);
  });

  it('a leader without a lease is the active node only if a quorum says so', async () => {
    const refused = async (): Promise<void> => {
      throw new StoreError('not_leader', 'this node does not lead');
    };
    expect(await leading({ lease: false }).becomesActive()).to.equal(true);
    expect(await leading({ lease: false, fresh: refused }).becomesActive()).to.equal(false);
  });

  it('a leader whose process stood still does not call itself active before consensus has run again', () => {
    expect(leading({ isAwake: false }).activeForCertain).to.equal(false);
  });

  it('a standby does not answer by a heartbeat that was sent before a clock jumped', () => {
    expect(leading({ ready: () => false }).readRole).to.equal('reader');
    expect(leading({ ready: () => false, clockJumpedMs: Number.POSITIVE_INFINITY }).readRole).to.equal(undefined);
    expect(leading({ ready: () => false, clockJumpedMs: Number.POSITIVE_INFINITY }).appliedSentMs).to.equal(undefined);
  });

  it('a leader without a lease answers only after it has asked the others', async () => {
    const node = leading({ lease: false, clockJumpedMs: Number.POSITIVE_INFINITY });
    expect(node.readRole).to.equal(undefined);
    expect(await node.confirmLeadership()).to.equal(true);
  });
});

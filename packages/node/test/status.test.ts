import { type Config, parseConfig } from '@transitd/configuration';
import type { HeartbeatTimes, ReplicationMode, ReplicationModes } from '@transitd/health';
import type { ReplicationRole } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { NoPeers } from '../src/no-peers.ts';
import { nodeStatus, type ReportedState } from '../src/status.ts';

const config = (more: object = {}): Config =>
  parseConfig({ node_id: 'n1', data_dir: '/nowhere', listeners: [{ address: '127.0.0.1:0', tls_disable: true }], ...more });

interface Facts {
  readonly config: Config;
  readonly unsealed: boolean;
  readonly sealFailure?: string;
  readonly role?: ReplicationRole;
  readonly standby?: Partial<HeartbeatTimes>;
  /** Undefined if no heartbeat shows that the state of a standby is fresh. */
  readonly appliedSentMs?: number | undefined;
  readonly removed?: boolean;
  readonly initialized?: boolean;
}

/** The status of an initialized node, active if it has services, unless it is a standby with these heartbeats. */
const statusOf = (parts: Facts) => {
  const services = { services: parts.unsealed ? { sinceMs: 1 } : undefined } as ReportedState['services'];
  return nodeStatus(
    {
      clusterName: undefined,
      removed: parts.removed ?? false,
      isInitialized: parts.initialized ?? true,
      services,
      seal: { providerHealth: { healthy: false, failure: parts.sealFailure } } as ReportedState['seal'],
      replica: { status: () => ({ commitIndex: 7 }) },
      peers: parts.standby
        ? ({
            canaryUtcMs: 5,
            heartbeats: { times: { intervalMs: 1, sinceMs: 1, durationMs: 0, clockSkewMs: 0, ...parts.standby } },
          } as ReportedState['peers'])
        : new NoPeers(parts.config.cluster_heartbeat_interval, services),
      eligibility: {
        activeForCertain: parts.standby === undefined,
        appliedSentMs: 'appliedSentMs' in parts ? parts.appliedSentMs : 1,
        replication: parts.role && {
          ...{ role: parts.role, set: id, local: [], index: 1, offset: 0, seen: 1 },
          epochs: [{ number: 1, id, start: 1 }],
        },
      },
    },
    parts.config,
  );
};

const id = '0a'.repeat(16);
const modes = (disasterRecovery: ReplicationMode): ReplicationModes => ({ performance: 'disabled', disasterRecovery });

describe('the status of a node', () => {
  it('is that of a secondary while its cluster serves no clients, active or standby', () => {
    const unsealed = { config: config(), unsealed: true };
    for (const role of ['secondary', 'demoted', 'superseded'] as const) {
      expect(statusOf({ ...unsealed, role }), role).to.deep.include({ state: 'dr_active', replication: modes('secondary') });
      expect(statusOf({ ...unsealed, role, standby: {} }), role).to.include({ state: 'dr_standby', canaryUtcMs: 5 });
      expect(statusOf({ ...unsealed, unsealed: false, role }), role).to.include({ state: 'sealed' });
    }
    for (const role of ['primary', 'disabled'] as const) {
      expect(statusOf({ ...unsealed, role }), role).to.deep.include({ state: 'active', replication: modes(role) });
      expect(statusOf({ ...unsealed, role, standby: {} }), role).to.include({ state: 'performance_standby' });
    }
  });

  it('is that of a removed or an uninitialized node also on a secondary', () => {
    for (const role of ['secondary', 'primary'] as const)
      for (const unsealed of [true, false]) {
        expect(statusOf({ config: config(), unsealed, role, removed: true })).to.include({ state: 'removed' });
        expect(statusOf({ config: config(), unsealed, role, initialized: false })).to.include({ state: 'uninitialized' });
      }
  });

  it('of a standby that knows its mode neither from its own state nor from the active node is that of a plain standby', () => {
    const unheard = { config: config(), unsealed: true, standby: {}, appliedSentMs: undefined };
    expect(statusOf(unheard)).to.include({ state: 'standby' });
    expect(statusOf({ ...unheard, role: 'primary' })).to.include({ state: 'standby' });
    expect(statusOf({ ...unheard, role: 'secondary' })).to.include({ state: 'dr_standby' });
    expect(statusOf({ ...unheard, standby: { replication: modes('secondary') } })).to.include({ state: 'dr_standby' });
  });

  it('of a standby that lags is that of a secondary as soon as the active node says so', () => {
    const lagging = { config: config(), unsealed: true };
    expect(statusOf({ ...lagging, standby: { replication: modes('secondary') } })).to.include({ state: 'dr_standby' });
    expect(statusOf({ ...lagging, standby: { replication: modes('bootstrapping') } })).to.include({ state: 'dr_standby' });
    expect(statusOf({ ...lagging, standby: { replication: modes('primary') } })).to.include({ state: 'performance_standby' });
  });

  it('of an active node has the license of the configuration', () => {
    const license = { expiry_time: '2030-01-01T00:00:00Z' };
    expect(statusOf({ config: config({ license }), unsealed: true })).to.deep.include({
      state: 'active',
      lastWal: 7,
      license: { expiryUtcMs: Date.UTC(2030, 0, 1) },
    });
    expect(statusOf({ config: config(), unsealed: true })).to.not.have.property('license');
  });

  it('of a sealed node says why the provider of its seal fails; that of an unsealed node does not', () => {
    const failing = { config: config(), sealFailure: 'unreachable' };
    expect(statusOf({ ...failing, unsealed: false })).to.include({ sealFailure: 'unreachable' });
    expect(statusOf({ ...failing, unsealed: true })).to.not.have.property('sealFailure');
  });

  it('of a sealed node without peers counts its contact from its start', () => {
    const { state, ...rest } = statusOf({
      config: config({ license: { expiry_time: '2030-01-01T00:00:00Z' } }),
      unsealed: false,
    });
    expect(state).to.equal('sealed');
    expect(rest).to.deep.include({ heartbeats: { intervalMs: 1000, sinceMs: 0, durationMs: 0, clockSkewMs: 0 } });
    expect(rest).to.not.have.property('license');
  });
});

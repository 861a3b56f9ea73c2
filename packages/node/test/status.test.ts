import { type Config, parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { nodeStatus, type StatusParts } from '../src/status.ts';

const config = (more: object = {}): Config =>
  parseConfig({ node_id: 'n1', data_dir: '/nowhere', listeners: [{ address: '127.0.0.1:0', tls_disable: true }], ...more });

/** The status of an initialized node, active if it has services. */
const statusOf = (parts: { readonly config: Config; readonly unsealed: boolean }) =>
  nodeStatus({
    config: parts.config,
    clusterName: undefined,
    removed: false,
    initialized: true,
    services: parts.unsealed ? ({ sinceMs: 1 } as StatusParts['services']) : undefined,
    commitIndex: 7,
    cluster: undefined,
    eligibility: { activeForCertain: true } as StatusParts['eligibility'],
  });

describe('the status of a node', () => {
  it('of an active node has the license of the configuration', () => {
    const license = { expiry_time: '2030-01-01T00:00:00Z' };
    expect(statusOf({ config: config({ license }), unsealed: true })).to.deep.include({
      state: 'active',
      lastWal: 7,
      license: { expiryUtcMs: Date.UTC(2030, 0, 1) },
    });
    expect(statusOf({ config: config(), unsealed: true })).to.not.have.property('license');
  });

  it('of a sealed node without peers counts its contact from its start', () => {
    const { state, ...rest } = statusOf({
      config: config({ license: { expiry_time: '2030-01-01T00:00:00Z' } }),
      unsealed: false,
    });
    expect(state).to.equal('sealed');
    expect(rest).to.deep.include({ echoes: { intervalMs: 1000, sinceMs: 0, durationMs: 0, clockSkewMs: 0 } });
    expect(rest).to.not.have.property('license');
  });
});

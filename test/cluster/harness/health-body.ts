// The body of sys/health for each code: its exact fields.
import { expect } from 'chai';
import type { HealthSeen } from './live-node.ts';

const always = [
  'initialized',
  'sealed',
  'standby',
  'replication_performance_mode',
  'replication_dr_mode',
  'server_time_utc',
  'version',
  'performance_standby',
  'enterprise',
  'echo_duration_ms',
  'clock_skew_ms',
  'replication_primary_canary_age_ms',
  'cluster_name',
  'cluster_id',
];
const heartbeat = ['removed_from_cluster', 'ha_connection_healthy', 'last_request_forwarding_heartbeat_ms'];

interface Row {
  readonly fields: readonly string[];
  readonly values: Readonly<Record<string, unknown>>;
}

const sealed = { initialized: true, sealed: true, standby: true, performance_standby: false };
const standby = { initialized: true, sealed: false, standby: true };
const disabled = { replication_performance_mode: 'disabled', replication_dr_mode: 'disabled' };
const unknown = { replication_performance_mode: 'unknown', replication_dr_mode: 'unknown' };
const inContact = { ha_connection_healthy: true, removed_from_cluster: false };
const noHeartbeats = { echo_duration_ms: 0, clock_skew_ms: 0 };

const rows: Readonly<Record<number, Row>> = {
  200: {
    fields: [...always, 'last_wal'],
    values: { initialized: true, sealed: false, standby: false, performance_standby: false, ...disabled, ...noHeartbeats },
  },
  429: {
    fields: [...always, ...heartbeat],
    values: { ...standby, performance_standby: false, removed_from_cluster: false },
  },
  473: {
    fields: [...always, ...heartbeat],
    values: { ...standby, performance_standby: true, ...disabled, ...inContact },
  },
  474: {
    fields: [...always, ...heartbeat],
    values: { ...standby, performance_standby: false, ...unknown, ha_connection_healthy: false, removed_from_cluster: false },
  },
  501: {
    fields: always,
    values: { ...sealed, initialized: false, cluster_id: '', cluster_name: '', ...unknown, ...noHeartbeats },
  },
  503: { fields: [...always, ...heartbeat], values: { ...sealed, ...unknown, removed_from_cluster: false } },
  530: { fields: [...always, 'removed_from_cluster'], values: { ...sealed, removed_from_cluster: true } },
};

/** Fails unless each field of the body is as the code requires. */
export function expectHealthBody({ code, body, headers }: HealthSeen): void {
  const row = rows[code];
  if (row === undefined) throw new Error(`no node answers ${code} to health`);
  // Only an active node shows an operator's license, and none is configured here.
  expect(Object.keys(body), `fields of ${code}`).to.have.members([...row.fields]);
  expect(body, `body of ${code}`).to.include({ ...row.values, enterprise: true });
  for (const name of ['server_time_utc', 'echo_duration_ms', 'clock_skew_ms', 'replication_primary_canary_age_ms'])
    expect(body[name], name).to.satisfy(Number.isInteger);
  expect(body['version']).to.match(/^\d+\.\d+\.\d+/);
  if (code !== 501) {
    expect(body['cluster_id']).to.match(/^[0-9a-f-]{32,36}$/);
    expect(body['cluster_name']).to.be.a('string').that.is.not.equal('');
  }
  if (code === 200) expect(body['last_wal']).to.be.a('number').that.is.greaterThan(0);
  if (row.fields.includes('last_request_forwarding_heartbeat_ms'))
    expect(body['last_request_forwarding_heartbeat_ms']).to.be.a('number').that.is.at.least(0);
  expect(headers.get('cache-control')).to.equal('no-store');
  expect(headers.get('content-type')).to.match(/^application\/json/);
}

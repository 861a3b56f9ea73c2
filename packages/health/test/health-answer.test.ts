import { expect } from 'chai';
import type { HealthQuery } from '../src/health-query.ts';
import {
  type HealthCode,
  healthAnswer,
  healthResponseText,
  type Moment,
  type NodeStatus,
  parseHealthQuery,
} from '../src/index.ts';

const query = (text: string): HealthQuery => {
  const parsed = parseHealthQuery(new URLSearchParams(text));
  if (parsed === undefined) throw new Error(`refused: ${text}`);
  return parsed;
};

const now: Moment = { monotonicMs: 100_000, utcMs: 1_750_000_000_999 };
const cluster = { id: 'c0ffee00-0000-4000-8000-000000000000', name: 'main' };
const identity = { version: '0.1.0', cluster };
const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;
const heartbeats = {
  intervalMs: 1000,
  sinceMs: 50_000,
  answeredSentMs: 99_500.4,
  durationMs: 3.6,
  clockSkewMs: -12.2,
  replication,
};
const secondary = { performance: 'disabled', disasterRecovery: 'secondary' } as const;
const bootstrapping = { performance: 'disabled', disasterRecovery: 'bootstrapping' } as const;
const stale = { ...heartbeats, answeredSentMs: 98_000 };
const silent = { intervalMs: 1000, sinceMs: 99_000, durationMs: 0, clockSkewMs: 0 };
const silentTooLong = { ...silent, sinceMs: 98_000 };

/** Every state, and every change of state that the passing of time causes. */
const statuses: readonly {
  name: string;
  status: NodeStatus;
  code: number;
  override: HealthCode;
  okay?: 'standbyok' | 'perfstandbyok';
}[] = [
  { name: 'uninitialized', status: { state: 'uninitialized', version: '0.1.0' }, code: 501, override: 'uninitcode' },
  { name: 'removed', status: { state: 'removed', ...identity }, code: 530, override: 'removedcode' },
  { name: 'sealed', status: { state: 'sealed', ...identity, heartbeats }, code: 503, override: 'sealedcode' },
  {
    name: 'sealed without contact',
    status: { state: 'sealed', ...identity, heartbeats: silentTooLong },
    code: 503,
    override: 'sealedcode',
  },
  {
    name: 'standby without an answer in time',
    status: { state: 'standby', ...identity, heartbeats: stale },
    code: 474,
    override: 'haunhealthycode',
  },
  {
    name: 'standby that never found an active node',
    status: { state: 'standby', ...identity, heartbeats: silentTooLong },
    code: 474,
    override: 'haunhealthycode',
  },
  {
    name: 'performance standby without an answer in time',
    status: { state: 'performance_standby', ...identity, heartbeats: stale, appliedSentMs: 98_000 },
    code: 474,
    override: 'haunhealthycode',
  },
  {
    name: 'DR standby without an answer in time',
    status: { state: 'dr_standby', ...identity, heartbeats: stale },
    code: 474,
    override: 'haunhealthycode',
  },
  { name: 'DR standby', status: { state: 'dr_standby', ...identity, heartbeats }, code: 472, override: 'drsecondarycode' },
  {
    name: 'DR standby that never found an active node',
    status: { state: 'dr_standby', ...identity, heartbeats: silentTooLong },
    code: 474,
    override: 'haunhealthycode',
  },
  {
    name: 'DR standby just unsealed',
    status: { state: 'dr_standby', ...identity, heartbeats: silent },
    code: 472,
    override: 'drsecondarycode',
  },
  {
    name: 'DR standby without a state',
    status: { state: 'dr_standby', ...identity, heartbeats: { ...heartbeats, replication: bootstrapping } },
    code: 472,
    override: 'drsecondarycode',
  },
  {
    name: 'DR active node without a state',
    status: { state: 'dr_active', ...identity, lastWal: 7, replication: bootstrapping },
    code: 472,
    override: 'drsecondarycode',
  },
  {
    name: 'sealed on a secondary',
    status: { state: 'sealed', ...identity, heartbeats: { ...heartbeats, replication: secondary } },
    code: 503,
    override: 'sealedcode',
  },
  { name: 'DR active node', status: { state: 'dr_active', ...identity, lastWal: 7 }, code: 472, override: 'drsecondarycode' },
  {
    name: 'performance standby',
    status: { state: 'performance_standby', ...identity, heartbeats, appliedSentMs: 98_001 },
    code: 473,
    override: 'performancestandbycode',
    okay: 'perfstandbyok',
  },
  {
    name: 'performance standby that has fallen behind',
    status: { state: 'performance_standby', ...identity, heartbeats, appliedSentMs: 98_000 },
    code: 429,
    override: 'standbycode',
    okay: 'standbyok',
  },
  {
    name: 'standby',
    status: { state: 'standby', ...identity, heartbeats },
    code: 429,
    override: 'standbycode',
    okay: 'standbyok',
  },
  {
    name: 'standby just unsealed',
    status: { state: 'standby', ...identity, heartbeats: silent },
    code: 429,
    override: 'standbycode',
    okay: 'standbyok',
  },
  { name: 'active', status: { state: 'active', ...identity, lastWal: 7 }, code: 200, override: 'activecode' },
];

const overrides: readonly HealthCode[] = [
  'activecode',
  'standbycode',
  'drsecondarycode',
  'performancestandbycode',
  'haunhealthycode',
  'uninitcode',
  'sealedcode',
  'removedcode',
];

describe('healthAnswer', () => {
  for (const { name, status, code, override, okay } of statuses) {
    describe(`for a node that is ${name}`, () => {
      it(`has the code ${code}`, () => {
        expect(healthAnswer(status, query(''), now).code).to.equal(code);
      });

      for (const each of overrides) {
        it(`${each === override ? 'follows' : 'ignores'} ${each}`, () => {
          expect(healthAnswer(status, query(`${each}=299`), now).code).to.equal(each === override ? 299 : code);
        });
      }

      for (const each of ['standbyok', 'perfstandbyok'] as const) {
        it(`${each === okay ? 'responds as active with' : 'ignores'} ${each}`, () => {
          expect(healthAnswer(status, query(`${each}=true`), now).code).to.equal(each === okay ? 200 : code);
          expect(healthAnswer(status, query(`${each}=true&activecode=222`), now).code).to.equal(
            each === okay || code === 200 ? 222 : code,
          );
          expect(healthAnswer(status, query(`${each}=false`), now).code).to.equal(code);
        });
      }

      it('has the same body for every code', () => {
        const text = `${overrides.map((each, i) => `${each}=${400 + i}`).join('&')}&standbyok=1&perfstandbyok=1`;
        expect(healthAnswer(status, query(text), now).body).to.deep.equal(healthAnswer(status, query(''), now).body);
      });
    });
  }

  it('gives standbyok precedence over standbycode, and perfstandbyok over performancestandbycode', () => {
    const standby: NodeStatus = { state: 'standby', ...identity, heartbeats };
    const performanceStandby: NodeStatus = { state: 'performance_standby', ...identity, heartbeats, appliedSentMs: 99_000 };
    expect(healthAnswer(standby, query('standbyok=true&standbycode=299'), now).code).to.equal(200);
    expect(healthAnswer(performanceStandby, query('perfstandbyok=true&performancestandbycode=299'), now).code).to.equal(200);
  });

  it('becomes unhealthy exactly two heartbeat intervals after the newest answered heartbeat was sent', () => {
    const standby: NodeStatus = { state: 'standby', ...identity, heartbeats: { ...heartbeats, answeredSentMs: 10_000 } };
    expect(healthAnswer(standby, query(''), { ...now, monotonicMs: 11_999.9 }).code).to.equal(429);
    expect(healthAnswer(standby, query(''), { ...now, monotonicMs: 12_000 }).code).to.equal(474);
  });
});

describe('the health report', () => {
  const text = (name: string): string => {
    const found = statuses.find((each) => each.name === name);
    if (found === undefined) throw new Error(name);
    return healthResponseText(healthAnswer(found.status, query(''), now));
  };
  const head = (initialized: boolean, sealed: boolean, standby: boolean, performance: string, dr: string) =>
    `{"initialized":${initialized},"sealed":${sealed},"standby":${standby},"replication_performance_mode":"${performance}","replication_dr_mode":"${dr}","server_time_utc":1750000000,"version":"0.1.0"`;
  const known = ',"cluster_name":"main","cluster_id":"c0ffee00-0000-4000-8000-000000000000"';
  const nameless = ',"cluster_name":"","cluster_id":""';
  const extended = (performanceStandby: boolean, heartbeatMs: number, skewMs: number) =>
    `,"performance_standby":${performanceStandby},"enterprise":true,"echo_duration_ms":${heartbeatMs},"clock_skew_ms":${skewMs},"replication_primary_canary_age_ms":0`;
  const contact = (healthy: boolean, ms: number) =>
    `,"removed_from_cluster":false,"ha_connection_healthy":${healthy},"last_request_forwarding_heartbeat_ms":${ms}`;

  for (const [name, expected] of [
    ['uninitialized', `${head(false, true, true, 'unknown', 'unknown')}${nameless}${extended(false, 0, 0)}}`],
    ['removed', `${head(true, true, true, 'unknown', 'unknown')}${known}${extended(false, 0, 0)},"removed_from_cluster":true}`],
    ['sealed', `${head(true, true, true, 'unknown', 'unknown')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`],
    [
      'sealed without contact',
      `${head(true, true, true, 'unknown', 'unknown')}${known}${extended(false, 0, 0)}${contact(false, 2000)}}`,
    ],
    [
      'standby without an answer in time',
      `${head(true, false, true, 'unknown', 'unknown')}${known}${extended(false, 4, -12)}${contact(false, 2000)}}`,
    ],
    [
      'standby that never found an active node',
      `${head(true, false, true, 'unknown', 'unknown')}${known}${extended(false, 0, 0)}${contact(false, 2000)}}`,
    ],
    [
      'performance standby without an answer in time',
      `${head(true, false, true, 'unknown', 'unknown')}${known}${extended(false, 4, -12)}${contact(false, 2000)}}`,
    ],
    ['DR standby', `${head(true, false, true, 'disabled', 'secondary')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`],
    [
      'DR standby that never found an active node',
      `${head(true, false, true, 'unknown', 'unknown')}${known}${extended(false, 0, 0)}${contact(false, 2000)}}`,
    ],
    [
      'DR standby just unsealed',
      `${head(true, false, true, 'unknown', 'secondary')}${known}${extended(false, 0, 0)}${contact(false, 1000)}}`,
    ],
    [
      'DR standby without a state',
      `${head(true, false, true, 'disabled', 'bootstrapping')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`,
    ],
    [
      'DR active node without a state',
      `${head(true, false, false, 'disabled', 'bootstrapping')}${known}${extended(false, 0, 0)},"last_wal":7}`,
    ],
    [
      'sealed on a secondary',
      `${head(true, true, true, 'unknown', 'unknown')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`,
    ],
    ['DR active node', `${head(true, false, false, 'disabled', 'secondary')}${known}${extended(false, 0, 0)},"last_wal":7}`],
    [
      'performance standby',
      `${head(true, false, true, 'disabled', 'disabled')}${known}${extended(true, 4, -12)}${contact(true, 500)}}`,
    ],
    [
      'performance standby that has fallen behind',
      `${head(true, false, true, 'disabled', 'disabled')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`,
    ],
    ['standby', `${head(true, false, true, 'disabled', 'disabled')}${known}${extended(false, 4, -12)}${contact(true, 500)}}`],
    [
      'standby just unsealed',
      `${head(true, false, true, 'unknown', 'unknown')}${known}${extended(false, 0, 0)}${contact(false, 1000)}}`,
    ],
    ['active', `${head(true, false, false, 'disabled', 'disabled')}${known}${extended(false, 0, 0)},"last_wal":7}`],
  ] as const) {
    it(`of a node that is ${name} has its fields in the documented order and ends with a newline`, () => {
      expect(text(name)).to.equal(`${expected}\n`);
    });
  }

  it('has empty cluster names until the node has joined a cluster', () => {
    const { body } = healthAnswer({ state: 'sealed', version: '0.1.0', heartbeats }, query(''), now);
    expect(body).to.include({ cluster_id: '', cluster_name: '' });
  });

  it('has the field for a heartbeat of 0 ms', () => {
    const status: NodeStatus = { state: 'standby', ...identity, heartbeats: { ...heartbeats, answeredSentMs: now.monotonicMs } };
    expect(healthAnswer(status, query(''), now).body).to.include({
      last_request_forwarding_heartbeat_ms: 0,
      ha_connection_healthy: true,
    });
  });

  it("computes the canary age by this node's clock, including skew", () => {
    const status: NodeStatus = { state: 'standby', ...identity, heartbeats, canaryUtcMs: now.utcMs - 1500.4 };
    expect(healthAnswer(status, query(''), now).body.replication_primary_canary_age_ms).to.equal(1500);
  });

  for (const { expiryUtcMs, terminated } of [
    { expiryUtcMs: now.utcMs + 1, terminated: false },
    { expiryUtcMs: now.utcMs, terminated: true },
  ]) {
    it(`reports a configured license, ${terminated ? 'expired' : 'valid'}`, () => {
      const status: NodeStatus = { state: 'active', ...identity, lastWal: 1, license: { expiryUtcMs } };
      expect(healthAnswer(status, query(''), now).body.license).to.deep.equal({
        expiry_time: new Date(expiryUtcMs).toISOString(),
        state: 'autoloaded',
        terminated,
      });
    });
  }

  it('has integers in all numeric fields', () => {
    for (const { status } of statuses) {
      const { body } = healthAnswer(status, query(''), now);
      for (const [name, value] of Object.entries(body))
        if (typeof value === 'number') expect(Number.isInteger(value), name).to.equal(true);
    }
  });
});

import { type HeartbeatTimes, healthAnswer, type NodeStatus, parseHealthQuery } from '@transitd/health';
import { expect } from 'chai';
import { healthSchema } from '../../src/openapi/health-document.ts';
import { DeclaredAnswers, violations } from '../declared-answers.ts';
import { type RealNode, realNode } from '../real-node.ts';

const identity = { version: '1', cluster: { id: 'c', name: 'n' } };
const modes = { performance: 'disabled', disasterRecovery: 'secondary' } as const;
const heartbeats: HeartbeatTimes = {
  intervalMs: 1,
  sinceMs: 0,
  answeredSentMs: 0,
  durationMs: 1,
  clockSkewMs: 0,
  replication: modes,
};
const states: Readonly<Record<string, NodeStatus>> = {
  'an uninitialized node': { state: 'uninitialized', version: '1' },
  'a removed node': { state: 'removed', ...identity },
  'a sealed node': { state: 'sealed', ...identity, heartbeats },
  'a node whose seal does not open': { state: 'sealed', ...identity, heartbeats, sealFailure: 'unreachable' },
  'a standby': { state: 'standby', ...identity, heartbeats, canaryUtcMs: 0 },
  'a performance standby': { state: 'performance_standby', ...identity, heartbeats, appliedSentMs: 0 },
  'a DR standby': { state: 'dr_standby', ...identity, heartbeats },
  'a DR active node': { state: 'dr_active', ...identity, lastWal: 1, replication: modes },
  'the active node': { state: 'active', ...identity, lastWal: 1, license: { expiryUtcMs: 0 } },
};

describe('the declared answers', () => {
  const query = parseHealthQuery(new URLSearchParams());
  for (const [name, status] of Object.entries(states))
    it(`have every member of the health report of ${name}`, () => {
      const { body } = query === undefined ? expect.fail() : healthAnswer(status, query, { monotonicMs: 0, utcMs: 0 });
      expect(violations(healthSchema, JSON.parse(JSON.stringify(body)), 'health')).to.deep.equal([]);
    });

  it('name a member that is missing from them, and one that is missing in the answer', () => {
    const body = { ...Object.fromEntries(Object.keys(healthSchema.properties ?? {}).map((name) => [name, true])), more: 1 };
    expect(violations(healthSchema, body, 'health')).to.include('health.more is not declared');
    expect(violations(healthSchema, {}, 'health')).to.include('health.sealed is missing');
  });

  describe('of a node', () => {
    let real: RealNode;
    before(async () => {
      real = await realNode();
    });
    after(() => real.close());

    it('have every member of the answers to GET and LIST', async () => {
      const declared = new DeclaredAnswers(real.routes);
      const [endless, binary] = [['sys/monitor'], ['sys/storage/raft/snapshot']];
      const paths = real.routes.filter(({ path }) => !/[:*]/.test(path) && ![...endless, ...binary].includes(path));
      let successes = 0;
      for (const { path, operations } of paths)
        for (const verb of ['GET', 'LIST'] as const) {
          if (operations[verb] === undefined) continue;
          const asked = verb === 'LIST' ? `${path}?list=true` : path;
          const response = await fetch(`${real.url}/${asked}`, { headers: { 'X-Service-Token': real.rootToken } });
          const answer = { status: response.status, text: await response.text() };
          if (response.ok) successes += 1;
          declared.check('GET', asked, answer, real.node.services?.mounts);
        }
      expect(successes).to.be.above(20);
    });
  });
});

import { expect } from 'chai';
import { pino } from 'pino';
import { NodeMaintenance } from '../src/maintenance.ts';

type Parts = ConstructorParameters<typeof NodeMaintenance>;

describe('the tasks of the active node', () => {
  for (const [change, end] of [
    ['is sealed', { services: undefined }],
    ['loses its role', { active: false }],
  ] as const)
    it(`end without a failure on a node that ${change} while they begin`, async () => {
      const node = { services: {}, active: true, asked: 0 };
      const member = {
        barrier: {},
        snapshots: { clearLeftovers: async () => undefined },
        featureLevel: { maintain: async () => void Object.assign(node, end) },
        services: node,
        role: {
          get isActive() {
            return node.active;
          },
        },
        engine: {
          get replication() {
            node.asked += 1;
            return undefined;
          },
        },
      };
      const maintenance = new NodeMaintenance(
        { log: pino({ level: 'silent' }) } as unknown as Parts[0],
        { phases: { member } } as unknown as Parts[1],
      );
      await maintenance.runActiveTasks();
      expect(node.asked, 'nothing else was begun').to.equal(0);
    });
});

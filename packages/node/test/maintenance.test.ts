import { expect } from 'chai';
import { pino } from 'pino';
import { NodeMaintenance, type NodeMaintenanceParts } from '../src/maintenance.ts';

describe('the tasks of the active node', () => {
  for (const [change, end] of [
    ['is sealed', { services: undefined }],
    ['loses its role', { active: false }],
  ] as const)
    it(`end without a failure on a node that ${change} while they begin`, async () => {
      const node = { services: {}, active: true, asked: 0 };
      const maintenance = new NodeMaintenance({
        clusterMember: {
          store: { barrier: {} },
          featureLevel: { maintain: async () => void Object.assign(node, end) },
          get engine() {
            node.asked += 1;
            return undefined;
          },
        },
        serviceLoader: node,
        isActive: () => node.active,
        log: pino({ level: 'silent' }),
      } as unknown as NodeMaintenanceParts);
      await maintenance.runActiveTasks();
      expect(node.asked, 'nothing else was begun').to.equal(0);
    });
});

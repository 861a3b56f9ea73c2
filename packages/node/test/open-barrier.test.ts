import { Barrier, type SealConfig } from '@transitd/barrier';
import { memoryStore, type Replica } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { type BarrierParts, openBarrier } from '../src/open-barrier.ts';

const [former, present] = ['former', 'present'].map((id, i) => ({ id, key: Buffer.alloc(32, i + 1) }));

describe('the barrier of a node', () => {
  it('is followed first by the seal of the node, then by its services, and logs in words that its seal was written', async () => {
    const store = Object.assign(memoryStore(), { status: () => ({ valuesWritten: 0 }) }) as unknown as Replica;
    const now = () => Date.now();
    const [before, after] = [
      { type: 'static', current: former },
      { type: 'static', current: present, previous: former },
    ] as unknown as readonly [SealConfig, SealConfig];
    const founder = await Barrier.open({ store, seal: before, now, valuesWritten: () => 0 });
    await founder.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    founder.close();

    const followers: string[] = [];
    const lines: string[] = [];
    const parts = {
      config: { barrier_rotation: { max_operations: 2 ** 32, interval: 0 } },
      seal: after,
      log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
      clock: { dueNow: now },
      nodeSeal: () => ({ follow: () => void followers.push('seal') }),
      serviceLoader: { follow: () => void followers.push('services') },
    } as unknown as BarrierParts;
    const barrier = await openBarrier(parts, store);
    await barrier.autoUnseal();
    await barrier.maintain();
    barrier.close();
    expect(followers).to.deep.equal(['seal', 'services']);
    expect(lines).to.deep.equal(['wrapped the root key under the present seal key']);
  });
});

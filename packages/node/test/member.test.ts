import { Barrier, type SealConfig } from '@transitd/barrier';
import { MemberEvents } from '@transitd/cluster';
import { systemClock } from '@transitd/process';
import { unreachedSecondaries } from '@transitd/replication';
import { memoryStore, type Replica } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { BaseMember, openBarrier } from '../src/member.ts';
import type { RaftEngine } from '../src/storage/raft-engine.ts';

const [former, present] = ['former', 'present'].map((id, i) => ({ id, key: Buffer.alloc(32, i + 1) }));

describe('the barrier of a node', () => {
  it('logs in words that its seal was written', async () => {
    const store = Object.assign(memoryStore(), { status: () => ({ valuesWritten: 0 }) }) as unknown as Replica;
    const [before, after] = [
      { type: 'static', current: former },
      { type: 'static', current: present, previous: former },
    ] as unknown as readonly [SealConfig, SealConfig];
    const founder = await Barrier.open({ store, seal: before, clock: systemClock, valuesWritten: () => 0 });
    await founder.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    founder.close();

    const lines: string[] = [];
    const parts = {
      config: { barrier_rotation: { max_operations: 2 ** 32, interval: 0 } },
      opened: { seal: after },
      log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
      clock: systemClock,
    } as unknown as Parameters<typeof openBarrier>[0];
    const barrier = await openBarrier(parts, store);
    await barrier.autoUnseal();
    await barrier.maintain();
    barrier.close();
    expect(lines).to.deep.equal(['wrapped the root key under the present seal key']);
  });

  it('is followed first by the seal of the node, then by its services, then by its gateways', () => {
    const followers: string[] = [];
    const follow = (name: string) => ({ follow: () => void followers.push(name), serve: () => void followers.push(name) });
    class Member extends BaseMember<RaftEngine> {
      readonly removed = false;
      follow(): void {
        this.followBarrier(unreachedSecondaries(this.engine, this.barrier));
      }
    }
    const [host, opened] = [
      { gateways: follow('gateways') },
      { barrier: {}, events: new MemberEvents(), seal: follow('seal'), services: follow('services') },
    ] as unknown as ConstructorParameters<typeof Member>;
    new Member(host, opened).follow();
    expect(followers).to.deep.equal(['seal', 'services', 'gateways']);
  });
});

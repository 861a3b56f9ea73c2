import { expect } from 'chai';
import { LocalClock } from '../../../src/cluster/process/local-clock.ts';
import { NodeProcess } from '../../../src/cluster/process/process.ts';
import { SimClock } from '../../../src/index.ts';

function processes(rate: number) {
  const world = new SimClock();
  const clock = new LocalClock(world, rate);
  const process = new NodeProcess(world, { clock, offsetMs: 1_000, around: (task) => task() });
  return { world, process, clock };
}

describe('NodeProcess', () => {
  it('has a clock with its own rate, and timers that follow it', () => {
    const { world, process } = processes(1.1);
    const rang: number[] = [];
    process.after(110, () => rang.push(world.now()));
    world.runFor(200);
    expect(rang.map(Math.round)).to.deep.equal([100]);
    expect(process.now()).to.be.closeTo(1_220, 1e-6);
  });

  it('does nothing while it is paused, and then everything in order, by a clock that kept running', () => {
    const { world, process } = processes(1);
    const done: string[] = [];
    process.after(10, () => done.push('a'));
    process.after(20, () => done.push('b'));
    process.pause(100);
    world.runFor(99);
    expect(done).to.deep.equal([]);
    process.run(() => done.push('c'));
    world.runFor(2);
    expect(done).to.deep.equal(['a', 'b', 'c']);
    expect(process.now()).to.equal(1_101);
  });

  it('follows a clock that changes its rate, and one that stands still for a while', () => {
    const { world, process, clock } = processes(1);
    world.runFor(100);
    clock.setRate(0.9);
    world.runFor(100);
    expect(process.now()).to.be.closeTo(1_190, 1e-6);
    clock.stop(50);
    world.runFor(30);
    expect(process.now()).to.be.closeTo(1_190, 1e-6);
    clock.stop(40);
    world.runFor(50);
    expect(process.now()).to.be.closeTo(1_199, 1e-6);
    expect(process.readClocks().wallMs, 'its time of day does not stand still').to.equal(262);
  });

  it('drops its planned tasks when it dies', () => {
    const { world, process } = processes(1);
    let ran = 0;
    process.every(5, () => {
      ran += 1;
    });
    world.runFor(12);
    process.kill();
    process.run(() => {
      ran += 100;
    });
    world.runFor(100);
    expect(ran).to.equal(2);
  });
});

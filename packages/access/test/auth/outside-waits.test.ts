import { expect } from 'chai';
import { OutsideWaits } from '../../src/auth/outside-waits.ts';
import { refusal } from '../fixtures.ts';

describe('logins that wait for servers outside the cluster', () => {
  it('are at most 16 for one server and 48 in all, below the limit of 64 on all logins', async () => {
    const waits = new OutsideWaits();
    const { promise: hanging, resolve: release } = Promise.withResolvers<string>();
    const enter = (server: string, wait = () => hanging): Promise<string> => waits.run({ server }, 'too many', wait);
    const waiting = ['a', 'b', 'c'].flatMap((server) => {
      const ofServer = Array.from({ length: 16 }, () => enter(server));
      return [...ofServer, refusal(enter(server))];
    });
    const other = refusal(enter('d', async () => 'answered at once'));
    release('answered');
    const ends = await Promise.all([...waiting, other]);
    expect(ends.filter((end) => end === 'answered')).to.have.length(48);
    expect(ends.filter((end) => end.startsWith('busy_logins'))).to.have.length(4);
  });

  it('of one caller have at most half of the places for one server', async () => {
    const waits = new OutsideWaits();
    const { promise: hanging, resolve: release } = Promise.withResolvers<string>();
    const enter = (server: string, caller: string): Promise<string> =>
      refusal(waits.run({ server, caller }, 'too many', () => hanging));
    const flood = Array.from({ length: 12 }, () => enter('a', 'x'));
    const others = [enter('a', 'y'), enter('b', 'x')];
    release('answered');
    expect((await Promise.all(flood)).filter((end) => end === 'none')).to.have.length(8);
    expect(await Promise.all(others)).to.deep.equal(['none', 'none']);
  });

  it('free their places when they end, also by an error', async () => {
    const waits = new OutsideWaits();
    for (let i = 0; i < 100; i++) {
      const failing = waits.run({ server: 'a' }, 'too many', () => Promise.reject(new Error('no answer')));
      expect(await failing.catch(({ message }: Error) => message)).to.equal('no answer');
    }
    expect(await waits.run({ server: 'a' }, 'too many', async () => 'answered')).to.equal('answered');
  });
});

import { expect } from 'chai';
import { Link } from './memory-link.ts';
import { epochId, otherId, TestPrimary, TestSecondary } from './session-fixtures.ts';

const inSync = (primary: TestPrimary, secondary: TestSecondary) => () => secondary.current?.index === primary.index;
const filled = (count: number): TestPrimary => {
  const primary = new TestPrimary();
  for (let at = 0; at < count; at++) primary.write(`transit/key-${at}`, `value ${at}`);
  return primary;
};
/** Returns a secondary that has the first state of the primary. */
const followed = (): TestSecondary => {
  const secondary = new TestSecondary();
  if (secondary.current !== undefined)
    secondary.current = { ...secondary.current, index: 10, epochs: [{ number: 1, id: epochId, start: 10 }] };
  return secondary;
};
/** Delivers frames and heartbeats until the condition holds. */
const beats = (link: Link, condition: () => boolean): Promise<void> =>
  link.until(() => {
    link.nowMs += 250;
    link.primary.tick();
    return condition();
  });

describe('the registration of a secondary', () => {
  it('is committed before the hello is answered', async () => {
    const [primary, secondary] = [filled(1), followed()];
    const { promise, resolve } = Promise.withResolvers<void>();
    let isAsked = false;
    primary.register = () => {
      isAsked = true;
      return promise;
    };
    const link = new Link(primary, secondary);
    await link.until(() => isAsked);
    link.primary.tick();
    expect(link.seen).to.deep.equal(['<hello']);
    resolve();
    await link.until(inSync(primary, secondary));
    expect(primary.registrations).to.deep.equal(['east']);
    await beats(link, () => secondary.countings > 0);
    expect(secondary.countings).to.equal(1);
  });

  it('counts for a secondary only once it has everything that the primary had at the welcome', async () => {
    const [primary, secondary] = [filled(3), followed()];
    const { promise, resolve } = Promise.withResolvers<'committed'>();
    secondary.commit = () => promise;
    const link = new Link(primary, secondary);
    await beats(link, () => secondary.answers > 3);
    expect([primary.registrations, secondary.countings]).to.deep.equal([['east'], 0]);
    resolve('committed');
    await beats(link, () => secondary.countings > 0);
    expect(inSync(primary, secondary)()).to.equal(true);
  });

  it('counts for one that goes on with its first state only once it has what was written before the welcome', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    link.primary.tick();
    await link.until(() => secondary.answers > 0);
    const { promise, resolve } = Promise.withResolvers<'committed'>();
    secondary.commit = () => promise;
    primary.write('transit/used', 'the primary does not wait for this secondary yet');
    await beats(link, () => link.seen.includes('>welcome') && secondary.answers > 6);
    expect(secondary.countings).to.equal(0);
    expect(secondary.current?.index).to.be.lessThan(primary.index);
    resolve('committed');
    await beats(link, () => secondary.countings > 0);
    expect(inSync(primary, secondary)()).to.equal(true);
  });

  it('of one without a state waits until it says hello with one', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    expect([primary.registrations, secondary.countings]).to.deep.equal([[], 0]);
    link.cut();
    const again = new Link(primary, secondary);
    await beats(again, () => secondary.countings > 0);
    expect(primary.registrations).to.deep.equal(['east']);
  });

  it('of one that goes on with its first state follows once it answers a heartbeat that was sent after that', async () => {
    const [primary, secondary] = [filled(1), new TestSecondary()];
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    link.primary.tick();
    await link.until(() => link.seen.includes('>heartbeat'));
    expect([primary.registrations, secondary.countings], 'it may be about to be sealed').to.deep.equal([[], 0]);
    await beats(link, () => secondary.countings > 0);
    expect(primary.registrations).to.deep.equal(['east']);
    primary.write('transit/later', 'value');
    link.primary.progress();
    await link.until(inSync(primary, secondary));
    expect(link.ends).to.deep.equal({});
  });

  it('of one whose state is replaced is told to it on the same connection, although it said hello in another epoch', async () => {
    const [primary, secondary] = [filled(1), followed()];
    if (primary.current !== undefined)
      primary.current = { ...primary.current, epochs: [{ number: 2, id: otherId, start: 10 }], seen: 2 };
    const link = new Link(primary, secondary);
    await link.until(inSync(primary, secondary));
    expect([primary.registrations, secondary.countings]).to.deep.equal([['east'], 0]);
    link.primary.tick();
    await link.until(() => link.seen.includes('>heartbeat'));
    await beats(link, () => secondary.countings > 0);
    expect(link.ends).to.deep.equal({});
  });

  it('is told to one that receives the whole state again when all of that was sent', async () => {
    const [primary, secondary] = [filled(30), followed()];
    secondary.wantsWholeState = true;
    const { promise, resolve } = Promise.withResolvers<'committed'>();
    secondary.commit = () => promise;
    const link = new Link(primary, secondary);
    await beats(link, () => secondary.answers > 3);
    expect(link.seen).to.include('>records').and.not.include('>welcome');
    resolve('committed');
    await beats(link, () => secondary.countings > 0);
    expect(link.seen.indexOf('>welcome')).to.be.greaterThan(link.seen.indexOf('>end'));
    expect(link.ends).to.deep.equal({});
  });

  it('counts for a secondary only once it has adopted the epoch of the primary', async () => {
    const [primary, secondary] = [filled(1), followed()];
    if (primary.current !== undefined)
      primary.current = {
        ...primary.current,
        epochs: [...primary.current.epochs, { number: 2, id: otherId, start: 11 }],
        seen: 2,
      };
    const countings: (readonly [string, number])[] = [];
    secondary.commit = async ({ kind }) => {
      countings.push([kind, secondary.countings]);
      return 'committed';
    };
    const link = new Link(primary, secondary);
    await beats(link, () => secondary.countings > 0);
    expect(countings[0]).to.deep.equal(['adopt', 0]);
    expect(secondary.current?.epochs.at(-1)?.number).to.equal(2);
    expect(link.ends).to.deep.equal({});
  });

  it('ends the connection without an answer when it is refused', async () => {
    const [primary, secondary] = [filled(1), followed()];
    const error = new Error('revoked');
    primary.register = () => Promise.reject(error);
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['primary'] !== undefined);
    expect(link.ends['primary']).to.deep.equal({ why: 'failed', error });
    expect(link.seen).to.deep.equal(['<hello']);
  });

  it('comes before the answer is decided', async () => {
    const [primary, secondary] = [filled(1), followed()];
    primary.register = async () => {
      primary.current = undefined;
    };
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['primary'] !== undefined);
    expect(link.ends['primary']).to.deep.equal({ why: 'not_active' });
  });
});

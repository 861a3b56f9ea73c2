import { expect } from 'chai';
import type { JSONWebKeySet } from 'jose';
import { TestClock } from '../../../process/test/test-clock.ts';
import { ProviderKeys } from '../../src/auth/jwt/provider-keys.ts';

const minutes = 60_000;

/** A provider of which a test ends each fetch. */
function provider() {
  const clock = new TestClock();
  const fetches: PromiseWithResolvers<JSONWebKeySet>[] = [];
  const keys = new ProviderKeys(() => {
    const begun = Promise.withResolvers<JSONWebKeySet>();
    fetches.push(begun);
    return begun.promise;
  }, clock);
  const set = (kid: string): JSONWebKeySet => ({ keys: [{ kty: 'EC', kid }] });
  const ends = (kid: string): void => fetches.at(-1)?.resolve(set(kid));
  const fails = (): void => fetches.at(-1)?.reject(new Error('no connection'));
  const kidOf = async (from: JSONWebKeySet | Promise<JSONWebKeySet>) => (await from).keys[0]?.kid;
  return { clock, keys, fetches, ends, fails, kidOf };
}

describe('the keys of a provider', () => {
  it('are those of one fetch, however many logins wait for it', async () => {
    const { keys, fetches, ends, kidOf } = provider();
    const waiting = [keys.current(), keys.current(), keys.newest()].map(kidOf);
    ends('a');
    expect(await Promise.all(waiting)).to.deep.equal(['a', 'a', 'a']);
    expect(fetches).to.have.length(1);
    expect(keys.current()).to.not.be.instanceOf(Promise);
  });

  it('are asked for at most once a second, however many tokens name unknown keys', async () => {
    const { clock, keys, fetches, ends, kidOf } = provider();
    const first = kidOf(keys.newest());
    ends('a');
    await first;
    for (; clock.ms < 10_000; clock.ms += 10) {
      const asked = keys.newest();
      ends('a');
      await asked;
    }
    expect(fetches).to.have.length(10);
  });

  it('are waited for by the logins that begin when they are five minutes old', async () => {
    const { clock, keys, fetches, ends, kidOf } = provider();
    const first = kidOf(keys.current());
    ends('a');
    await first;
    clock.ms = 5 * minutes - 1;
    expect(keys.current()).to.not.be.instanceOf(Promise);
    clock.ms += 1;
    const next = [kidOf(keys.current()), kidOf(keys.current())];
    ends('b');
    expect(await Promise.all(next)).to.deep.equal(['b', 'b']);
    expect(fetches).to.have.length(2);
  });

  it('are kept while the provider gives none, without a wait for one that hangs, and end after an hour', async () => {
    const { clock, keys, fetches, ends, fails, kidOf } = provider();
    const first = kidOf(keys.current());
    ends('a');
    await first;
    clock.ms = 5 * minutes;
    const waits = kidOf(keys.current());
    fails();
    expect(await waits).to.equal('a');
    clock.ms += 1000;
    expect(await kidOf(keys.current())).to.equal('a');
    expect(fetches, 'one that hangs').to.have.length(3);
    clock.ms += 10_000;
    expect(keys.current()).to.not.be.instanceOf(Promise);
    expect(fetches).to.have.length(3);
    fails();
    clock.ms = 60 * minutes - 1;
    expect(await kidOf(keys.current())).to.equal('a');
    fails();
    clock.ms += 1000;
    const none = kidOf(keys.current()).catch(({ message }: Error) => message);
    fails();
    expect(await none).to.equal('no connection');
    clock.ms += 1000;
    const again = kidOf(keys.current());
    ends('b');
    expect(await again).to.equal('b');
    expect(keys.current()).to.not.be.instanceOf(Promise);
  });

  it('are fetched once for a login, however long that took', async () => {
    const { clock, keys, fetches, fails } = provider();
    const sinceMs = clock.ms;
    const current = Promise.resolve(keys.current()).catch(({ message }: Error) => message);
    clock.ms += 5000;
    fails();
    expect(await current).to.equal('no connection');
    expect(await keys.newest(sinceMs).catch(({ message }: Error) => message)).to.equal('no connection');
    expect(fetches).to.have.length(1);
    clock.ms += 1;
    void keys.newest().catch(() => undefined);
    expect(fetches).to.have.length(2);
  });

  it('of a slow fetch do not replace those of a later one', async () => {
    const { clock, keys, fetches, kidOf } = provider();
    const slow = kidOf(keys.fetch());
    clock.ms = 1;
    const fast = kidOf(keys.fetch());
    fetches[1]?.resolve({ keys: [{ kty: 'EC', kid: 'new' }] });
    expect(await fast).to.equal('new');
    fetches[0]?.resolve({ keys: [{ kty: 'EC', kid: 'old' }] });
    expect(await slow).to.equal('old');
    expect(await kidOf(keys.current())).to.equal('new');
  });
});

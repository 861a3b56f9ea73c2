import { randomBytes } from 'node:crypto';
import { Barrier, ciphertextCharactersMax, keyIdCharactersMax, type ProviderFailure, type SealConfig } from '@transitd/barrier';
import { noObserver } from '@transitd/process';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { SealBackend } from '../../src/backend/seal-backend.ts';
import { MonitoredSeal } from '../../src/monitored-seal.ts';
import { keptLog } from '../kept-log.ts';
import { providerErrorOf } from './provider-error-of.ts';

/** How a provider behaves: `garbles` answers in another form, with a success. */
export type Behavior = 'serves' | 'away' | 'refuses' | 'throttles' | 'garbles';

/** A provider with two keys, and a seal for each. */
export interface ContractProvider {
  readonly seal: SealBackend;
  readonly otherKey: SealBackend;
  /** Texts that no error may contain. */
  readonly secrets: readonly string[];
  behave(behavior: Behavior): void;
  /** Makes a new version of the first key; absent if keys have none. */
  readonly rotate?: () => void;
  close(): Promise<void>;
}

const failures: Readonly<Partial<Record<Behavior, ProviderFailure>>> = {
  away: 'unreachable',
  refuses: 'permission',
  throttles: 'throttled',
  garbles: 'malformed',
};
const none = Buffer.alloc(0);

/**
 * Describes what every provider of a seal must do, whatever its protocol is.
 * @param without - behaviors that this provider cannot show; `rotates` if its keys have no versions, `draws` if it gives no random bytes
 */
export function describeContract(
  type: string,
  open: () => Promise<ContractProvider>,
  without: readonly (Behavior | 'rotates' | 'draws')[] = [],
): void {
  describe(`the provider of a seal of type ${type}`, () => {
    let provider: ContractProvider;
    beforeEach(async () => {
      provider = await open();
    });
    afterEach(() => provider.close());
    const key = randomBytes(32);

    const failureOf = async (attempt: Promise<unknown>): Promise<ProviderFailure> => {
      const error = await providerErrorOf(attempt);
      for (const secret of [...provider.secrets, key.toString('base64'), key.toString('base64url')])
        expect(`${error.message} ${error.summary}`).to.not.include(secret);
      expect(error.message).to.match(/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{20,1200}$/u);
      return error.failure;
    };
    const monitored = (backend: SealBackend): SealConfig => ({
      type: backend.type,
      provider: new MonitoredSeal({
        backend,
        log: keptLog().log,
        observer: noObserver,
        nowMs: () => 0,
        utcMs: () => 0,
        random: () => 0,
      }),
    });
    const openBarrier = (store: Store, seal: SealConfig) =>
      Barrier.open({ store, seal, valuesWritten: () => 0, clock: clockOf(() => 1_000_000) });
    const recordIn = async (store: Store): Promise<Record<string, unknown>> =>
      JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString()) as Record<string, unknown>;

    it('decrypts what it encrypted, and encrypts differently each time, in a form that the record can store', async () => {
      const [one, other] = [await provider.seal.wrap(key), await provider.seal.wrap(key)];
      expect(one.ciphertext).to.not.equal(other.ciphertext);
      for (const { keyId, ciphertext } of [one, other]) {
        expect(keyId.length).to.be.within(1, keyIdCharactersMax);
        expect(ciphertext.length).to.be.within(1, ciphertextCharactersMax);
        expect(ciphertext).to.match(/^[\x21-\x7e]+$/);
        expect(await provider.seal.unwrap({ keyId, ciphertext })).to.deep.equal(key);
      }
    });

    it('does not decrypt what another key encrypted', async () => {
      const wrapped = await provider.otherKey.wrap(key);
      expect(await failureOf(provider.seal.unwrap(wrapped))).to.equal('wrong_key');
      const { keyId } = await provider.seal.wrap(key);
      expect(await failureOf(provider.seal.unwrap({ ...wrapped, keyId }))).to.equal('wrong_key');
    });

    it('does not decrypt a ciphertext that was changed', async () => {
      const { keyId, ciphertext } = await provider.seal.wrap(key);
      const at = ciphertext.length - 8;
      const changed = `${ciphertext.slice(0, at)}${ciphertext[at] === 'A' ? 'B' : 'A'}${ciphertext.slice(at + 1)}`;
      expect(await failureOf(provider.seal.unwrap({ keyId, ciphertext: changed }))).to.equal('wrong_key');
    });

    for (const [behavior, failure] of Object.entries(failures) as [Behavior, ProviderFailure][]) {
      if (without.includes(behavior)) continue;
      it(`is ${failure} when it ${behavior === 'away' ? 'is away' : behavior}, and serves again afterwards`, async () => {
        const wrapped = await provider.seal.wrap(key);
        provider.behave(behavior);
        expect(await failureOf(provider.seal.wrap(key))).to.equal(failure);
        expect(await failureOf(provider.seal.unwrap(wrapped))).to.equal(failure);
        provider.behave('serves');
        expect(await provider.seal.unwrap(wrapped)).to.deep.equal(key);
      });
    }

    it('draws different random bytes each time, in any number up to 1024; or says that this kind of seal gives none', async () => {
      const draw = provider.seal.random?.bind(provider.seal);
      expect(draw !== undefined).to.equal(!without.includes('draws'));
      if (draw === undefined) return;
      for (const bytes of [1, 33, 1024]) expect(await draw(bytes)).to.have.lengthOf(bytes);
      expect(await draw(32)).to.not.deep.equal(await draw(32));
      for (const [behavior, failure] of Object.entries(failures) as [Behavior, ProviderFailure][]) {
        if (without.includes(behavior)) continue;
        provider.behave(behavior);
        expect(await failureOf(draw(32))).to.equal(failure);
      }
    });

    it('seals a barrier that unseals by itself after a restart', async () => {
      const store = memoryStore();
      const barrier = await openBarrier(store, monitored(provider.seal));
      await barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
      expect(barrier.sealStatus).to.include({ type, sealed: false, recoverySeal: true });
      const again = await openBarrier(store, monitored(provider.seal));
      await again.autoUnseal();
      expect(again.state.sealed).to.equal(false);
      const stranger = await openBarrier(store, monitored(provider.otherKey));
      expect(await failureOf(stranger.autoUnseal())).to.equal('wrong_key');
      expect(stranger.state.sealed).to.equal(true);
    });

    // If the test's provider makes no new version, the key ID stays, and the test fails.
    if (!without.includes('rotates'))
      it('encrypts under a new version of its key, still decrypts the old one, and the barrier is rewrapped', async () => {
        const before = await provider.seal.wrap(key);
        const store = memoryStore();
        const seal = monitored(provider.seal);
        const barrier = await openBarrier(store, seal);
        await barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
        const { keyId } = await recordIn(store);
        provider.rotate?.();
        expect(await provider.seal.unwrap(before)).to.deep.equal(key);
        if ('provider' in seal) await seal.provider.wrap(key); // as the probe does
        expect(await barrier.maintain()).to.include({ rewrapped: true });
        expect((await recordIn(store))['keyId']).to.not.equal(keyId);
        const again = await openBarrier(store, monitored(provider.seal));
        await again.autoUnseal();
        expect(again.state.sealed).to.equal(false);
      });
  });
}

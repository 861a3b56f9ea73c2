import { expect } from 'chai';
import { anything, encryptOne, fox, newEngine, refusalOf } from '../fixtures.ts';

describe('the observer of the use of keys', () => {
  const observedEngine = () => {
    const uses: string[] = [];
    const observer = {
      began: (items: number) => {
        uses.push(`began ${items}`);
        return (failed: boolean) => uses.push(failed ? 'failed' : 'ended');
      },
      generating: () => {
        uses.push('generating');
        return (failed: boolean) => uses.push(failed ? 'not generated' : 'generated');
      },
    };
    return { ...newEngine({ observer }), uses };
  };

  it('is told the number of inputs before a key is used, and the end afterwards', async () => {
    const { engine, uses } = observedEngine();
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect(uses.splice(0)).to.deep.equal(['generating', 'generated', 'began 1', 'ended']);
    await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: fox }, { plaintext: fox }] });
    expect(uses.splice(0)).to.deep.equal(['began 2', 'ended']);
    await engine.ciphertexts.decrypt('k', { ciphertext });
    await engine.ciphertexts.datakey('k', { kind: 'wrapped' });
    expect(uses).to.deep.equal(['began 1', 'ended', 'began 1', 'ended']);
  });

  it('is told when a key or a version is generated, but not when its material is given', async () => {
    const { engine, uses } = observedEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    await engine.rotateKey('k');
    expect(uses.splice(0)).to.deep.equal(['generating', 'generated', 'generating', 'generated']);
    await engine.createKey('k', {});
    await refusalOf(engine.createKey('m', { type: 'managed_key' }));
    expect(uses).to.deep.equal(['generating', 'not generated']);
  });

  it('is told that a use failed, and the refusal stays the same', async () => {
    const { engine, uses } = observedEngine();
    await engine.createKey('k', {});
    const request = { ciphertext: 'svc:v1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' };
    const plain = newEngine();
    await plain.engine.createKey('k', {});
    const refusal = await refusalOf(engine.ciphertexts.decrypt('k', request));
    expect(refusal).to.deep.equal(await refusalOf(plain.engine.ciphertexts.decrypt('k', request)));
    expect(uses).to.deep.equal(['generating', 'generated', 'began 1', 'failed']);
  });

  it('may skip a use', async () => {
    const { engine } = newEngine({ observer: { began: () => undefined, generating: () => undefined } });
    expect(await encryptOne(engine, 'k', { plaintext: fox })).to.have.property('ciphertext');
  });
});

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ProviderError, type ProviderHealth, type SealProvider, type WrappedKey } from '../../src/index.ts';

/** A provider in memory whose key has versions. A test may make it fail, or return something else. */
export class FakeProvider implements SealProvider {
  readonly type = 'transit';
  readonly health: ProviderHealth = { healthy: true };
  keyId: string | undefined;
  /** Number of calls of either method. */
  calls = 0;
  /** Thrown by both methods while it is set. */
  failure: ProviderError | undefined;
  /** Runs before each decryption. */
  beforeUnwrap: (() => void) | undefined;
  /** Changes what a decryption returns. */
  change: (key: Buffer) => Buffer = (key) => key;
  readonly #versions = [randomBytes(32)];

  rotate(): void {
    this.#versions.push(randomBytes(32));
  }

  async wrap(key: Uint8Array): Promise<WrappedKey> {
    this.#refuse();
    const version = this.#versions.length;
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#versions[version - 1] ?? Buffer.alloc(0), nonce);
    const box = Buffer.concat([nonce, cipher.update(key), cipher.final(), cipher.getAuthTag()]);
    this.keyId = `fake:v${version}`;
    return { keyId: this.keyId, ciphertext: `v${version}:${box.toString('base64')}` };
  }

  async unwrap({ ciphertext }: WrappedKey): Promise<Buffer> {
    this.#refuse();
    this.beforeUnwrap?.();
    const [, version, text = ''] = /^v(\d+):(.+)$/.exec(ciphertext) ?? [];
    const box = Buffer.from(text, 'base64');
    const decipher = createDecipheriv(
      'aes-256-gcm',
      this.#versions[Number(version) - 1] ?? Buffer.alloc(32),
      box.subarray(0, 12),
    );
    decipher.setAuthTag(box.subarray(-16));
    try {
      return this.change(Buffer.concat([decipher.update(box.subarray(12, -16)), decipher.final()]));
    } catch {
      throw new ProviderError('wrong_key', 'the key does not open the ciphertext');
    }
  }

  #refuse(): void {
    this.calls += 1;
    if (this.failure !== undefined) throw this.failure;
  }
}

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Symmetric keys by name, with versions, as a provider keeps them. Its ciphertexts name the key and the version. */
export class KeysOfAProvider {
  readonly #keys = new Map<string, Buffer[]>();

  constructor(...names: readonly string[]) {
    for (const name of names) this.#keys.set(name, [randomBytes(32)]);
  }

  /** Returns the number of the newest version; undefined without the key. */
  newest(name: string): number | undefined {
    return this.#keys.get(name)?.length;
  }

  remove(name: string): void {
    this.#keys.delete(name);
  }

  rotate(name: string): void {
    this.#keys.get(name)?.push(randomBytes(32));
  }

  encrypt(name: string, plaintext: Buffer, context: string): Buffer {
    const versions = this.#keys.get(name) ?? [];
    const [iv, version] = [randomBytes(12), versions.length];
    const cipher = createCipheriv('aes-256-gcm', versions[version - 1] ?? Buffer.alloc(0), iv).setAAD(Buffer.from(context));
    return Buffer.concat([Buffer.of(version), iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  }

  /** Returns undefined if this key did not encrypt it in this context. */
  decrypt(name: string, ciphertext: Buffer, context: string): Buffer | undefined {
    const key = this.#keys.get(name)?.[(ciphertext[0] ?? 0) - 1];
    if (key === undefined || ciphertext.length < 29) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', key, ciphertext.subarray(1, 13)).setAAD(Buffer.from(context));
    decipher.setAuthTag(ciphertext.subarray(-16));
    try {
      return Buffer.concat([decipher.update(ciphertext.subarray(13, -16)), decipher.final()]);
    } catch {
      return undefined;
    }
  }
}

import { ciphertextCharactersMax, ProviderError, type WrappedKey } from '@transitd/barrier';
import { z } from 'zod';
import type { SealBackend } from '../backend/seal-backend.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Expiring } from '../http/expiring.ts';
import { bodyOf, failureOfStatus, sendTo, serviceError } from '../http/service-answer.ts';

export interface AzureKeyVaultSealParts {
  readonly vaultName: string;
  /** Name of an RSA key. */
  readonly keyName: string;
  readonly token: Pick<Expiring<string>, 'get' | 'forget'>;
  readonly exchange: Exchange;
}

const versionPattern = /^[0-9a-f]{32}$/;
const result = z.object({
  kid: z.string().max(1024),
  value: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/)
    .max(ciphertextCharactersMax),
});

/** A seal with an RSA key in Azure Key Vault. The key wraps with RSA-OAEP and SHA-256 (RFC 8017 §7.1), which has no associated data. */
export class AzureKeyVaultSeal implements SealBackend {
  readonly type = 'azurekeyvault';
  readonly #parts: AzureKeyVaultSealParts;

  constructor(parts: AzureKeyVaultSealParts) {
    this.#parts = parts;
  }

  async wrap(plaintext: Uint8Array): Promise<WrappedKey> {
    const { kid, value } = await this.#operate('wrapkey', '', Buffer.from(plaintext).toString('base64url'));
    const version = kid.slice(kid.lastIndexOf('/') + 1);
    if (!versionPattern.test(version))
      throw new ProviderError('malformed', `${this.#name} does not name the version of the key: check the name of the vault`);
    return { keyId: `${this.#keyPath}/${version}`, ciphertext: value };
  }

  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    const version = keyId.slice(this.#keyPath.length + 1);
    if (keyId !== `${this.#keyPath}/${version}` || !versionPattern.test(version))
      throw new ProviderError('wrong_key', `${this.#name} has not encrypted the stored key: that was ${keyId}`);
    return Buffer.from((await this.#operate('unwrapkey', version, ciphertext)).value, 'base64url');
  }

  /** @param version - empty for the newest version */
  async #operate(operation: 'wrapkey' | 'unwrapkey', version: string, value: string): Promise<z.output<typeof result>> {
    const { keyName, token, exchange } = this.#parts;
    const answer = await sendTo(exchange, this.#name, {
      method: 'POST',
      path: `/keys/${keyName}/${version}/${operation}?api-version=7.4`,
      headers: { authorization: `Bearer ${await token.get()}` },
      body: { alg: 'RSA-OAEP-256', value },
    });
    if (answer.status === 200) return bodyOf(result, answer, this.#name);
    if (answer.status === 401) token.forget();
    throw serviceError(failureOfStatus(answer.status), this.#name, answer, 'the rights wrapKey and unwrapKey for it');
  }

  get #keyPath(): string {
    return `${this.#parts.vaultName}/${this.#parts.keyName}`;
  }

  get #name(): string {
    return `the azurekeyvault seal with the key ${this.#keyPath}`;
  }
}

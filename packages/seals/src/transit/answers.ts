import { ciphertextCharactersMax, ProviderError } from '@transitd/barrier';
import { z } from 'zod';
import type { ProviderAnswer } from '../http/exchange.ts';
import { printable } from '../http/printable.ts';

/** A key of a transit engine, as error texts and paths name it. */
export interface TransitKey {
  readonly address: string;
  /** Path of the mount, without a leading or trailing slash. */
  readonly mountPath: string;
  readonly keyName: string;
}

const ciphertextPattern = /^[a-z][a-z0-9]{0,31}:v([1-9]\d{0,8}):[A-Za-z0-9+/=]+$/;
const encrypted = z.object({ data: z.object({ ciphertext: z.string().max(ciphertextCharactersMax).regex(ciphertextPattern) }) });
const decrypted = z.object({ data: z.object({ plaintext: z.base64().max(1024) }) });
const drawn = z.object({ data: z.object({ random_bytes: z.base64().max(2048) }) });
const renewed = z.object({ auth: z.object({ lease_duration: z.number().min(0), renewable: z.boolean() }) });
const lookedUp = z.object({ data: z.object({ ttl: z.number().min(0) }) });
const sealState = z.object({ type: z.string(), sealed: z.boolean(), cluster_id: z.string().optional() });

/** Returns the ciphertext of an encryption and the version of the key. @throws ProviderError */
export function ciphertextIn(answer: ProviderAnswer, key: TransitKey): { readonly ciphertext: string; readonly version: number } {
  const { ciphertext } = parsed(encrypted, answer, key).data;
  return { ciphertext, version: Number(ciphertextPattern.exec(ciphertext)?.[1]) };
}

/** Returns the plaintext of a decryption, which the caller wipes. @throws ProviderError */
export const plaintextIn = (answer: ProviderAnswer, key: TransitKey): Buffer =>
  Buffer.from(parsed(decrypted, answer, key).data.plaintext, 'base64');

/** Returns drawn random bytes, which the caller wipes. @throws ProviderError */
export function randomIn(answer: ProviderAnswer, key: TransitKey): Buffer {
  const { status } = answer;
  if (status === 403)
    throw new ProviderError(
      'permission',
      `${at(key)} refuses the token: status ${status}${reasonIn(answer.json)}. It may have expired; for random bytes, it needs the ` +
        `capability update on ${key.mountPath}/random`,
    );
  if (status === 400 || status === 404 || status === 405)
    throw new ProviderError('unsupported', `${at(key)} gives no random bytes: status ${status}${reasonIn(answer.json)}`);
  return Buffer.from(parsed(drawn, answer, key).data.random_bytes, 'base64');
}

/** Returns the remaining lifetime of a renewed token in seconds. @throws ProviderError */
export function renewalIn(answer: ProviderAnswer, key: TransitKey): { readonly ttlS: number; readonly renewable: boolean } {
  const { lease_duration, renewable } = parsed(renewed, answer, key).auth;
  return { ttlS: lease_duration, renewable };
}

/** Returns the remaining lifetime of a token in seconds; 0: it does not expire. @throws ProviderError */
export const ttlIn = (answer: ProviderAnswer, key: TransitKey): number => parsed(lookedUp, answer, key).data.ttl;

/** Returns the provider's own seal status; undefined if the answer is not a seal status. */
export function sealStateIn({ status, json }: ProviderAnswer): z.output<typeof sealState> | undefined {
  const result = sealState.safeParse(json);
  return status === 200 && result.success ? result.data : undefined;
}

function parsed<S extends z.ZodType>(schema: S, answer: ProviderAnswer, key: TransitKey): z.output<S> {
  if (answer.status !== 200) throw failureOf(answer, key);
  const result = schema.safeParse(answer.json);
  if (result.success) return result.data;
  throw new ProviderError(
    'malformed',
    `${at(key)} returned an answer that does not come from a transit engine: check the address`,
  );
}

/** Returns the error for an answer that is not a success, in one sentence that says what to do. */
export function failureOf({ status, json, retryAfterMs }: ProviderAnswer, key: TransitKey): ProviderError {
  const options = retryAfterMs === undefined ? {} : { retryAfterMs };
  const said = `status ${status}${reasonIn(json)}`;
  const path = `${key.mountPath}/${key.keyName}`;
  if (status === 429) return new ProviderError('throttled', `${at(key)} limits the rate of requests: ${said}`, options);
  if (status === 401 || status === 403)
    return new ProviderError(
      'permission',
      `${at(key)} refuses the token: ${said}. It may have expired; it needs the capability update on ` +
        `${key.mountPath}/encrypt/${key.keyName} and ${key.mountPath}/decrypt/${key.keyName}`,
      options,
    );
  if (status === 400 || status === 404 || status === 422)
    return new ProviderError('wrong_key', `${at(key)} cannot use the key ${path} for this: ${said}`, options);
  if (status >= 500 || status === 408 || status === 412 || status === 472 || status === 473)
    return new ProviderError('unreachable', `${at(key)} cannot serve now: ${said}`, options);
  if (status >= 300 && status < 400)
    return new ProviderError(
      'malformed',
      `${at(key)} redirects, which is not followed: configure the address that it redirects to`,
    );
  return new ProviderError(
    'malformed',
    `${at(key)} returned an answer that does not come from a transit engine: ${said}`,
    options,
  );
}

export const at = ({ address }: TransitKey): string => `the transit seal at ${address}`;

/** Returns the first of `errors`. */
function reasonIn(json: unknown): string {
  const errors = typeof json === 'object' && json !== null && 'errors' in json ? json.errors : undefined;
  const [first] = Array.isArray(errors) ? errors : [];
  if (typeof first !== 'string' || first === '') return '';
  return `: ${printable(first)}`;
}

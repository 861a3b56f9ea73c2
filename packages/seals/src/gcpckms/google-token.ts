import { createPrivateKey } from 'node:crypto';
import { ProviderError } from '@transitd/barrier';
import { readSecretFile, reasonOf } from '@transitd/process';
import { z } from 'zod';
import { fetchAccessToken, grantRequest } from '../http/access-token.ts';
import type { Connect } from '../http/exchange.ts';
import { type Credential, Expiring } from '../http/expiring.ts';

export interface GoogleTokenParts {
  /** File with the key of a service account. Absent if the service account of the instance is used. */
  readonly credentialsFile: string | undefined;
  readonly connect: Connect;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

const metadataAddress = 'http://metadata.google.internal';
const scope = 'https://www.googleapis.com/auth/cloudkms';
/** Longest lifetime that Google accepts for an assertion. */
const assertionS = 3600;

const serviceAccount = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(1).max(512),
  private_key_id: z.string().max(512).optional(),
  private_key: z.string().includes('PRIVATE KEY').max(16_384),
  token_uri: z.url({ protocol: /^https$/ }).default('https://oauth2.googleapis.com/token'),
});

/**
 * Keeps an access token of a service account: with an assertion signed by its key (RFC 7523), otherwise from the metadata server. `get`
 * throws ProviderError.
 */
export function googleToken(parts: GoogleTokenParts): Expiring<string> {
  return new Expiring(() => fetchToken(parts), parts.nowMs);
}

async function fetchToken(parts: GoogleTokenParts): Promise<Credential<string>> {
  const { credentialsFile, connect, nowMs } = parts;
  if (credentialsFile !== undefined) return fromKey(parts, credentialsFile);
  const name = 'the metadata server of this instance';
  const path = '/computeMetadata/v1/instance/service-accounts/default/token';
  const request = { method: 'GET', path, headers: { 'metadata-flavor': 'Google' } } as const;
  return fetchAccessToken({ connect, address: metadataAddress, name, nowMs }, request);
}

async function fromKey({ connect, nowMs }: GoogleTokenParts, file: string): Promise<Credential<string>> {
  const account = await readServiceAccount(file);
  const url = new URL(account.token_uri);
  const name = `the authority ${url.origin}`;
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: await assertionOf(account, nowMs()) };
  return fetchAccessToken({ connect, address: url.origin, name, nowMs }, grantRequest(url.pathname, form));
}

/** Reads the key of a service account. @param user - id of the user who runs the node @throws ProviderError `permission` */
export async function readServiceAccount(file: string, user?: number): Promise<z.output<typeof serviceAccount>> {
  let json: unknown;
  try {
    json = JSON.parse(readSecretFile(file, user).toString('utf8'));
  } catch (error) {
    // A parser's message may quote the text, which contains the key.
    const reason = error instanceof SyntaxError ? 'it is not JSON' : reasonOf(error);
    throw new ProviderError('permission', `seal.credentials_file cannot be read: ${reason}`);
  }
  const parsed = serviceAccount.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new ProviderError('permission', `seal.credentials_file ${file} does not contain the key of a service account`);
}

/** Returns a JSON Web Token signed with RSASSA-PKCS1-v1_5 and SHA-256 (RFC 7515, RS256). */
async function assertionOf(account: z.output<typeof serviceAccount>, nowMs: number): Promise<string> {
  const { client_email: iss, private_key, private_key_id: kid, token_uri: aud } = account;
  const iat = Math.floor(nowMs / 1000);
  const { SignJWT } = await import('jose');
  try {
    return await new SignJWT({ iss, scope, aud, iat, exp: iat + assertionS })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid !== undefined && { kid }) })
      .sign(createPrivateKey(private_key));
  } catch {
    throw new ProviderError('permission', 'the private key of the service account cannot be used: create another key');
  }
}

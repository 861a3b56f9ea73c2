import { ProviderError } from '@transitd/barrier';
import { z } from 'zod';
import type { Connect, ProviderAnswer, ProviderRequest } from './exchange.ts';
import type { Credential } from './expiring.ts';
import { refusalIn, sendTo } from './service-answer.ts';

const issued = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.union([z.number().positive(), z.string().regex(/^[1-9]\d{0,8}$/)]).transform(Number),
});

export interface TokenService {
  readonly connect: Connect;
  readonly address: string;
  /** Name of the service; error texts begin with it. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

/** Asks a service for an access token. @throws ProviderError */
export async function fetchAccessToken(
  { connect, address, name, nowMs }: TokenService,
  request: ProviderRequest,
): Promise<Credential<string>> {
  return accessTokenIn(await sendTo(connect(address), name, request), name, nowMs());
}

/** Returns the request of an OAuth 2.0 grant (RFC 6749 §4). */
export const grantRequest = (path: string, form: Readonly<Record<string, string>>): ProviderRequest => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(form).toString(),
});

/** Returns the access token in an OAuth 2.0 response (RFC 6749 §5.1). Azure's instance metadata service sends `expires_in` as a string. */
function accessTokenIn(answer: ProviderAnswer, name: string, nowMs: number): Credential<string> {
  const { status, retryAfterMs } = answer;
  const options = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status === 429) throw new ProviderError('throttled', `${name} limits the rate of requests`, options);
  if (status >= 500) throw new ProviderError('unreachable', `${name} cannot serve now: ${refusalIn(answer).said}`, options);
  if (status !== 200) throw new ProviderError('permission', `${name} gives no token: ${refusalIn(answer).said}`, options);
  const parsed = issued.safeParse(answer.json);
  if (!parsed.success) throw new ProviderError('malformed', `${name} returned an answer without a token`);
  return { value: parsed.data.access_token, endsAtMs: nowMs + parsed.data.expires_in * 1000 };
}

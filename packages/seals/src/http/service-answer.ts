import { ProviderError, type ProviderFailure } from '@transitd/barrier';
import { reasonOf } from '@transitd/process';
import { z } from 'zod';
import type { Exchange, ProviderAnswer, ProviderRequest } from './exchange.ts';
import { printable } from './printable.ts';

/** Sends a request. @param name - name of the service; error texts begin with it @throws ProviderError `unreachable` */
export async function sendTo(exchange: Exchange, name: string, request: ProviderRequest): Promise<ProviderAnswer> {
  try {
    return await exchange(request);
  } catch (error) {
    throw new ProviderError('unreachable', `${name} does not answer: ${reasonOf(error)}`, { cause: error });
  }
}

/** Returns the body of a successful answer. @throws ProviderError `malformed` if it does not match the schema */
export function bodyOf<S extends z.ZodType>(form: S, { json }: ProviderAnswer, name: string): z.output<S> {
  const result = form.safeParse(json);
  if (result.success) return result.data;
  throw new ProviderError('malformed', `${name} returned an unexpected answer: check the configuration of the seal`);
}

/** The errors of Google, of Azure, and of OAuth 2.0 (RFC 6749 §5.2). */
const refusal = z.union([
  z.object({ error: z.object({ status: z.string().optional(), code: z.union([z.string(), z.number()]), message: z.string() }) }),
  z.object({ error: z.string(), error_description: z.string().optional() }),
]);

/** Returns the code of an error and its text: `code: message`. */
export function refusalIn({ status, json }: ProviderAnswer): { readonly code: string; readonly said: string } {
  const { data } = refusal.safeParse(json);
  const [code, message = ''] =
    data === undefined
      ? ['']
      : 'error_description' in data || typeof data.error === 'string'
        ? [String(data.error), 'error_description' in data ? data.error_description : '']
        : [String(data.error.status ?? data.error.code), data.error.message];
  const parts = [`status ${status}`, code, message].filter((part) => part !== '');
  return { code, said: parts.map(printable).join(': ') };
}

/** Returns the kind of failure by the HTTP status, for an answer whose error code is not known. */
export function failureOfStatus(status: number): ProviderFailure {
  if (status === 429) return 'throttled';
  if (status === 401 || status === 403) return 'permission';
  if (status === 400 || status === 404 || status === 409) return 'wrong_key';
  return status >= 500 || status === 408 ? 'unreachable' : 'malformed';
}

const says: Readonly<Record<ProviderFailure, string>> = {
  unreachable: 'cannot serve now',
  throttled: 'limits the rate of requests',
  permission: 'refuses the credentials of this node',
  wrong_key: 'cannot use the key for this',
  malformed: 'returned an unexpected answer',
  cycle: 'is this cluster itself',
  unsupported: 'does not do this',
};

/** @param hint - what the credentials need */
export function serviceError(failure: ProviderFailure, name: string, answer: ProviderAnswer, hint: string): ProviderError {
  const text = failure === 'permission' ? `${says.permission}, which need ${hint}` : says[failure];
  const options = answer.retryAfterMs === undefined ? {} : { retryAfterMs: answer.retryAfterMs };
  return new ProviderError(failure, `${name} ${text}: ${refusalIn(answer).said}`, options);
}

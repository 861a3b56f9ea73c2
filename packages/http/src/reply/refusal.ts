import type { Reply } from './reply.ts';

/** Status and retry advice of a refusal. */
export interface RefusalStatus {
  readonly status: number;
  /** `unknown`: the write may still take effect, so only an idempotent request may be retried. */
  readonly outcome: 'refused' | 'unknown';
  /** After this time a retry is likely to succeed. */
  readonly retryAfterSeconds?: number;
  /** The reply has an empty list of errors, because the resource does not exist. */
  readonly silent?: true;
}

export const refused = (status: number): RefusalStatus => ({ status, outcome: 'refused' });
export const refusedForNow = (status: number): RefusalStatus => ({ status, outcome: 'refused', retryAfterSeconds: 1 });

/** Returns the reply to a refusal. @param message - sent to the caller; an empty message becomes `{"errors":[]}` */
export function refusalReply(
  { status, outcome, retryAfterSeconds, silent }: RefusalStatus,
  message: string,
  warnings: readonly string[] = [],
): Reply {
  const text = outcome === 'unknown' ? `outcome unknown, the change may still take effect: ${message}` : message;
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  return { status, errors: silent || message === '' ? [] : [text], ...(warnings.length > 0 && { warnings }), headers };
}

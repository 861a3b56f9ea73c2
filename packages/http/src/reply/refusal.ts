import { errorsBody } from './envelope.ts';
import type { Reply } from './reply.ts';

/** How a refusal is answered. */
export interface Answer {
  readonly status: number;
  /** `unknown`: the write may still take effect, so only a request that is safe to repeat may be repeated. */
  readonly outcome: 'refused' | 'unknown';
  /** When the reason is likely to be gone. */
  readonly retryAfterSeconds?: number;
  /** The errors are an empty list: there is nothing wrong, only nothing there. */
  readonly silent?: true;
}

export const refused = (status: number): Answer => ({ status, outcome: 'refused' });
export const refusedForNow = (status: number): Answer => ({ status, outcome: 'refused', retryAfterSeconds: 1 });

/** The reply with this answer. @param message - reaches the caller; an empty one becomes `{"errors":[]}` */
export function refusalReply({ status, outcome, retryAfterSeconds, silent }: Answer, message: string): Reply {
  const text = outcome === 'unknown' ? `outcome unknown, the change may still take effect: ${message}` : message;
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  return { status, body: errorsBody(silent || message === '' ? [] : [text]), headers };
}

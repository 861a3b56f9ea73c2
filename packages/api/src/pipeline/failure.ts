import { type Allowance, RateLimited } from '@transitd/access';
import type { Reply } from '@transitd/http';
import { errorReply, isRefusal } from './refusals.ts';
import type { PipelineOptions } from './request.ts';

/**
 * Returns the reply to an error. An unknown error is internal: it is answered with 500 and logged without any part of the request.
 * @param warnings - about the members of the request
 */
export function failureReply(
  error: unknown,
  { node, log, metrics }: Pick<PipelineOptions, 'node' | 'log' | 'metrics'>,
  warnings: readonly string[] = [],
): Reply {
  if (error instanceof RateLimited) {
    metrics.limited.inc();
    const reply = errorReply(error);
    return node.services?.quotas.config.responseHeaders === true ? withAllowance(reply, { ...error, remaining: 0 }) : reply;
  }
  if (isRefusal(error)) return errorReply(error, warnings);
  const err =
    error instanceof Error ? { name: error.name, message: error.message, stack: error.stack } : { message: String(error) };
  log.error({ err }, 'internal error');
  return { status: 500, errors: ['internal error'] };
}

/** Returns the reply with the rate limit headers. */
export const withAllowance = (reply: Reply, { limit, remaining, resetS }: Allowance): Reply => ({
  ...reply,
  headers: {
    ...reply.headers,
    'X-Ratelimit-Limit': String(limit),
    'X-Ratelimit-Remaining': String(remaining),
    'X-Ratelimit-Reset': String(resetS),
  },
});

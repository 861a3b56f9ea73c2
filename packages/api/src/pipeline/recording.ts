import type { IncomingMessage } from 'node:http';
import { plainAddress } from '@transitd/access';
import { Exchange } from '@transitd/audit';
import { forwardedByHeader, LeadershipTransferred } from '@transitd/cluster';
import { type Reply, RequestError } from '@transitd/http';
import type { Services } from '@transitd/node';
import { auditedMount } from './audited-mount.ts';
import { isRefusal } from './error-answer.ts';
import { Forward, leadershipTransferred } from './forwarding.ts';
import { requestSchema } from './request-schema.ts';
import type { Routed, ServeOptions } from './routed.ts';

/** What this node decides while it is unsealed is recorded, with few exceptions. */
export function exchangeOf(
  req: IncomingMessage,
  { operation, verb, canonical, address }: Routed & { readonly address: string },
  { audit: devices, node: { services }, forwarded }: Pick<ServeOptions, 'audit' | 'node' | 'forwarded'>,
): Exchange | undefined {
  if (devices === undefined || services === undefined || 'unaudited' in operation) return undefined;
  const { remoteAddress, remotePort } = req.socket;
  const isDirect = forwarded !== true && plainAddress(remoteAddress ?? '') === address;
  const forwarder = forwarded === true ? req.headers[forwardedByHeader] : undefined;
  return new Exchange({
    devices,
    auditKey: services.auditKey,
    mount: () => auditedMount(services, canonical),
    verb,
    path: canonical,
    address,
    port: isDirect ? remotePort : undefined,
    forwardedFrom: typeof forwarder === 'string' ? forwarder : undefined,
    reads: requestSchema(operation),
  });
}

/**
 * Nothing that this node has decided leaves before both entries of it are written; what another decides is recorded there.
 * @param failure - the answer to what was thrown
 * @throws RequestError `audit_failed`; LeadershipTransferred; what left it to another node, or to another time, to decide
 */
export async function recorded(
  deciding: Promise<Reply | Forward>,
  exchange: Exchange,
  services: Services | undefined,
  failure: (error: unknown) => Reply,
): Promise<Reply | Forward> {
  let answer: Reply | Forward;
  try {
    answer = await deciding;
  } catch (error) {
    if (isAuditFailure(error) || (!exchange.begun && isUndecided(error))) throw error;
    if (error instanceof LeadershipTransferred) {
      await exchange.end(leadershipTransferred);
      throw error;
    }
    answer = failure(error);
  }
  if (answer instanceof Forward) return answer;
  const { issued, stream } = answer;
  try {
    return await exchange.end(answer);
  } catch (error) {
    stream?.destroy();
    if (issued !== undefined) await services?.registry.revoke({ token: issued.token }).catch(() => false); // nobody has seen it
    throw error;
  }
}

export const isAuditFailure = (error: unknown): boolean => error instanceof RequestError && error.code === 'audit_failed';

/** What a node says that is not the one to decide, or that has looked at nothing of the request. */
const isUndecided = (error: unknown): boolean =>
  error instanceof LeadershipTransferred ||
  (isRefusal(error) &&
    ['index_not_reached', 'leader_changed', 'not_leader', 'overloaded', 'rate_limited', 'sealed', 'stopped'].includes(
      error.code,
    ));

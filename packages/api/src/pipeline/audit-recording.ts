import type { IncomingMessage } from 'node:http';
import { plainAddress } from '@transitd/access';
import { AuditError, type AuditedMount, type AuditWriter, Exchange } from '@transitd/audit';
import { forwardedByHeader } from '@transitd/cluster';
import { discardReply, type JsonSchema, membersOf, type Reply } from '@transitd/http';
import { accessorOf, type Node, type Services } from '@transitd/node';
import type { Operation } from '../operation/operation.ts';
import { leadershipTransferred } from './forwarding.ts';
import { type Outcome, outcomeOf, Refused, Replied, Transferred } from './outcome.ts';
import { isRefusal } from './refusals.ts';
import type { PipelineOptions, RouteMatch } from './request.ts';

/**
 * Begins the pair of audit entries of a request. Returns undefined if the request is not audited. An unsealed node audits almost all
 * requests.
 */
export function exchangeOf(
  req: IncomingMessage,
  { operation, verb, canonical }: RouteMatch,
  address: string,
  {
    audit: devices,
    node: { services },
    forwarded,
  }: Pick<PipelineOptions, 'forwarded'> & { readonly audit?: AuditWriter | undefined; readonly node: Pick<Node, 'services'> },
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
    schema: requestSchema(operation),
    repeatsData: 'repeatsData' in operation,
  });
}

/**
 * Records an outcome, so that this node sends no response before both audit entries are written. A forwarded request is recorded on the
 * active node.
 * @param failure - makes the reply to a refusal
 * @returns the outcome with the id of its audit entries; Refused with `audit_failed` if the entries cannot be written
 */
export async function recorded(
  outcome: Outcome,
  exchange: Exchange,
  services: Services | undefined,
  failure: (refused: Refused) => Reply,
): Promise<Outcome> {
  const reply = replyToRecord(outcome, exchange, failure);
  if (reply === undefined) return outcome;
  try {
    const answer = await exchange.end(reply);
    return outcome instanceof Transferred ? outcome : new Replied(answer);
  } catch (error) {
    discardReply(reply);
    // The caller will not see the new token, so it is revoked.
    if (reply.issued !== undefined) await services?.registry.revoke({ token: reply.issued.token }).catch(() => false);
    return outcomeOf(error);
  }
}

/** Returns the reply to record; undefined if this node did not decide the request. */
function replyToRecord(outcome: Outcome, exchange: Exchange, failure: (refused: Refused) => Reply): Reply | undefined {
  if (outcome instanceof Replied) return outcome.reply;
  const { begun } = exchange;
  if (outcome instanceof Transferred) return begun ? leadershipTransferred : undefined;
  if (!(outcome instanceof Refused)) return undefined;
  const { error } = outcome;
  return isAuditFailure(error) || (!begun && isUndecided(error)) ? undefined : failure(outcome);
}

export const isAuditFailure = (error: unknown): boolean => error instanceof AuditError;

/** Returns whether a refusal means that this node did not decide the request, or did not even begin to process it. */
const isUndecided = (error: unknown): boolean =>
  isRefusal(error) &&
  ['index_not_reached', 'leader_changed', 'not_leader', 'overloaded', 'rate_limited', 'sealed', 'stopped'].includes(error.code);

const schemas = new WeakMap<Operation, JsonSchema>();

/** Returns the schema of all members that an operation declares, for all auth method types. */
function requestSchema(operation: Operation): JsonSchema {
  const known = schemas.get(operation);
  if (known !== undefined) return known;
  const { takes, byType = {}, body } = operation;
  const described = [takes, ...Object.values(byType).map((each) => each.takes)].filter((fields) => fields !== undefined);
  const schema: JsonSchema = { anyOf: [...described.map(membersOf), ...(body === undefined ? [] : [body])] };
  schemas.set(operation, schema);
  return schema;
}

/** Returns the mount of a path as audit entries name it; with empty names if nothing is mounted there. @throws AccessError, StoreError */
export async function auditedMount({ mounts, logins }: Pick<Services, 'mounts' | 'logins'>, path: string): Promise<AuditedMount> {
  const [first = ''] = path.split('/', 1);
  if (first === 'sys') return { point: 'sys/', type: 'system', class: 'secret' };
  if (path === 'auth/token' || path.startsWith('auth/token/')) return { point: 'auth/token/', type: 'token', class: 'auth' };
  if (first === 'auth') {
    const method = await logins.mounts.serving(path.slice('auth/'.length));
    if (method !== undefined) {
      return { point: `auth/${method.path}/`, type: method.type, class: 'auth', accessor: method.accessor };
    }
  }
  const engine = mounts.list.find((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
  if (engine === undefined) return { point: '', type: '' };
  return { point: `${engine.path}/`, type: engine.type, class: 'secret', accessor: accessorOf(engine) };
}

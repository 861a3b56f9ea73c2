import type { IncomingMessage } from 'node:http';
import { type AuditedMount, type AuditWriter, Exchange } from '@transitd/audit';
import { forwardedByHeader } from '@transitd/cluster';
import { type JsonSchema, membersOf } from '@transitd/http';
import { accessorOf, type Node, type Services } from '@transitd/node';
import { plainAddress } from '@transitd/process';
import type { Operation } from '../operation/operation.ts';
import { isHelp } from './help.ts';
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
    verb: isHelp(operation) ? 'HELP' : verb,
    path: canonical,
    address,
    port: isDirect ? remotePort : undefined,
    forwardedFrom: typeof forwarder === 'string' ? forwarder : undefined,
    schema: requestSchema(operation),
    repeatsData: 'repeatsData' in operation,
  });
}

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

import { allows, type TokenName, type TokenRecord, ttlOf } from '@transitd/access';
import { authReply, dataReply, noContent } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { type FieldSchema, fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { textList, textsByName } from '../http/text-list.ts';
import { authJson, metaOf, tokenReply } from './auth-json.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

type Context = Parameters<GuardedOperation['run']>[0];

function operation(
  name: string,
  run: (context: Context, call: Call) => Promise<Reply>,
  { capability = 'update', sudo = false }: Partial<Pick<GuardedOperation, 'capability' | 'sudo'>> = {},
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    sudo,
    run,
  };
}

const seconds = (ms: number): number => Math.floor(ms / 1000);

function tokenJson(token: string, record: TokenRecord): string {
  const { periodS, renewedMs } = record;
  return JSON.stringify({
    accessor: record.accessor,
    ...(record.boundCidrs.length > 0 && { bound_cidrs: record.boundCidrs }),
    creation_time: seconds(record.createdMs),
    creation_ttl: record.ttlS,
    display_name: record.displayName,
    entity_id: '',
    expire_time: record.expiresMs === 0 ? null : new Date(record.expiresMs).toISOString(),
    explicit_max_ttl: record.explicitMaxTtlS,
    id: token,
    issue_time: new Date(record.createdMs).toISOString(),
    ...(renewedMs !== 0 && { last_renewal: new Date(renewedMs).toISOString(), last_renewal_time: seconds(renewedMs) }),
    meta: metaOf(record),
    num_uses: Math.max(0, record.usesLeft),
    orphan: record.parent === '',
    path: record.path,
    ...(periodS !== 0 && { period: periodS }),
    policies: record.policies,
    renewable: record.renewable,
    ...(record.role !== '' && { role: record.role }),
    ttl: ttlOf(record, Date.now()),
    type: record.type,
  });
}

const create = (makesOrphans: boolean): GuardedOperation =>
  operation('token-create', async ({ service, principal }, { body, path, params }) => {
    const role = params['role'];
    const { values, warnings } = fields(
      {
        id: 'string',
        policies: 'any',
        meta: 'any',
        no_parent: 'bool',
        no_default_policy: 'bool',
        renewable: 'bool',
        ttl: 'duration',
        lease: 'duration',
        explicit_max_ttl: 'duration',
        period: 'duration',
        display_name: 'string',
        num_uses: 'int',
        type: 'string',
        entity_alias: 'string',
      },
      body,
      params,
    );
    const granted = await service.registry.create(
      {
        id: values.id,
        policies: textList('policies', values.policies),
        noDefaultPolicy: values.no_default_policy,
        noParent: values.no_parent,
        renewable: values.renewable,
        ttlS: values.ttl ?? values.lease,
        explicitMaxTtlS: values.explicit_max_ttl,
        periodS: values.period,
        displayName: values.display_name,
        meta: textsByName('meta', values.meta),
        numUses: values.num_uses,
        type: values.type,
        entityAlias: values.entity_alias,
      },
      { principal, privileged: allows(principal, 'sudo', path), path, makesOrphans, ...(role !== undefined && { role }) },
    );
    return tokenReply(granted, warnings);
  });

/** The token that a request names in its body; empty when it names none. */
function namedToken(call: Call): { readonly token: string; readonly warnings: readonly string[] } {
  const { values, warnings } = fields({ token: 'string' }, call.body);
  return { token: values.token ?? '', warnings };
}

function requiredToken(token: string): { readonly token: string } {
  if (token === '') throw new RequestError('invalid_request', 'missing token ID');
  return { token };
}

function namedAccessor(call: Call): { readonly accessor: string; readonly warnings: readonly string[] } {
  const { values, warnings } = fields({ accessor: 'string' }, call.body);
  if (values.accessor === undefined || values.accessor === '') throw new RequestError('invalid_request', 'missing accessor');
  return { accessor: values.accessor, warnings };
}

async function shown({ service }: Context, name: TokenName, token: string, warnings: readonly string[]): Promise<Reply> {
  const found = await service.registry.find(name);
  if (found !== undefined) return dataReply(tokenJson(token, found.record), warnings);
  throw 'accessor' in name
    ? new RequestError('invalid_request', 'invalid accessor')
    : new RequestError('permission_denied', 'bad token');
}

/** The caller's own token; one of limited uses as this very request has written it, since that may have used it up. */
async function shownSelf({ service, principal, token }: Context): Promise<Reply> {
  const { id, record } = principal;
  const shown = record.usesLeft === 0 && record.type === 'service' ? (await service.registry.find({ id }))?.record : record;
  if (shown === undefined) throw new RequestError('permission_denied', 'bad token');
  return dataReply(tokenJson(token, shown));
}

const lookupSelf = operation('token-lookup-self', shownSelf, { capability: 'read' });
const lookupSelfByPost = operation('token-lookup-self', shownSelf);

/** Of the caller itself when the body names none. */
const lookup = operation('token-lookup', (context, call) => {
  const { token, warnings } = namedToken(call);
  return token === '' || token === context.token ? shownSelf(context) : shown(context, { token }, token, warnings);
});

const lookupAccessor = operation('token-lookup-accessor', (context, call) => {
  const { accessor, warnings } = namedAccessor(call);
  return shown(context, { accessor }, '', warnings);
});

const increment = { increment: 'duration' } as const;

/** @param names - the members by which the body names the token: any other has no effect, which a warning says */
async function renewedReply(
  { service }: Context,
  {
    name,
    token,
    missing,
    names,
  }: { readonly name: TokenName; readonly token: string; readonly missing: string; readonly names: FieldSchema },
  call: Call,
): Promise<Reply> {
  const { values, warnings } = fields({ ...names, ...increment }, call.body);
  const granted = await service.registry.renew(name, values.increment ?? 0);
  if (granted === undefined) throw new RequestError('invalid_request', missing);
  return authReply(authJson(token, granted), [...warnings, ...granted.warnings]);
}

const renewSelf = operation('token-renew-self', (context, call) =>
  renewedReply(context, { name: { token: context.token }, token: context.token, missing: 'token not found', names: {} }, call),
);

const renew = operation('token-renew', (context, call) => {
  const { token } = requiredToken(fields({ token: 'string', increment: 'any' }, call.body).values.token ?? '');
  return renewedReply(context, { name: { token }, token, missing: 'token not found', names: { token: 'string' } }, call);
});

const renewAccessor = operation('token-renew-accessor', (context, call) => {
  const { accessor } = namedAccessor(call);
  return renewedReply(
    context,
    { name: { accessor }, token: '', missing: 'invalid accessor', names: { accessor: 'string' } },
    call,
  );
});

const revokeSelf = operation('token-revoke-self', async ({ service, token }) => {
  await service.registry.revoke({ token });
  return noContent;
});

const revoke = operation('token-revoke', async ({ service }, call) => {
  await service.registry.revoke(requiredToken(namedToken(call).token));
  return noContent;
});

const revokeOrphan = operation(
  'token-revoke-orphan',
  async ({ service }, call) => {
    const found = await service.registry.revokeAlone(requiredToken(namedToken(call).token));
    if (!found) throw new RequestError('invalid_request', 'token to revoke not found');
    return noContent;
  },
  { sudo: true },
);

const revokeAccessor = operation('token-revoke-accessor', async ({ service }, call) => {
  const { accessor } = namedAccessor(call);
  return (await service.registry.revoke({ accessor })) ? noContent : dataReply('null', ['No token found with this accessor']);
});

const accessors = operation(
  'token-accessors',
  async ({ service }) => dataReply(JSON.stringify({ keys: await service.registry.accessors() })),
  { capability: 'list', sudo: true },
);

/** What one call clears at most; the node itself goes on with the rest. */
const tidyPieces = 20;
const tidyPiece = 500;

/** Clears what ended tokens left behind, as the node does by itself from time to time. */
const tidy = operation('token-tidy', async ({ service }) => {
  let removed = 0;
  for (let piece = 0; piece < tidyPieces; piece++) {
    const swept = await service.registry.sweep(tidyPiece);
    removed += swept.removed;
    if (swept.removed < tidyPiece) break;
  }
  return { ...dataReply('null', [`${removed} tokens that were good no more were deleted`]), status: 202 };
});

/** Making, showing, renewing and ending tokens. */
export const tokenRoutes: readonly Route[] = [
  { path: 'auth/token/create', operations: { POST: { ...create(false), adds: true } } },
  { path: 'auth/token/create/:role', operations: { POST: { ...create(false), adds: true } } },
  { path: 'auth/token/create-orphan', operations: { POST: { ...create(true), adds: true } } },
  { path: 'auth/token/lookup', operations: { POST: { ...lookup, where: 'replica' } } },
  { path: 'auth/token/lookup-self', operations: { GET: lookupSelf, POST: { ...lookupSelfByPost, where: 'replica' } } },
  { path: 'auth/token/lookup-accessor', operations: { POST: { ...lookupAccessor, where: 'replica' } } },
  { path: 'auth/token/renew', operations: { POST: renew } },
  { path: 'auth/token/renew-self', operations: { POST: renewSelf } },
  { path: 'auth/token/renew-accessor', operations: { POST: renewAccessor } },
  { path: 'auth/token/revoke', operations: { POST: revoke } },
  { path: 'auth/token/revoke-self', operations: { POST: revokeSelf } },
  { path: 'auth/token/revoke-orphan', operations: { POST: revokeOrphan } },
  { path: 'auth/token/revoke-accessor', operations: { POST: revokeAccessor } },
  { path: 'auth/token/accessors', operations: { LIST: accessors } },
  { path: 'auth/token/tidy', operations: { POST: tidy } },
];

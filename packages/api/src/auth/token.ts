import { allows, type TokenName } from '@transitd/access';
import {
  authReply,
  bool,
  credential,
  dataReply,
  duration,
  type FieldSchema,
  int,
  type Reply,
  RequestError,
  text,
  textMap,
  texts,
  writtenReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { propertiesIn } from '../operation/kept-fields.ts';
import {
  type GatewayContext,
  type GuardedOperation,
  inGateway,
  operationsOn,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { namesReply, pageFields } from '../operation/pages.ts';
import { tidyReply } from '../operation/tidy.ts';
import { authJson, shownToken, tokenReply } from '../operation/token-json.ts';

const tokenOperation = operationsOn((context: GatewayContext) => context);

const createFields = {
  id: credential('Token ID to use; requires `sudo`'),
  policies: texts("Policies; must be a subset of the creator's policies. If omitted, all policies of the creator"),
  meta: textMap('Metadata: an object with string values; returned on lookup'),
  no_parent: bool('Create a token without a parent; requires `sudo`', { default: false }),
  no_default_policy: bool('Do not add the policy `default`', { default: false }),
  renewable: bool('Create a renewable token', { default: true }),
  ttl: duration('Initial TTL; 0 uses the default of the node', { default: 0 }),
  lease: duration('Alias of `ttl`', { aliasOf: 'ttl' }),
  explicit_max_ttl: duration('Hard limit on the TTL, which no renewal exceeds', { default: 0 }),
  period: duration('Period of a periodic token: each renewal sets its TTL to this value; requires `sudo`', { default: 0 }),
  display_name: text('Name of the token in audit entries'),
  num_uses: int('Maximum number of uses; 0 for no limit', { min: 0, default: 0 }),
  type: text('Token type', { oneOf: ['service', 'batch'], default: 'service' }),
  entity_alias: text('Not supported; must be empty'),
} as const satisfies FieldSchema;
const role = text('Name of the role', { required: true });

const create = (
  about: string,
  takes: typeof createFields & { readonly role?: typeof role },
  { makesOrphans }: { readonly makesOrphans: boolean },
): GuardedOperation =>
  tokenOperation(
    'token-create',
    'update',
    { about, takes, answers: answers.issued },
    async ({ services, principal }, { values, path, params }) => {
      const { role } = params;
      const granted = await services.registry.create(
        { ...propertiesIn(createFields, values), meta: values.meta ?? {} },
        { principal, privileged: allows(principal, 'sudo', path), path, makesOrphans, ...(role !== undefined && { role }) },
      );
      return tokenReply(granted);
    },
  );

const makeChild = create('Create a token that is revoked together with its parent', createFields, { makesOrphans: false });
const makeByRole = create('Create a token with the settings of a role', { ...createFields, role }, { makesOrphans: false });
const makeOrphan = create('Create a token without a parent', createFields, { makesOrphans: true });

const tokenField = { token: credential('Token', { required: true }) };
const accessorField = { accessor: credential('Accessor of the token', { required: true }) };

function requiredToken({ token = '' }: { readonly token: string | undefined }): { readonly token: string } {
  if (token === '') throw new RequestError('invalid_request', 'missing token ID');
  return { token };
}

function requiredAccessor({ accessor = '' }: { readonly accessor: string | undefined }): { readonly accessor: string } {
  if (accessor === '') throw new RequestError('invalid_request', 'missing accessor');
  return { accessor };
}

async function lookupReply({ services }: GatewayContext, name: TokenName, token: string): Promise<Reply> {
  const found = await services.registry.find(name);
  if (found !== undefined) return dataReply(shownToken.json({ token, record: found.record, nowMs: services.tokens.nowMs }));
  throw 'accessor' in name
    ? new RequestError('invalid_request', 'invalid accessor')
    : new RequestError('permission_denied', 'bad token');
}

/** Looks up the calling token. A token with limited uses is read again, since this request has just consumed a use. */
async function lookupSelfReply({ services, principal, token }: GatewayContext): Promise<Reply> {
  const { id, record } = principal;
  const current = record.usesLeft === 0 && record.type === 'service' ? (await services.registry.find({ id }))?.record : record;
  if (current === undefined) throw new RequestError('permission_denied', 'bad token');
  return dataReply(shownToken.json({ token, record: current, nowMs: services.tokens.nowMs }));
}

const tokenAnswer = answers.data(shownToken.schema);
const ownToken = { about: 'Look up the calling token', answers: tokenAnswer };
const lookupSelf = tokenOperation('token-lookup-self', 'read', ownToken, lookupSelfReply);
const lookupSelfByPost = tokenOperation('token-lookup-self', 'update', ownToken, lookupSelfReply);

const lookup = tokenOperation(
  'token-lookup',
  'update',
  {
    about: 'Look up a token',
    takes: { token: credential('Token; the calling token if omitted') },
    answers: tokenAnswer,
  },
  (context, { values: { token = '' } }) =>
    token === '' || token === context.token ? lookupSelfReply(context) : lookupReply(context, { token }, token),
);

const lookupAccessor = tokenOperation(
  'token-lookup-accessor',
  'update',
  { about: 'Look up a token by its accessor; the token ID is not shown', takes: accessorField, answers: tokenAnswer },
  (context, { values }) => lookupReply(context, requiredAccessor(values), ''),
);

const increment = { increment: duration('Requested TTL from now; 0 for the TTL that the token was created with') };

async function renewedReply(
  { services }: GatewayContext,
  { name, token, missing }: { readonly name: TokenName; readonly token: string; readonly missing: string },
  { values, certificate }: Pick<TypedCall<typeof increment>, 'values' | 'certificate'>,
): Promise<Reply> {
  const granted = await services.registry.renew(name, values.increment ?? 0, certificate);
  if (granted === undefined) throw new RequestError('invalid_request', missing);
  return authReply(authJson(token, granted), granted.warnings);
}

const renewSelf = tokenOperation(
  'token-renew-self',
  'update',
  { about: 'Renew the calling token', takes: increment, answers: answers.issued },
  (context, call) =>
    renewedReply(context, { name: { token: context.token }, token: context.token, missing: 'token not found' }, call),
);

const renew = tokenOperation(
  'token-renew',
  'update',
  { about: 'Renew a token', takes: { ...tokenField, ...increment }, answers: answers.issued },
  (context, call) => {
    const { token } = requiredToken(call.values);
    return renewedReply(context, { name: { token }, token, missing: 'token not found' }, call);
  },
);

const renewAccessor = tokenOperation(
  'token-renew-accessor',
  'update',
  { about: 'Renew a token by its accessor', takes: { ...accessorField, ...increment }, answers: answers.issued },
  (context, call) => renewedReply(context, { name: requiredAccessor(call.values), token: '', missing: 'invalid accessor' }, call),
);

const revokeSelf = tokenOperation(
  'token-revoke-self',
  'update',
  { about: 'Revoke the calling token and its child tokens', answers: answers.written },
  async ({ services, token }) => {
    await services.registry.revoke({ token });
  },
);

/** A revocation that found nothing must not look like success: the token that the caller means may still be valid. */
const revokedReply = (found: boolean, missing: string): Reply => writtenReply(found ? [] : [missing]);

const revoke = tokenOperation(
  'token-revoke',
  'update',
  { about: 'Revoke a token and its child tokens', takes: tokenField, answers: answers.written },
  async ({ services }, { values }) =>
    revokedReply(await services.registry.revoke(requiredToken(values)), 'No such token; nothing was revoked'),
);

const revokeOrphan = tokenOperation(
  'token-revoke-orphan',
  'update',
  {
    about: 'Revoke a token but not its child tokens, which become orphans',
    takes: tokenField,
    answers: answers.written,
    sudo: true,
  },
  async ({ services }, { values }) => {
    const found = await services.registry.revokeAlone(requiredToken(values));
    if (!found) throw new RequestError('invalid_request', 'token to revoke not found');
  },
);

const revokeAccessor = tokenOperation(
  'token-revoke-accessor',
  'update',
  { about: 'Revoke a token and its child tokens by its accessor', takes: accessorField, answers: answers.written },
  async ({ services }, { values }) =>
    revokedReply(await services.registry.revoke(requiredAccessor(values)), 'No token found with this accessor'),
);

const accessors = tokenOperation(
  'token-accessors',
  'list',
  { about: 'List the accessors of all tokens', takes: pageFields, answers: answers.names, sudo: true },
  async ({ services }, { values }) => namesReply(await services.registry.accessors(), values),
);

/** Deletes the records of expired and revoked tokens. The node's maintenance does the same periodically. */
const tidy = tokenOperation(
  'token-tidy',
  'update',
  { about: 'Delete the records of expired and revoked tokens', answers: answers.accepted },
  ({ services }) =>
    tidyReply('expired or revoked tokens', async (limit) => {
      const { removed } = await services.registry.sweep(limit);
      return { removed, finished: removed < limit };
    }),
);

/** Routes that create, look up, renew and revoke tokens. */
export const tokenRoutes: readonly Route[] = [
  { path: 'auth/token/create', operations: { POST: makeChild } },
  { path: 'auth/token/create/:role', operations: { POST: makeByRole } },
  { path: 'auth/token/create-orphan', operations: { POST: makeOrphan } },
  { path: 'auth/token/lookup', operations: { POST: { ...lookup, where: 'replica' } } },
  {
    path: 'auth/token/lookup-self',
    operations: {
      GET: inGateway(lookupSelf),
      POST: inGateway({ ...lookupSelfByPost, where: 'replica' }),
    },
  },
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

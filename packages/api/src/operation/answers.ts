import { anything, boolean, integer, type JsonSchema, list, map, nothing, object, orNull, string } from '@transitd/http';
import { shownWrapInfo } from './wrap-info.ts';

/** Successful responses of an operation, by status. */
export type Answers = Readonly<Record<string, DeclaredAnswer>>;

export interface DeclaredAnswer {
  readonly about: string;
  /** Media type; absent for a response without content. */
  readonly type?: string;
  readonly schema?: JsonSchema;
  /** Alternative form of the content. */
  readonly other?: { readonly type: string; readonly schema: JsonSchema };
}

const json = (about: string, schema: JsonSchema): DeclaredAnswer => ({ about, type: 'application/json', schema });

/** Schemas that several operations share, by their name in the OpenAPI document. */
export const sharedSchemas = {
  Errors: {
    ...object({ errors: list(string) }, { warnings: list(string) }),
    description:
      'Error response. The list is empty if the resource does not exist. `warnings` is present if members of the request have no effect.',
  },
  WrapInfo: shownWrapInfo.schema,
  Auth: object({
    client_token: { ...string, description: 'The token, returned only once; empty if the request contained only an accessor.' },
    accessor: string,
    policies: list(string),
    token_policies: list(string),
    metadata: orNull(map(string)),
    lease_duration: integer,
    renewable: boolean,
    entity_id: string,
    token_type: { enum: ['service', 'batch'] },
    orphan: boolean,
    mfa_requirement: nothing,
    num_uses: integer,
  }),
} as const satisfies Readonly<Record<string, JsonSchema>>;

export const shared = (name: keyof typeof sharedSchemas): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

interface Content {
  readonly data?: JsonSchema;
  readonly auth?: JsonSchema;
  readonly wrapInfo?: JsonSchema;
}

const members = ({ data = nothing, auth = nothing, wrapInfo = nothing }: Content): Readonly<Record<string, JsonSchema>> => ({
  request_id: { type: 'string', format: 'uuid' },
  lease_id: { const: '' },
  renewable: { const: false },
  lease_duration: { const: 0 },
  data,
  wrap_info: wrapInfo,
  warnings: orNull(list(string)),
  auth,
});

const envelope = (content: Content): JsonSchema => object(members(content));

/** Response with `data` in the envelope. */
export const data = (schema: JsonSchema): Answers => ({ 200: json('Success', envelope({ data: schema })) });

/** Response with `data` in the envelope and its members again at the top level. @param schema - an object, or a map */
export const topLevelData = (schema: JsonSchema): Answers => {
  const { properties = {}, required = [], additionalProperties } = schema;
  const outside = envelope({ data: schema });
  return {
    200: json('Success', {
      ...outside,
      properties: { ...properties, ...outside.properties },
      required: [...required, ...(outside.required ?? [])],
      ...(additionalProperties !== undefined && { additionalProperties }),
    }),
  };
};

/** Response without the envelope. */
export const plain = (schema: JsonSchema): Answers => ({ 200: json('Success', schema) });

/** Response with a token that was created or renewed. */
export const issued: Answers = { 200: json('Token', envelope({ auth: shared('Auth') })) };

/** Response with a wrapping token. */
export const wrappingToken: Answers = { 200: json('Wrapping token of the response', envelope({ wrapInfo: shared('WrapInfo') })) };

/** Response with warnings only. */
export const warned: Answers = { 200: json('Success, with warnings', envelope({})) };

/** Response of a write without a result; with content only if there are warnings. */
export const written: Answers = { 204: { about: 'Success' }, ...warned };

/** Response of an operation that was started; may contain warnings. */
export const accepted: Answers = { 202: json('Started', envelope({})) };

/** The wrapped response, in its original form. */
export const wrappedResponse: Answers = {
  200: json('The wrapped response', map(anything)),
  default: json('The wrapped response, if its status is not 200', map(anything)),
};

/** Response with names in `data.keys`. */
export const names: Answers = data(object({ keys: list(string) }));

/** Response that is not JSON. */
export const content = (type: string, schema: JsonSchema): Answers => ({ 200: { about: 'Success', type, schema } });

/** Response in one of two forms: JSON, or another content type. */
export const either = ({ 200: first, ...rest }: Answers, type: string, schema: JsonSchema): Answers => ({
  ...rest,
  200: { about: 'Success', ...first, other: { type, schema } },
});

/**
 * Response with one result, or with the results of a batch in the order of its items.
 * @param result - schema of a single result
 * @param item - schema of a result in a batch, if its members have other names
 */
export function oneOrBatch(result: JsonSchema, item: JsonSchema = result): Answers {
  const { properties = {}, required = [] } = item;
  const reference: JsonSchema = { ...string, description: 'The `reference` of the item.' };
  const done: JsonSchema = { ...object({ ...properties, reference }), required: [...required, 'reference'] };
  const failed = object({ error: string, reference }, properties);
  const batch = object({ batch_results: list({ anyOf: [done, failed] }) });
  const someFailed = envelope({ data: batch });
  return {
    200: json('Success: one result, or the results of a batch', envelope({ data: { anyOf: [result, batch] } })),
    400: json('Error, or a batch with failed items', { anyOf: [shared('Errors'), someFailed] }),
    default: json('A batch with some failed items, if `partial_failure_response_code` sets this status', {
      anyOf: [shared('Errors'), someFailed],
    }),
  };
}

/** Error response that only some operations have. */
export const refused = (status: keyof typeof refusals): Answers => ({ [status]: json(refusals[status], shared('Errors')) });

/** Descriptions of error statuses; the body is always `{"errors": […]}`, with `warnings` if there are any. */
export const refusals = {
  400: 'Invalid request, or operation on a key that does not exist',
  403: 'Permission denied: no token, an invalid token, or missing capabilities',
  405: 'Method not allowed: `list=true` is missing',
  404: 'Not found (empty list of errors), or unknown mount',
  408: 'The request body arrived too slowly',
  409: 'Not possible in the current state of the node',
  412: 'The node did not reach the index in `X-Service-Index` in time',
  413: 'The request body, or the record to be written, is too large',
  414: 'The path is too long',
  429: 'Rate limit exceeded; retry after `Retry-After` seconds',
  431: 'The request headers are too large',
  500: 'Internal error',
  503: 'Sealed, stopping, overloaded, or no active node. Nothing was changed, unless the message says otherwise',
  504: 'Outcome unknown: the write may have taken effect',
} as const;

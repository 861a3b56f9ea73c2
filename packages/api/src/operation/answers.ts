import { anything, boolean, integer, type JsonSchema, list, map, nothing, object, orNull, string } from '@transitd/http';

/** What an operation answers when it does what it is asked: by status, what stands in the answer. */
export type Answers = Readonly<Record<string, Answer>>;

export interface Answer {
  readonly about: string;
  /** Absent for no content. */
  readonly type?: string;
  readonly schema?: JsonSchema;
  /** What it may be instead. */
  readonly other?: { readonly type: string; readonly schema: JsonSchema };
}

const json = (about: string, schema: JsonSchema): Answer => ({ about, type: 'application/json', schema });

/** Schemas that several operations have, by the name under which the document keeps them. */
export const sharedSchemas = {
  Errors: {
    ...object({ errors: list(string) }),
    description: 'A refusal. The list is empty where there is nothing wrong, only nothing there.',
  },
  WrapInfo: object(
    {
      token: string,
      accessor: string,
      ttl: integer,
      creation_time: { type: 'string', format: 'date-time' },
      creation_path: string,
    },
    { wrapped_accessor: string },
  ),
  Auth: object({
    client_token: { ...string, description: 'Shown this once; empty where only an accessor was named.' },
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

/** `data` in the envelope. */
export const data = (schema: JsonSchema): Answers => ({ 200: json('done', envelope({ data: schema })) });

/** … and its members once more beside it. @param schema - an object, or a map */
export const twice = (schema: JsonSchema): Answers => {
  const { properties = {}, required = [], additionalProperties } = schema;
  const outside = envelope({ data: schema });
  return {
    200: json('done', {
      ...outside,
      properties: { ...properties, ...outside.properties },
      required: [...required, ...(outside.required ?? [])],
      ...(additionalProperties !== undefined && { additionalProperties }),
    }),
  };
};

/** Without the envelope. */
export const plain = (schema: JsonSchema): Answers => ({ 200: json('done', schema) });

/** A token that was given or renewed. */
export const issued: Answers = { 200: json('a token', envelope({ auth: shared('Auth') })) };

/** Where the answer of something else waits. */
export const waiting: Answers = { 200: json('a token for the answer', envelope({ wrapInfo: shared('WrapInfo') })) };

export const noContent: Answers = { 204: { about: 'done' } };

/** An envelope with nothing but warnings. */
export const warned: Answers = { 200: json('done, and what the caller should know', envelope({})) };

/** A write without a result. */
export const written: Answers = { ...noContent, ...warned };

/** As `warned`, with another status. */
export const accepted: Answers = { 202: json('begun', envelope({})) };

/** What waited, as it would have been answered. */
export const whatever: Answers = {
  200: json('the answer that waited', map(anything)),
  default: json('the same, where it has another status', map(anything)),
};

/** Names in `data.keys`. */
export const names: Answers = data(object({ keys: list(string) }));

/** No JSON. */
export const content = (type: string, schema: JsonSchema): Answers => ({ 200: { about: 'done', type, schema } });

/** One of two forms: the one, or the other, which is no JSON. */
export const either = ({ 200: first, ...rest }: Answers, type: string, schema: JsonSchema): Answers => ({
  ...rest,
  200: { about: 'done', ...first, other: { type, schema } },
});

/**
 * One result, or those of a batch in the order of its items.
 * @param result - members of a result, those that are always there; as the next
 * @param inBatch - how those are called in a batch, where otherwise
 */
export function oneOrBatch(result: JsonSchema, item: JsonSchema = result): Answers {
  const { properties = {}, required = [] } = item;
  const reference: JsonSchema = { ...string, description: 'As the item was sent with it.' };
  const done: JsonSchema = { ...object({ ...properties, reference }), required: [...required, 'reference'] };
  const failed = object({ error: string, reference }, properties);
  const batch = object({ batch_results: list({ anyOf: [done, failed] }) });
  const someFailed = envelope({ data: batch });
  return {
    200: json('done: one result, or those of a batch', envelope({ data: { anyOf: [result, batch] } })),
    400: json('a refusal; or a batch of which some items failed, or all', { anyOf: [shared('Errors'), someFailed] }),
    default: json('a batch of which some items failed, with the status asked for in `partial_failure_response_code`', {
      anyOf: [shared('Errors'), someFailed],
    }),
  };
}

/** A refusal that few operations have. */
export const refused = (status: keyof typeof refusals): Answers => ({ [status]: json(refusals[status], shared('Errors')) });

/** Statuses of refusals, with what they mean; every one has `{"errors": […]}` for a body. */
export const refusals = {
  400: 'a mistake in the request; also an operation on a key that does not exist',
  403: 'no token, an unknown one, or one that may not do this',
  405: 'without `list=true`',
  404: 'nothing there: an empty list of errors, or an unknown mount',
  408: 'the body came too slowly',
  409: 'not in this state of the node',
  412: 'the state asked for with `X-Service-Index` was not reached in time',
  413: 'the body, or what would be written, is too large',
  414: 'the path is too long',
  429: 'too often; `Retry-After` says when to ask again',
  431: 'the headers are too large',
  500: 'a fault of the server',
  503: 'sealed, stopping, too busy or without an active node; nothing was changed unless it says so',
  504: 'outcome unknown: the write may have taken effect',
} as const;

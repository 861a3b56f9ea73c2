import type { Capability, Principal } from '@transitd/access';
import {
  type Body,
  credential,
  type FieldSchema,
  type Fields,
  fields,
  type JsonSchema,
  noContentReply,
  type Query,
  type Reply,
  RequestError,
  replyWithWarnings,
  type Verb,
  withWarnings,
  writtenReply,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import type { ClientCertificate } from '@transitd/process';
import type { Answers } from './answers.ts';

/** Names of all path parameters. A test compares them with the routes. */
export const paramNames = [
  ...(['mount', 'name', 'method', 'role', 'id', 'device', 'path', 'type', 'version', 'key_type'] as const),
  ...(['destination', 'source', 'urlalgorithm', 'urlbytes', 'url_mac_length'] as const),
] as const;
export type ParamName = (typeof paramNames)[number];
export type Params = Readonly<Partial<Record<ParamName, string>>>;

/** One request as an operation sees it. */
export interface Call {
  readonly verb: Verb;
  /** Path below `/v1/`, decoded and in its canonical form. */
  readonly path: string;
  /** The path as written in the request. */
  readonly written: string;
  readonly params: Params;
  readonly query: Query;
  /** Members of the body, or of the query for GET and LIST. */
  readonly body: Body;
  /** Body as a stream, if the operation has `streamsBody` and the request has a body. In that case `body` is empty. */
  readonly bodyStream?: AsyncIterable<Uint8Array> | undefined;
  /** IP address of the client. */
  readonly address: string;
  /** The certificate of the client, verified in the TLS handshake; absent for none. */
  readonly certificate?: ClientCertificate | undefined;
  /** TTL of response wrapping, in seconds; absent if the response is not wrapped. */
  readonly wrapTtlS?: number;
}

/**
 * Which node may answer. `here`: this node, in any state. `replica`: any node whose state is fresh enough. `leader`: only the active node;
 * all other nodes forward the request to it.
 */
export type Where = 'here' | 'replica' | 'leader';

/** Declaration of an operation, for its documentation and for validation. `sys/internal/specs/openapi` is made from these declarations. */
export interface OperationDescription<S extends FieldSchema = FieldSchema> {
  /** Summary: an imperative sentence without a period. */
  readonly about: string;
  /** Fields that the operation reads from the path and from the body (for GET and LIST: from the query). Absent if it reads no fields. */
  readonly takes?: S;
  readonly answers: Answers;
}

/** A call whose body was converted into its declared fields. The body as it was sent is for the rules of policies. */
export type TypedCall<S extends FieldSchema> = Call & Pick<Fields<S>, 'values'>;

/** What an operation on declared fields returns: its reply, or nothing for a write without a result. */
export type Result = Reply | Promise<Reply> | Promise<Reply | undefined> | Promise<void>;

/**
 * Runs an operation on its declared fields. A path parameter overrides a body member of the same name. The response to a call with members
 * that have no effect warns of them, whether the operation succeeds or fails.
 */
export async function withFields<S extends FieldSchema>(
  takes: S,
  call: Call,
  run: (typed: TypedCall<S>) => Result,
): Promise<Reply> {
  const { values, warnings } = fields(takes, call.body, call.params);
  try {
    return warned((await run({ ...call, values })) || noContentReply, warnings);
  } catch (error) {
    throw withWarnings(error, warnings);
  }
}

/** Returns the reply with the warnings about the request before its own. */
function warned(reply: Reply, warnings: readonly string[]): Reply {
  if (warnings.length === 0) return reply;
  if (reply.status === 204) return writtenReply(warnings);
  if (!('envelope' in reply) || reply.envelope.wrapInfo !== null) return replyWithWarnings(reply, warnings);
  return replyWithWarnings({ ...reply, envelope: { ...reply.envelope, warnings } }, reply.envelope.warnings);
}

/** The parts of the node that an operation can use in every thread, in addition to its call. */
export interface GatewayContext {
  readonly services: Services;
  readonly principal: Principal;
  readonly token: string;
}

/** The parts of the node that an operation can use in the main thread. */
export interface Context extends GatewayContext {
  readonly node: Node;
}

interface Common extends Partial<OperationDescription> {
  /** Declarations by auth method type, for paths that several types share. */
  readonly byType?: Readonly<Record<string, OperationDescription>>;
  /** Schema of a body that the operation reads itself, instead of fields. */
  readonly body?: JsonSchema;
  /** Label in metrics. Always a constant, never a name from the request. */
  readonly name: string;
  /** The names in the response are text that a caller has sent, so the audit hashes them too. */
  readonly repeatsData?: true;
  /** A cluster that follows another one for disaster recovery serves the operation too. */
  readonly onSecondary?: true;
  /** Default: `here` for open operations, `replica` for GET and LIST, `leader` otherwise. */
  readonly where?: Where;
}

/** An operation that needs no token and answers in any state of the node. */
export interface OpenOperation extends Common {
  readonly access: 'open';
  /** The request is not audited. For probes, and for requests that are made before any token exists. */
  readonly unaudited?: true;
  /** The response is a secret and may be wrapped. */
  readonly wraps?: true;
  /** @param token - token in the header; it has not been checked */
  run(node: Node, call: Call, token: string | undefined): Reply | Promise<Reply>;
}

/** An operation that needs an unsealed node and an authorized token. */
export interface GuardedOperation extends Common {
  readonly access: 'token';
  /**
   * Required capability. Default: the capability of the verb. For POST the default is `create` or `update`: the operation itself decides
   * which of the two it needs, depending on whether the object exists.
   */
  readonly capability?: Capability;
  /** Any valid token is enough; policies are not checked. */
  readonly anyRights?: true;
  /** Requires `sudo` in addition to the capability. */
  readonly sudo?: boolean;
  /**
   * Returns other paths of the same operation, made from the canonical parameters of this path, and the paths of single fields in the body.
   * If a policy explicitly denies one of them, the request is refused (decision 87). The path of a list ends with a slash.
   * @param body - absent if only the path is known
   */
  sameAs?(params: Params, body?: Body): readonly string[];
  /**
   * Returns a path that a node will delete later. The caller must be allowed to delete it now, on the conditions that its policies demand:
   * otherwise policies that let somebody change keys but delete nothing would let it be deleted.
   */
  deletesLater?(params: Params): string;
  /** The body is not JSON and may be large. */
  readonly streamsBody?: true;
  /** A text in the body is itself parsed, so memory is also reserved for the values that it can have. */
  readonly parsesText?: true;
  /** Longest body in bytes, if it is shorter than the node's. */
  readonly bodyBytesMax?: number;
  /** The operation may take minutes. */
  readonly isSlow?: true;
  /**
   * The operation may end the leadership of the node that runs it. In that case the node still answers, or the next leader runs the
   * operation again. The body must be small.
   */
  readonly endsLeadership?: true;
  /** Any replica may start the operation. If it has to write, the replica forwards it to the active node. */
  readonly mayWrite?: true;
  /**
   * A cluster that follows another one serves the operation too: to callers with the rights, and to those with an operation token (decision
   * 146). It needs nothing of the context but the node.
   */
  readonly byOperationToken?: {
    /** `reads`: the token stays valid. */
    readonly use: 'reads' | 'changes';
    run(node: Node, call: Call): Reply | Promise<Reply>;
  };
  /** Response of a sealed node; absent for the usual refusal. */
  readonly whenSealed?: Reply;
  run(context: Context, call: Call): Reply | Promise<Reply>;
  /** `run` in a gateway thread; absent if only the main thread runs the operation. @see inGateway */
  readonly inGateway?: (context: GatewayContext, call: Call) => Reply | Promise<Reply>;
}

export type Operation = OpenOperation | GuardedOperation;

/** An operation whose `run` receives its declared fields instead of a raw body. */
type TypedOperation<O extends Common, S extends FieldSchema> = Omit<O, 'access' | 'run' | keyof OperationDescription> &
  OperationDescription<S>;

/** An operation that uses nothing but `C`. */
type Guarded<C> = Omit<GuardedOperation, 'run' | 'inGateway'> & {
  readonly run: (context: C, call: Call) => Reply | Promise<Reply>;
};

/**
 * Lets gateway threads run the operation too. It must read only what a gateway's changes keep current, and its success must change nothing,
 * not even in memory (decision 105).
 */
export const inGateway = (operation: Guarded<GatewayContext>): GuardedOperation => ({ ...operation, inGateway: operation.run });

export function guarded<S extends FieldSchema = Record<never, never>, C = Context>({
  run,
  ...declared
}: TypedOperation<Guarded<C>, S> & {
  readonly run: (context: C, call: TypedCall<S>) => Result;
}): Guarded<C> {
  const takes = declared.takes ?? none<S>();
  return { ...declared, access: 'token', run: (context, call) => withFields(takes, call, (typed) => run(context, typed)) };
}

/** What a part may depend on. */
type PartCall = Pick<Call, 'params' | 'path'> & { readonly values: Readonly<Record<string, unknown>> };

/**
 * Makes operations that use a part of the context. An operation on POST that needs `create or update` has to decide itself which one it
 * needs.
 * @param common - properties of all of them
 */
export const operationsOn =
  <C, Part>(partOf: (context: C, call: PartCall) => Part, common: Pick<GuardedOperation, 'sudo'> = {}) =>
  <S extends FieldSchema = Record<never, never>>(
    name: string,
    capability: Capability | 'create or update',
    declared: Omit<TypedOperation<Guarded<C>, S>, 'name' | 'capability'>,
    run: (part: Part, call: TypedCall<S>, context: C) => Result,
  ): Guarded<C> =>
    guarded<S, C>({
      ...{ ...common, name, ...(capability !== 'create or update' && { capability }), ...declared },
      run: (context, call) => run(partOf(context, call), call, context),
    });

/** An operation on the cluster that a secondary serves too, for callers with an operation token. */
export function guardedOnSecondary<S extends FieldSchema = Record<never, never>>({
  run,
  use,
  ...declared
}: Omit<TypedOperation<Guarded<Context>, S>, 'byOperationToken'> & {
  readonly use: 'reads' | 'changes';
  run(node: Node, call: TypedCall<S>): Result;
}): GuardedOperation {
  const takes = { ...(declared.takes ?? none<S>()), dr_operation_token: operationTokenField };
  const runOn = (node: Node, call: Call): Promise<Reply> =>
    withFields(takes, call, (typed) => run(node, typed as unknown as TypedCall<S>));
  return {
    ...{ ...declared, takes, access: 'token' },
    run: ({ node }, call) => runOn(node, call),
    byOperationToken: { use, run: runOn },
  };
}

const operationTokenField = credential('Operation token, which authorizes the request on a disaster-recovery secondary');

export function open<S extends FieldSchema = Record<never, never>>({
  run,
  ...declared
}: TypedOperation<OpenOperation, S> & {
  run(node: Node, call: TypedCall<S>, token: string | undefined): Result;
}): OpenOperation {
  const takes = declared.takes ?? none<S>();
  return { ...declared, access: 'open', run: (node, call, token) => withFields(takes, call, (typed) => run(node, typed, token)) };
}

/** Returns what was found. @throws RequestError `not_found` without a message, as the peers answer for a missing record */
export function found<T>(value: T | undefined): T {
  if (value === undefined) throw new RequestError('not_found', '');
  return value;
}

/** Returns the empty schema, for operations that declare no fields. */
export const none = <S extends FieldSchema>(): S => ({}) as S;

/** A path below `/v1/` and its operations by verb. `:name` matches one segment. */
export interface Route {
  readonly path: string;
  /** Returns whether the path accepts these parameters. If not, the request is refused as an unsupported path. */
  readonly accepts?: (params: Params) => boolean;
  /**
   * Functions that return the canonical form of a parameter, for parameters that have a canonical form (case-insensitive names). A request
   * is authorized on both forms of its path. Quotas, audit and the operation see only the canonical form.
   */
  readonly names?: Readonly<Partial<Record<ParamName, (written: string) => string>>>;
  readonly operations: Partial<Readonly<Record<Verb, Operation>>>;
}

/** @see Where */
export const whereOf = ({ where, access }: Operation, verb: Verb): Where =>
  where ?? (access === 'open' ? 'here' : verb === 'GET' || verb === 'LIST' ? 'replica' : 'leader');

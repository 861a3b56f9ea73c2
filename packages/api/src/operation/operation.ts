import type { Capability, Principal } from '@transitd/access';
import {
  type Body,
  type FieldSchema,
  type Fields,
  fields,
  type JsonSchema,
  type Query,
  type Reply,
  type Verb,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { InvariantViolation } from '@transitd/raft-core';
import type { Answers } from './answers.ts';

/** The parameters that paths have, by the names that the routes give them. */
export type ParamName =
  | ('mount' | 'name' | 'method' | 'role' | 'id' | 'device' | 'path' | 'type' | 'version' | 'key_type' | 'destination' | 'source')
  | ('urlalgorithm' | 'urlbytes' | 'algorithm' | 'bytes');
export type Params = Readonly<Partial<Record<ParamName, string>>>;

/** The value of a parameter of the path. @throws InvariantViolation where the route has no parameter of this name */
export function pathParam({ params }: Pick<Call, 'params'>, name: ParamName): string {
  const value = params[name];
  if (value === undefined) throw new InvariantViolation(`the route has no parameter :${name}`);
  return value;
}

/** One request as an operation sees it, whichever way it came in. */
export interface Call {
  readonly verb: Verb;
  /** Decoded, below `/v1/`, in its canonical form. */
  readonly path: string;
  /** The same as the request wrote it. */
  readonly written: string;
  readonly params: Params;
  readonly query: Query;
  /** The members of the body; of the query for GET and LIST. */
  readonly body: Body;
  /** The body as it comes, of an operation that takes it so, which then has no members; absent when there is none. */
  readonly bodyStream?: AsyncIterable<Uint8Array> | undefined;
  /** Where the caller is: the far end of its connection. */
  readonly address: string;
  /** Seconds for which the answer will be wrapped; absent for not at all. */
  readonly wrapTtlS?: number;
}

/**
 * Which node may answer. `here`: this one, whatever its state. `replica`: any whose state is fresh enough. `leader`: the active one, to
 * which all others hand the request.
 */
export type Where = 'here' | 'replica' | 'leader';

/** What callers are told of an operation, and what holds for it: see `sys/internal/specs/openapi`. */
export interface OperationDescription<S extends FieldSchema = FieldSchema> {
  /** What it does, in a few words. */
  readonly about: string;
  /** What it reads of the body (of the query for GET and LIST) and of the path; nothing when absent. */
  readonly takes?: S;
  readonly answers: Answers;
}

/** A call with its fields, which are all that is left of its body. */
export type TypedCall<S extends FieldSchema> = Omit<Call, 'body'> & Fields<S>;

/** The fields that are declared, read; a parameter of the path that is one of them counts before a member of the body. */
export function readFields<S extends FieldSchema>(takes: S, { body, ...call }: Call): TypedCall<S> {
  const inPath = Object.entries(call.params).filter(([name]) => Object.hasOwn(takes, name));
  return { ...call, ...fields(takes, body, Object.fromEntries(inPath)) };
}

/** What an operation is run with. */
export interface Context {
  readonly node: Node;
  readonly services: Services;
  readonly principal: Principal;
  readonly token: string;
}

interface Common extends Partial<OperationDescription> {
  /** … of what different kinds of login methods do at the same path. */
  readonly byType?: Readonly<Record<string, OperationDescription>>;
  /** What it reads of the body itself, in the place of fields. */
  readonly body?: JsonSchema;
  /** For metrics: a fixed word, never a name from the request. */
  readonly name: string;
  /** Absent: `here` without a token; with one `replica` for GET and LIST, and `leader` for all else. */
  readonly where?: Where;
}

/** Needs no token, and answers whatever state the node is in. */
export interface OpenOperation extends Common {
  readonly access: 'open';
  /** Leaves no audit entries: what probes ask, and what is asked before there are tokens. */
  readonly unaudited?: true;
  /** What it answers is a secret that may be wrapped. */
  readonly wraps?: true;
  /** @param token - what the caller shows as one; nobody has looked at it */
  run(node: Node, call: Call, token: string | undefined): Reply | Promise<Reply>;
}

/** Needs an unsealed node and a token that may do this here. */
export interface GuardedOperation extends Common {
  readonly access: 'token';
  /**
   * The right that is needed. Absent: what the verb stands for, and for POST either create or update; which of the two decides the
   * operation, by whether what it names exists.
   */
  readonly capability?: Capability;
  /** A good token is enough, whatever its policies say of the path. */
  readonly anyRights?: true;
  /** The right `sudo` is needed beside the capability. */
  readonly sudo?: boolean;
  /**
   * What it changes only adds rights or keys. Absent: it may take some away, so it is answered when no node serves the old state any
   * more (decision 50).
   */
  readonly adds?: true;
  /**
   * Other paths whose requests would have said the same, by the canonical parameters of this one: an explicit denial of one of them
   * refuses the request (decision 13). Each ends with the name.
   */
  sameAs?(params: Params): readonly string[];
  /** Its body is no JSON, and may be large. */
  readonly streamsBody?: true;
  /** It may take minutes. */
  readonly isSlow?: true;
  /** It may end the lead of the node that does it: then it is answered all the same, or done by the next one. Its body is small. */
  readonly endsLeadership?: true;
  /** It may write although any replica may begin it: a replica then hands it on. */
  readonly mayWrite?: true;
  /** The answer of a node that is not unsealed, where it is not the usual refusal. */
  readonly whenSealed?: Reply;
  run(context: Context, call: Call): Reply | Promise<Reply>;
}

export type Operation = OpenOperation | GuardedOperation;

/** An operation that is given the fields that it declares, and no other part of a body. */
type TypedOperation<O extends Operation, S extends FieldSchema> = Omit<O, 'access' | 'run' | keyof OperationDescription> &
  OperationDescription<S>;

export function guarded<S extends FieldSchema = Record<never, never>>({
  run,
  ...declared
}: TypedOperation<GuardedOperation, S> & {
  run(context: Context, call: TypedCall<S>): Reply | Promise<Reply>;
}): GuardedOperation {
  const takes = declared.takes ?? none<S>();
  return { ...declared, access: 'token', run: (context, call) => run(context, readFields(takes, call)) };
}

export function open<S extends FieldSchema = Record<never, never>>({
  run,
  ...declared
}: TypedOperation<OpenOperation, S> & {
  run(node: Node, call: TypedCall<S>, token: string | undefined): Reply | Promise<Reply>;
}): OpenOperation {
  const takes = declared.takes ?? none<S>();
  return { ...declared, access: 'open', run: (node, call, token) => run(node, readFields(takes, call), token) };
}

/** Where no fields are declared, S has none. */
export const none = <S extends FieldSchema>(): S => ({}) as S;

/** A path below `/v1/` and what its verbs do. `:name` stands for one segment. */
export interface Route {
  readonly path: string;
  /** Values of parameters that the path accepts; anything else is an unsupported path. */
  readonly accepts?: (params: Params) => boolean;
  /**
   * Parameters whose values count in another form than the one that a request may write, each with the function that makes that form. A request
   * is authorized on both forms of its path; quotas, audit and the operation see the canonical one.
   */
  readonly names?: Readonly<Partial<Record<ParamName, (written: string) => string>>>;
  readonly operations: Partial<Readonly<Record<Verb, Operation>>>;
}

/** @see Where */
export const whereOf = ({ where, access }: Operation, verb: Verb): Where =>
  where ?? (access === 'open' ? 'here' : verb === 'GET' || verb === 'LIST' ? 'replica' : 'leader');

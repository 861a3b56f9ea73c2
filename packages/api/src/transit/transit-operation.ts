import {
  type Denial,
  hasDenials,
  type ParameterValue,
  type Principal,
  pathDenial,
  refusedByPolicy,
  useDenial,
} from '@transitd/access';
import { TimeSlice } from '@transitd/event-loop';
import {
  type Body,
  dataReply,
  fields,
  noHandler,
  pathText,
  permissionDenied,
  Rendered,
  type Reply,
  withWarnings,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import { type BatchReply, type ItemResult, type RandomSource, type TransitEngine, UseTally } from '@transitd/transit-engine';
import {
  type Call,
  type GatewayContext,
  type GuardedOperation,
  inGateway,
  type OperationDescription,
  type Params,
} from '../operation/operation.ts';
import { DataReader, type DataRequest, type DataSchema, requestFields, withoutEffect } from './data-fields.ts';

/** Returns the engine of the mount in the path. */
export function engineOf({ mounts }: Services, { params, path }: Pick<Call, 'params' | 'path'>): TransitEngine {
  const engine = mounts.engines.get(params.mount ?? '');
  if (engine === undefined) throw noHandler(path); // removed since the request was routed
  return engine;
}

/**
 * Returns the status for a batch with some failed items: the requested status, or undefined if a response with it may have no body, since
 * the caller must receive the results of the items.
 */
function partialFailureStatus(requested: number | undefined): number | undefined {
  if (requested === undefined || requested === 0) return 400;
  return requested >= 200 && requested <= 599 && requested !== 204 && requested !== 205 && requested !== 304
    ? requested
    : undefined;
}

const badOverride = 'invalid HTTP response code override from partial_failure_response_code, reverting to 400';

const isFailure = <R>(result: ItemResult<R>): result is Extract<ItemResult<R>, { readonly error: string }> => 'error' in result;

async function batchReply<R extends object>(
  { render, failedItem = '' }: Pick<DataOperation<DataSchema, R>, 'render' | 'failedItem'>,
  { results, outcome }: BatchReply<R>,
  requestedStatus: number | undefined,
  warnings: readonly string[],
): Promise<Reply> {
  const itemOf = (result: ItemResult<R>): string => {
    const members = isFailure(result) ? `${failedItem}"error":${JSON.stringify(result.error)}` : textOf(render(result, true));
    return `{${members},"reference":${result.reference === '' ? '""' : JSON.stringify(result.reference)}}`;
  };
  const data = await renderedItems('{"batch_results":[', results, itemOf, ']}');
  const override = partialFailureStatus(requestedStatus);
  const all = override === undefined ? [...warnings, badOverride] : warnings;
  const status = outcome === 'all_ok' ? 200 : outcome === 'all_failed' ? 400 : (override ?? 400);
  return { ...dataReply(data, all), status };
}

/** Members as JSON text, or as three parts of it, of which the second may be long. All are ASCII. */
export type Members = string | readonly [before: string, text: string, after: string];

const textOf = (members: Members): string => (typeof members === 'string' ? members : members[0] + members[1] + members[2]);

/** Texts from this length are sent without joining them with the rest of the response. */
const longTextChars = 64 * 1024;

/** Returns the data of a response with one result. */
function renderedMembers(members: Members): Rendered {
  if (typeof members === 'string' || members[1].length < longTextChars) return new Rendered(`{${textOf(members)}}`);
  const [before, text, after] = members;
  return new Rendered([`{${before}`, text, `${after}}`]);
}

/** Items that become one piece of a long response. */
const itemsPerPiece = 1000;

/**
 * Returns `begin`, the text of each item and `end` as the data of a response. Works in time slices: there may be a hundred thousand items.
 * @param textOf - returns JSON in ASCII
 */
export async function renderedItems<T>(
  begin: string,
  items: Iterable<T>,
  textOf: (item: T) => string,
  end: string,
): Promise<Rendered> {
  const pieces: Buffer[] = [];
  let texts: string[] = [];
  const slice = new TimeSlice();
  for (const item of items) {
    if (texts.length > 0 && (slice.isOver || texts.length === itemsPerPiece)) {
      pieces.push(Buffer.from(`${pieces.length === 0 ? begin : ''}${texts.join()},`));
      texts = [];
      if (slice.isOver) await slice.next();
    }
    texts.push(textOf(item));
  }
  const rest = texts.join() + end;
  return new Rendered(pieces.length === 0 ? begin + rest : [...pieces, Buffer.from(rest)]);
}

/** A value that an operation will use; a policy may deny it. */
export interface Use {
  /** The value as a part of the path, after the word of the operation; absent if the path cannot contain it. */
  readonly form?: string;
  /**
   * The value as a policy parameter, with the names under which a request can send it; absent if the value cannot be sent as a parameter.
   */
  readonly parameter?: { readonly names: readonly string[]; readonly value: ParameterValue };
}

/** Returns the denial of one of the values, by its path or as a parameter; undefined if none is denied. Works in time slices. */
async function usesDenial(
  principal: Principal,
  { path, base }: { readonly path: string; readonly base: string },
  uses: Iterable<Use>,
): Promise<Denial | undefined> {
  if (!hasDenials(principal)) return undefined;
  const slice = new TimeSlice();
  const seen = new Set<string>();
  for (const { form, parameter } of uses) {
    if (slice.isOver) await slice.next();
    if (form !== undefined && seen.has(form)) continue;
    const denied =
      (form === undefined ? undefined : pathDenial(principal, `${base}/${form}`)) ??
      (parameter && useDenial(principal, path, parameter.names, parameter.value));
    if (denied !== undefined) return denied;
    if (form !== undefined) seen.add(form);
  }
  return undefined;
}

/** Declaration of one operation on data. */
interface DataOperation<S extends DataSchema, R extends object> extends Omit<OperationDescription, 'takes'> {
  readonly name: string;
  /** Path parameters after `:mount/<word>`. The first `required` parameters are required, the others optional. */
  readonly path: { readonly params: readonly string[]; readonly required: number };
  readonly takes: S;
  /** Absent if the required capability depends on whether the key exists. */
  readonly capability?: 'update';
  /** The operation may create a missing key. */
  readonly mayWrite?: true;
  /**
   * Yields the values that will actually be used (decision 87), for values that may come from the body, from an input or from a
   * default. It is a generator, because a batch may have one value for each item.
   */
  uses?(request: DataRequest<S>): Iterable<Use>;
  /** Returns paths below the mount, made from the parameters of the path, whose denial refuses the request too (decision 87). */
  deniedBy?(params: Params): readonly string[];
  /** Maps path parameters to fields, if their meaning depends on their value. */
  pathFields?(params: Params): Readonly<Record<string, string>>;
  execute(engine: TransitEngine, request: DataRequest<S>, caller: Caller): Promise<R | BatchReply<R>>;
  /** Returns the members of one result. In a batch some members have a different name. */
  render(result: R, inBatch: boolean): Members;
  /** Members next to `error` in a failed item, as JSON text. */
  readonly failedItem?: string;
  /** Returns the kind of what the request verifies; some fields have no effect on it. */
  kindOf?(request: DataRequest<S>): string;
  /** Returns warnings about the result. */
  warnings?(result: R): readonly string[];
}

interface Caller {
  /** Empty if the path contains no key name. */
  readonly keyName: string;
  readonly principal: Principal;
  readonly path: string;
  /** Absent if the seal gives no random bytes. */
  readonly sealRandom: RandomSource | undefined;
  /** Counts what the request does with its key. */
  readonly tally: UseTally;
}

/** An operation and the parameters of its path. */
export interface DataRoute<S extends DataSchema = DataSchema> {
  /** The fields as they are declared. */
  readonly takes: S;
  readonly operation: GuardedOperation;
  readonly params: readonly string[];
  readonly required: number;
}

const isKeyNamed = { pattern: '^[0-9A-Za-z_]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$', minLength: 1, maxLength: 512 } as const;
/** Path parameter. */
export const keyName = pathText('Name of the key', { shape: isKeyNamed });

/** Makes the operation: reads the fields, checks deny rules, calls the engine and renders its result. */
export function dataOperation<S extends DataSchema, R extends object>(data: DataOperation<S, R>): DataRoute<S> {
  const { name, capability, mayWrite } = data;
  const named = data.path.params.includes('name') && { name: keyName };
  const declared: DataSchema = { ...named, ...data.takes };
  const takes = requestFields(declared);
  const reader = new DataReader<S>(declared, takes);
  const usedBySomeKeys = Object.keys(declared).filter((field) => declared[field]?.usedBy !== undefined);
  const run = async ({ services, principal }: GatewayContext, call: Call): Promise<Reply> => {
    const { body, path, params } = call;
    const { values, warnings } = fields(takes, body, data.pathFields?.(params) ?? params);
    const all = [...warnings];
    try {
      const pending = reader.read(values, all);
      const { request, partialFailureStatus, sets } = pending instanceof Promise ? await pending : pending;
      const kind = data.kindOf?.(request);
      const isUnused = (field: string): boolean => declared[field]?.unusedFor?.includes(kind ?? '') === true;
      const unused = kind === undefined ? [] : Object.keys(declared).filter((field) => isUnused(field) && sets(field));
      all.push(...withoutEffect(unused, `on the ${kind} to verify`));
      const overridden = reader.overridden(request).filter((field) => !isUnused(field));
      all.push(...withoutEffect(overridden, 'because another value is in force'));
      const uses = data.uses?.(request);
      const denied = uses && (await usesDenial(principal, { path, base: `${params.mount}/${name}` }, uses));
      if (denied !== undefined) throw permissionDenied(refusedByPolicy(denied));
      const tally = new UseTally();
      const caller = { keyName: params.name ?? '', principal, path, sealRandom: services.sealRandom, tally };
      const engine = engineOf(services, call);
      const onSent = (): void => services.uses.count(engine.mountId, caller.keyName, tally);
      const asked = usedBySomeKeys.filter((field) => !isUnused(field) && sets(field));
      // Looked up before: a key that this request creates uses all its fields. Told afterwards: a refused caller learns nothing of the key.
      const key = asked.length === 0 ? undefined : await engine.keyTraits(caller.keyName);
      const reply = await data.execute(engine, request, caller);
      if (key !== undefined) {
        const ofOtherKeys = asked.filter((field) => declared[field]?.usedBy?.(key, request) === false);
        all.push(...withoutEffect(ofOtherKeys, 'on this key'));
      }
      if ('outcome' in reply) return { ...(await batchReply(data, reply, partialFailureStatus, all)), onSent };
      const rendered = renderedMembers(data.render(reply, false));
      return { ...dataReply(rendered, [...all, ...(data.warnings?.(reply) ?? [])]), onSent };
    } catch (error) {
      throw withWarnings(error, all);
    }
  };
  /**
   * Returns other paths of the request: `cmac/k/0x8` is the same path as `cmac/k/8`. If the body is known, `run` checks the values that
   * count; otherwise a value that is not in the path is its default.
   */
  const sameAs = (params: Params, body?: Body): readonly string[] => {
    const { mount } = params;
    if (data.deniedBy !== undefined) return data.deniedBy(params).map((path) => `${mount}/${path}`);
    const inPath = Object.keys(params).length - 1; // without the mount
    if (data.uses === undefined || body !== undefined || inPath <= data.path.required) return [];
    try {
      const { values } = fields(takes, {}, data.pathFields?.(params) ?? params);
      const forms = Array.from(data.uses(reader.single(values)), ({ form }) => form);
      return forms.flatMap((form) => (form === undefined ? [] : `${mount}/${name}/${form}`));
    } catch {
      return []; // an invalid value: the operation will refuse it
    }
  };
  return {
    operation: inGateway({
      name,
      access: 'token',
      ...((data.uses ?? data.deniedBy) && { sameAs }),
      where: 'replica',
      about: data.about,
      takes,
      answers: data.answers,
      ...(capability && { capability }),
      ...(mayWrite && { mayWrite }),
      run,
    }),
    takes: data.takes,
    ...data.path,
  };
}

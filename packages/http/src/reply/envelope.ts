import { randomUUID } from 'node:crypto';
import type { WrapInfo } from '@transitd/access';
import type { Reply } from './reply.ts';

const idMember = '"request_id":"';
const beforeId = `{${idMember}`;
const beforeData = '","lease_id":"","renewable":false,"lease_duration":0,"data":';
const beforeWarnings = ',"wrap_info":null,"warnings":';
const end = ',"auth":null}\n';

/**
 * The success envelope around `data`, by concatenation: the caller knows its own shape and has it as JSON text already.
 * @param data - JSON text; what came from a caller has gone through `JSON.stringify`
 */
export function envelope(data: string, warnings: readonly string[] = []): string {
  return (
    beforeId +
    randomUUID() +
    beforeData +
    data +
    beforeWarnings +
    (warnings.length === 0 ? 'null' : JSON.stringify(warnings)) +
    end
  );
}

/** 200 with the envelope around `data` (JSON text). */
export const dataReply = (data: string, warnings?: readonly string[]): Reply => ({ status: 200, body: envelope(data, warnings) });

const beforeAuth = '","lease_id":"","renewable":false,"lease_duration":0,"data":null,"wrap_info":null,"warnings":';

/** 200 with what a token was given, as JSON text, in the place for it. @param issued - the token, where this shows it for the first time */
export const authReply = (auth: string, warnings: readonly string[], issued?: Reply['issued']): Reply => ({
  ...(issued && { issued }),
  status: 200,
  body: `${beforeId}${randomUUID()}${beforeAuth}${warnings.length === 0 ? 'null' : JSON.stringify(warnings)},"auth":${auth}}\n`,
});

/** The answer with this id in the place of its own; one without an envelope stays as it is. @param id - as long as its own, a UUID */
export function withRequestId(body: string, id: string): string {
  const end = body.indexOf(beforeData);
  const begin = end - id.length;
  return begin < 0 || !body.startsWith(idMember, begin - idMember.length) ? body : body.slice(0, begin) + id + body.slice(end);
}

/** What is said of an answer that was wrapped, instead of it. */
export function wrapReply(status: number, { token, accessor, path, createdMs, ttlS, wrappedAccessor }: WrapInfo): Reply {
  const info = {
    token,
    accessor,
    ttl: ttlS,
    creation_time: new Date(createdMs).toISOString(),
    creation_path: path,
    ...(wrappedAccessor !== '' && { wrapped_accessor: wrappedAccessor }),
  };
  return { status, body: envelope('null').replace('"wrap_info":null', () => `"wrap_info":${JSON.stringify(info)}`) };
}

/** The members of `data` once more at the top level, where older clients and those in Go look for them. */
export function topLevelDataReply(data: object): Reply {
  const text = JSON.stringify(data);
  const members = text === '{}' ? '{' : `${text.slice(0, -1)},`;
  return { status: 200, body: `${members}${envelope(text).slice(1)}` };
}

/** A write without a result. */
export const noContentReply: Reply = { status: 204 };

/** A write without a result; a warning needs a body to stand in. */
export const writtenReply = (warnings: readonly string[]): Reply =>
  warnings.length === 0 ? noContentReply : dataReply('null', warnings);

/** `{"errors":[...]}`; no message at all is an empty list, as for a key that is not there. */
export const errorsBody = (messages: readonly string[]): string => `{"errors":${JSON.stringify(messages)}}\n`;

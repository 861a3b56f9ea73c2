export { readBody } from './body/body.ts';
export {
  BodyMemory,
  type BodyMemoryLimits,
  bodyCallerPart,
  bodyMemoryLimits,
  growingBytes,
  growingBytesOf,
  mayNeedMemory,
  parsedBytesOf,
  uncountedBytes,
  valuesBytesOf,
} from './body/body-memory.ts';
export type { BodyCaller } from './body/body-room.ts';
export { bodyStream } from './body/body-stream.ts';
export { attachFront } from './connection/attach.ts';
export { clientCertificateOf, noteClientCertificate } from './connection/client-certificates.ts';
export { Connections, endpointOf } from './connection/connections.ts';
export { OpenResponses } from './connection/open-responses.ts';
export { reading } from './connection/reading.ts';
export { type Answer, AnswerTooLong, exchange } from './exchange.ts';
export {
  any,
  base64,
  bool,
  credential,
  duration,
  type Field,
  type FieldDetail,
  type FieldKind,
  type FieldSchema,
  ignoredField,
  int,
  lease,
  membersOf,
  pathText,
  type Spellings,
  schemaOf,
  text,
  textMap,
  texts,
  unsupportedField,
} from './fields/field.ts';
export { converted, type Fields, fields, isSet, objectIn } from './fields/fields.ts';
export { type Body, type JsonValue, jsonMembersMax, jsonValuesMax, parseBody, queryBody } from './fields/json.ts';
export {
  anything,
  boolean,
  constant,
  integer,
  type JsonSchema,
  list,
  map,
  nothing,
  number,
  object,
  orNull,
  string,
  time,
} from './fields/json-schema.ts';
export { checkTextLength, invalidField, textCharsMax, textList, textsByName, textsMax } from './fields/text-list.ts';
export { arrivalDeadline } from './limits/arrival-deadline.ts';
export { CommonAmount, type CommonMemory, newCommonMemory } from './limits/common-amount.ts';
export { type ThreadLimit, undivided } from './limits/thread-limit.ts';
export { WorkLimit } from './limits/work-limit.ts';
export { parsePath, type Query, type RequestPath } from './path.ts';
export { announcesBody } from './reply/announced-body.ts';
export { endAfterDrain } from './reply/drain.ts';
export { bodyBytesOf, bodyText, type Encoded, encode, joined } from './reply/encode.ts';
export { withoutWarnings, withWarnings } from './reply/failure-with-warnings.ts';
export { type RefusalStatus, refusalReply, refused, refusedForNow } from './reply/refusal.ts';
export {
  authReply,
  dataReply,
  discardReply,
  type Envelope,
  isStreamed,
  noContentReply,
  plainReply,
  Rendered,
  type Reply,
  replyWithWarnings,
  topLevelDataReply,
  writtenReply,
} from './reply/reply.ts';
export {
  noHandler,
  overloaded,
  pathDisabled,
  permissionDenied,
  RequestError,
  type RequestErrorCode,
  requestErrorReply,
  requestErrorStatuses,
  unsupportedOperation,
  unsupportedPath,
} from './reply/request-error.ts';
export { sendReply, strictTransportSecurity } from './reply/send.ts';
export { notInitialized, unavailable } from './reply/unavailable.ts';
export { unreadResponses } from './reply/unread-responses.ts';
export {
  indexHeader,
  indexHeaders,
  indexIn,
  indexOfOtherCluster,
  indexValue,
  indexWanted,
  wantsIndex,
} from './service-index.ts';
export { TextCache } from './text-cache.ts';
export { namesNamespace, tokenOf, wrapTtlOf } from './token-header.ts';
export type { Verb } from './verb.ts';

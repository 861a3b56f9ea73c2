import { RequestError } from './reply/request-error.ts';

/** The query of a request; the first value of a repeated parameter counts. */
export type Query = Pick<URLSearchParams, 'get' | 'getAll' | 'has' | 'entries' | 'size'>;

/** The parsed target of a request. Router, policies, audit and forwarding all use this path. */
export interface RequestPath {
  /** Decoded, below `/v1/`, without a slash at either end, as policies name it: `transit/keys/orders`. */
  readonly path: string;
  /** Segments of `path`: at least one; none empty, `.` or `..`; none with a slash, backslash or control character. */
  readonly segments: readonly string[];
  /** The path ended with a slash; only the paths of lists may. */
  readonly trailingSlash: boolean;
  readonly query: Query;
}

/** Longer request targets are refused with 414. Paths with the longest allowed names are far below this limit. */
export const targetCharsMax = 8_192;

const prefix = '/v1/';
const noQuery: Query = new URLSearchParams();

// Classes of characters in the raw path.
const ordinary = 0;
const slash = 1;
const percent = 2;
const dot = 3;
const question = 4;
const refused = 5;

const charKinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code <= 0x20 || code === 0x7f) return refused;
  return (
    { '/': slash, '%': percent, '.': dot, '?': question, '\\': refused, '#': refused }[String.fromCharCode(code)] ?? ordinary
  );
});

/**
 * Parses a request target in origin form (RFC 9112 §3.2.1) strictly: it refuses, and never repairs, any target that another parser could
 * normalize, decode twice or resolve to a different path. Percent-encoding is decoded once.
 * @param target - the target in the request line (`req.url`)
 * @throws RequestError `not_found` outside `/v1/`, `path_too_long`, `invalid_path`
 */
export function parsePath(target: string): RequestPath {
  if (target.length > targetCharsMax)
    throw new RequestError('path_too_long', `the request target is longer than ${targetCharsMax} characters`);
  if (!target.startsWith('/')) throw new RequestError('invalid_path', 'the request target must be a path');
  if (!target.startsWith(prefix)) throw outsidePrefix(target);

  const segments: string[] = [];
  let start = prefix.length;
  let encoded = false;
  let dotted = false;
  let end = start;
  for (; end < target.length; end += 1) {
    const code = target.charCodeAt(end);
    const kind = code < 128 ? charKinds[code] : refused;
    if (kind === ordinary) continue;
    if (kind === question) break;
    if (kind === percent) encoded = true;
    else if (kind === dot) dotted = true;
    else if (kind === refused) throw new RequestError('invalid_path', 'the path has a character that must be percent-encoded');
    else {
      segments.push(segment(target.slice(start, end), encoded, dotted));
      start = end + 1;
      encoded = false;
      dotted = false;
    }
  }
  const trailingSlash = start === end;
  if (!trailingSlash) segments.push(segment(target.slice(start, end), encoded, dotted));
  if (segments.length === 0) throw new RequestError('not_found', '');
  return {
    path: segments.join('/'),
    segments,
    trailingSlash,
    query: end < target.length ? parseQuery(target.slice(end + 1)) : noQuery,
  };
}

/** Returns the error for a path outside `/v1/`: 404, or `invalid_path` if another parser might resolve the path below `/v1/`. */
function outsidePrefix(target: string): RequestError {
  const path = target.split('?', 1)[0] ?? '';
  return /\\|\/\/|%|(?:^|\/)\.\.?(?:\/|$)/.test(path)
    ? new RequestError('invalid_path', 'the path must begin with /v1/ without percent-encoding')
    : new RequestError('not_found', '');
}

function segment(raw: string, encoded: boolean, dotted: boolean): string {
  if (raw === '') throw new RequestError('invalid_path', 'the path has an empty segment');
  const text = encoded ? decodeSegment(raw) : raw;
  if ((encoded || dotted) && (text === '.' || text === '..'))
    throw new RequestError('invalid_path', 'the path has a . or .. segment');
  return text;
}

function decodeSegment(raw: string): string {
  const text = decode(raw, 'path');
  if (/[/\\]/.test(text)) throw new RequestError('invalid_path', 'the path has an encoded slash or backslash');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern has to match control characters
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text))
    throw new RequestError('invalid_path', 'the path has a control character');
  return text;
}

/** Decodes one level of percent-encoding and checks the bytes as UTF-8. */
function decode(raw: string, where: 'path' | 'query'): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new RequestError('invalid_path', `the ${where} has a percent-encoding that is broken or not UTF-8`);
  }
}

function parseQuery(raw: string): Query {
  if (raw.includes('%')) decode(raw, 'query');
  return new URLSearchParams(raw);
}

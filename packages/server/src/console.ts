import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { PathRouter } from '@transitd/api';
import { builtFiles, securityHeaders } from '@transitd/console';
import { announcesBody, sendReply, strictTransportSecurity } from '@transitd/http';

const root = '/ui/';
const headersOfAll = { ...securityHeaders, 'Strict-Transport-Security': strictTransportSecurity };

interface Served {
  readonly type: string;
  readonly hash: string;
  readonly plain: Buffer;
  readonly compressed: Buffer;
}

/**
 * Serves the console at `/ui/`, and passes every other request to `front`. A target is matched with fixed paths as it was sent: nothing is
 * decoded, no path is resolved, no file is read.
 */
export async function withConsole(front: RequestListener): Promise<RequestListener> {
  const files: [path: string, file: Served][] = [];
  for (const { name, type, hash, content } of builtFiles) {
    const plain = Buffer.from(content);
    files.push([`ui/${name === 'index.html' ? '' : name}`, { type, hash, plain, compressed: await promisify(gzip)(plain) }]);
  }
  const router = new PathRouter(files);
  return (req, res) => {
    const target = targetOf(req);
    if (target !== '/ui' && !target.startsWith(root)) front(req, res);
    else if ((req.method !== 'GET' && req.method !== 'HEAD') || announcesBody(req)) refuse(res, 405, { Allow: 'GET, HEAD' });
    else if (target === '/ui') refuse(res, 308, { Location: root });
    else {
      const [file] = router.matches(target.slice(1).split('/'));
      if (file === undefined) refuse(res, 404);
      else serve(req, res, file);
    }
  };
}

/** Returns the target of a request without its query. */
function targetOf({ url = '' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function refuse(res: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  sendReply(res, { status, errors: [], headers: { ...securityHeaders, ...headers } }, { head: res.req.method === 'HEAD' });
}

function serve(req: IncomingMessage, res: ServerResponse, { type, hash, plain, compressed }: Served): void {
  const isCompressed = /(?:^|[\s,])gzip(?:$|[\s,])/.test(String(req.headers['accept-encoding'] ?? ''));
  const tags = [`"${hash}"`, `"${hash}-gzip"`];
  const headers = {
    ...headersOfAll,
    // The browser asks each time, so that it never mixes files of two releases.
    'Cache-Control': 'no-cache',
    ETag: tags[isCompressed ? 1 : 0],
    Vary: 'Accept-Encoding',
  };
  const known = String(req.headers['if-none-match'] ?? '');
  if (tags.some((tag) => known.includes(tag))) {
    res.writeHead(304, headers).end();
    return;
  }
  const content = isCompressed ? compressed : plain;
  const encoding = isCompressed ? { 'Content-Encoding': 'gzip' } : {};
  res.writeHead(200, { ...headers, 'Content-Type': type, 'Content-Length': content.length, ...encoding });
  res.end(req.method === 'HEAD' ? undefined : content);
}

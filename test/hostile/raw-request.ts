import { connect } from 'node:net';

/** One response as it was received; `body` has the length that its head announced. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface ExchangeOptions {
  /** When the sending side closes; default: never. */
  readonly ends?: 'at once' | 'when answered' | undefined;
  /** Whether the request is HEAD: then the response has no content, whatever its length header says. */
  readonly head?: boolean;
  readonly deadlineMs?: number;
}

/** Shorter than the server's time limit for a body, which must not be what closes the connection. */
const deadlineMsMax = 25_000;

/**
 * Sends bytes unchanged and reads until the server closes the connection.
 * @throws Error if it does not close within `deadlineMs`, or if the received bytes are not HTTP responses
 */
export function exchange(
  url: URL,
  bytes: Buffer,
  { ends, head = false, deadlineMs = deadlineMsMax }: ExchangeOptions = {},
): Promise<readonly RawAnswer[]> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    const socket = connect({ host: url.hostname, port: Number(url.port) });
    const deadline = setTimeout(() => socket.destroy(new Error('no end of the connection in time')), deadlineMs);
    socket.on('data', (piece) => {
      pieces.push(piece);
      if (ends === 'when answered') socket.end();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The server may close the connection while it still receives bytes that it does not want.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      clearTimeout(deadline);
      try {
        resolve(parseAnswers(Buffer.concat(pieces), head));
      } catch (error) {
        reject(error);
      }
    });
    if (ends === 'at once') socket.end(bytes);
    else socket.write(bytes);
  });
}

function parseAnswers(bytes: Buffer, head: boolean): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    const lines = bytes.toString('latin1', at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(lines[0] ?? '')?.[1]);
    if (end < 0 || Number.isNaN(status)) throw new Error(`no answer of HTTP: ${JSON.stringify(lines[0])}`);
    const headers = new Map(lines.slice(1).map((line) => splitHeader(line)));
    const length = head ? 0 : Number(headers.get('content-length') ?? 0);
    const begin = end + 4;
    at = begin + length;
    if (at > bytes.length) throw new Error(`the answer ${status} is cut short`);
    answers.push({ status, headers, body: bytes.toString('utf8', begin, at) });
  }
  return answers;
}

function splitHeader(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

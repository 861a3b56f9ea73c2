import { connect } from 'node:net';

/** One answer as it came over the wire; `body` has the length that its head announced. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface ExchangeOptions {
  /** When the sending side ends; never, unless given. */
  readonly ends?: 'at once' | 'when answered' | undefined;
  /** The request is HEAD: its answer has no content, whatever length it names. */
  readonly head?: boolean;
  readonly deadlineMs?: number;
}

/** Shorter than what the server gives a body: it must not be that which ends a connection. */
const deadlineMsMax = 25_000;

/**
 * Sends bytes that nobody repairs and reads until the server closes.
 * @throws Error when it does not close within `deadlineMs`, or when what came are no answers of HTTP
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
      // The server may close while bytes that it does not want are still on their way.
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

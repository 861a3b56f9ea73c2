import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Limits, memory, forwarding and Node's pipelines all listen for `close`; Node warns of a leak above 10. */
const listenersMax = 32;

interface Place {
  /** The response to the previous request on the connection. */
  readonly previous: ServerResponse | undefined;
  /** Called when `previous` is closed. */
  onClosed?: () => void;
}

interface Connection {
  /** Oldest first. */
  readonly open: Map<ServerResponse, Place>;
  /** The response to the newest request; it may be closed already. */
  newest?: ServerResponse;
}

/**
 * The open responses of each connection. All of them emit `close` when their connection ends, however it ends.
 *
 * Node itself emits `close` only for the oldest open response. It destroys the responses queued after that one without a `close`, and drops
 * them when it detaches the socket for CONNECT or Upgrade. Limits, memory and files held until `close` would then never be released.
 */
export class OpenResponses {
  readonly #of = new WeakMap<Duplex, Connection>();

  /** Watches the requests of `server`. Call it after its other listeners are installed. */
  watch(server: Server): void {
    const add = (req: IncomingMessage, res: ServerResponse): void => this.#add(req.socket, res);
    server.prependListener('request', add);
    // Only for events that already have a listener: adding the first one would change how Node handles `Expect`.
    for (const event of ['checkContinue', 'checkExpectation'])
      if (server.listenerCount(event) > 0) server.prependListener(event, add);
  }

  /** Returns the number of open responses of a connection. */
  count(socket: Duplex): number {
    return this.#of.get(socket)?.open.size ?? 0;
  }

  oldest(socket: Duplex): ServerResponse | undefined {
    const [oldest] = this.#of.get(socket)?.open.keys() ?? [];
    return oldest;
  }

  newest(socket: Duplex): ServerResponse | undefined {
    const connection = this.#of.get(socket);
    return connection && newestOf(connection);
  }

  /**
   * Calls `task` when the previous response of the connection is closed. Returns false, and never calls `task`, if no previous response is
   * open. Call it at most once for each response.
   */
  afterPrevious(res: ServerResponse, task: () => void): boolean {
    const open = this.#of.get(res.req.socket)?.open;
    if (open === undefined || open.size <= 1) return false; // the usual case: no pipelining
    const previous = open.get(res)?.previous;
    const place = previous && open.get(previous);
    if (place === undefined) return false;
    place.onClosed = task;
    return true;
  }

  #add(socket: Duplex, res: ServerResponse): void {
    const connection = this.#of.get(socket) ?? this.#follow(socket);
    const { open } = connection;
    if (open.has(res)) return; // already added: some events are emitted again as `request`, such as `checkContinue`
    const place: Place = { previous: newestOf(connection) };
    open.set(res, place);
    connection.newest = res;
    // Not `once`, which costs more: a second `close` finds nothing to delete.
    res.setMaxListeners(listenersMax).on('close', () => {
      if (open.delete(res)) place.onClosed?.();
    });
  }

  #follow(socket: Duplex): Connection {
    const open = new Map<ServerResponse, Place>();
    const connection: Connection = { open };
    this.#of.set(socket, connection);
    // Node closes the oldest response in this turn too. The others are closed after it, so that none is closed twice.
    socket.once('close', () => process.nextTick(closeAll, open));
    return connection;
  }
}

const newestOf = ({ open, newest }: Connection): ServerResponse | undefined =>
  newest !== undefined && open.has(newest) ? newest : undefined;

function closeAll(open: ReadonlyMap<ServerResponse, unknown>): void {
  for (const res of [...open.keys()]) {
    res.req.destroy(); // the body of this request can no longer arrive
    res.destroy();
    Object.assign(res, { _closed: true }); // Node sets this too; code may check it later
    res.emit('close');
  }
}

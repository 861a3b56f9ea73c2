import type { Duplex } from 'node:stream';

/** Errors by which the system reports that the peer has reset the connection. */
const resets: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE'];

/**
 * Notes whether the peer itself ended a connection, by FIN or RST. A time-out of this node or of its system, and a network that cannot be
 * reached, say nothing about the peer.
 */
export class ConnectionEnding {
  #byPeer = false;

  constructor(socket: Duplex) {
    socket.once('end', () => {
      this.#byPeer = true;
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (resets.includes(code)) this.#byPeer = true;
    });
  }

  /** False while the connection is open, and after this node has destroyed it. */
  get byPeer(): boolean {
    return this.#byPeer;
  }
}

import { reasonOf } from '@transitd/process';
import { CodecError } from '@transitd/raft-core';
import type { WebSocket } from 'ws';
import type { SessionEnd, Wire } from '../sessions/session-ports.ts';
import type { Frame } from '../stream/frame.ts';
import { decodeFrame } from '../stream/frame-codec.ts';

/** WebSocket subprotocol of the replication stream, with the version of its frames. */
export const streamProtocol = 'transitd.replication.1';
export const streamPath = '/cluster/replication/stream';
export const activatePath = '/cluster/replication/activate';

/** Header of a reply of a node that is not active: the cluster port of the one that is. */
export const activeNodeHeader = 'x-transitd-active-node';

/** How long the other side may take to close a connection that this side has ended. */
const closeMsMax = 2_000;

/** One end of a connection, which its owner drives. */
interface SessionEnds {
  received(frame: Frame): void;
  unexpected(): void;
  closed(): void;
}

export const wireOf = (socket: WebSocket): Wire => ({
  // The bytes of every frame are wiped once they are sent: one of them is the primary's root key.
  send: (bytes) => socket.send(bytes, () => bytes.fill(0)),
  get unsentBytes() {
    return socket.bufferedAmount;
  },
  end: () => {
    socket.close();
    setTimeout(() => socket.terminate(), closeMsMax).unref();
  },
});

/** Delivers the frames of a WebSocket, and its end, to a session. */
export function deliver(socket: WebSocket, session: SessionEnds): void {
  socket.on('message', (data, isBinary) => {
    const frame = isBinary && Buffer.isBuffer(data) ? frameIn(data) : undefined;
    if (frame === undefined) session.unexpected();
    else session.received(frame);
  });
  socket.on('error', () => undefined); // `close` follows
  socket.on('close', () => session.closed());
}

const levelText =
  'the feature level of the secondary is below the level of its primary: upgrade the secondary, and raise its feature level';

/** Returns why a session ended, for logs and status. */
export function sessionEndText(end: SessionEnd): string {
  if (end.why === 'failed') return reasonOf(end.error);
  if (end.why === 'refused' && end.reason === 'level') return levelText;
  return 'reason' in end ? `${end.why}: ${end.reason}` : end.why;
}

function frameIn(bytes: Buffer): Frame | undefined {
  try {
    return decodeFrame(bytes);
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

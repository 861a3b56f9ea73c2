import type { TLSSocket } from 'node:tls';
import { arrivalDeadline } from '@transitd/http';
import { fieldsIn } from '@transitd/storage-fsm';
import type { ClusterHandler } from './cluster-call.ts';
import { type Incarnation, incarnationHeader, writeIncarnation } from './incarnations.ts';

/** The call with which the ends of a connection prove to each other that they are unsealed. */
export const unsealedPath = '/cluster/unsealed';

/**
 * Whether a request is one of a joining node. A sealed node forwards them too, and it could make no proof. A joining node does not trust
 * the node that answers, and proves to it what it is.
 */
export const isOfJoin = (path: string): boolean => path.startsWith('/v1/sys/storage/raft/bootstrap/');

const label = 'EXPERIMENTAL transitd unsealed 1';
const channelBytes = 32;
const noContext = Buffer.alloc(0);
/** Longest answer: head and proof. */
const answerBytesMax = 8 * 1024;

/**
 * Returns a value that only the two ends of this connection know (exporter of TLS 1.3, RFC 8446 §7.5). A proof for it is worth nothing on
 * another connection, so no node can pass off the proof of another one as its own.
 */
export const channelOf = (socket: TLSSocket): Buffer => socket.exportKeyingMaterial(channelBytes, label, noContext);

/** The ends of a connection for requests of clients. A proof names its end, so the other end gains nothing by sending it back. */
export type Side = 'forwarding node' | 'answering node';

/** Makes and checks proofs that the end of a connection is unsealed. Both throw StoreError `sealed` if this node is sealed. */
export interface UnsealedProofs {
  prove(side: Side, channel: Uint8Array): Buffer;
  isProof(side: Side, channel: Uint8Array, proof: Uint8Array): boolean;
}

export interface UnsealedProofOptions {
  readonly proofs: UnsealedProofs;
  readonly incarnation: Incarnation;
  readonly msMax: number;
}

/**
 * Exchanges proofs with the other end of a fresh connection that both are unsealed. Certificates do not prove this: the identity of a node
 * is on its disk, which can be copied. On success the connection is as if nothing had been sent on it.
 * @param done - called once, with the reason if the other end has given no proof; the caller closes the connection then
 */
export function proveUnsealed(
  socket: TLSSocket,
  { proofs, incarnation, msMax }: UnsealedProofOptions,
  done: (refused?: string) => void,
): void {
  let answer = '';
  const finish = (refused: string | undefined): void => {
    endDeadline();
    socket.off('data', onData).off('close', onClose);
    done(refused);
  };
  const onData = (bytes: Buffer): void => {
    answer += bytes.toString('latin1');
    const proof = proofIn(answer);
    if (proof !== undefined) finish(whileUnsealed(() => (isProven(proof) ? undefined : 'it does not prove that it is unsealed')));
    else if (answer.length > answerBytesMax) finish('its answer is too long');
  };
  const isProven = (proof: Buffer): boolean => proofs.isProof('answering node', channelOf(socket), proof);
  const onClose = (): void => finish('it closed the connection instead of proving that it is unsealed');
  const endDeadline = arrivalDeadline(msMax, () => finish(`no proof within ${msMax} ms that it is unsealed`));
  socket.on('data', onData).once('close', onClose);
  const refused = whileUnsealed(
    () => void socket.write(requestWith(proofs.prove('forwarding node', channelOf(socket)), incarnation)),
  );
  if (refused !== undefined) finish(refused);
}

/** Returns what `task` returns, or why it failed. */
function whileUnsealed(task: () => string | undefined): string | undefined {
  try {
    return task();
  } catch {
    return 'this node is sealed, so neither end can prove to the other that it is unsealed';
  }
}

function requestWith(proof: Buffer, incarnation: Incarnation): string {
  const body = JSON.stringify({ proof: proof.toString('base64') });
  const head = `POST ${unsealedPath} HTTP/1.1\r\nHost: cluster\r\n${incarnationHeader}: ${writeIncarnation(incarnation)}`;
  return `${head}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** Returns the handler of these calls. A connection whose caller has proved that it is unsealed may carry requests of clients. */
export function unsealedHandler(proofs: UnsealedProofs): ClusterHandler {
  return async ({ channel, body, proved }) => {
    const { proof } = fieldsIn(body);
    const isCaller = typeof proof === 'string' && proofs.isProof('forwarding node', channel(), Buffer.from(proof, 'base64'));
    if (!isCaller) return { status: 403, json: {} };
    proved();
    return { status: 200, json: { proof: proofs.prove('answering node', channel()).toString('base64') } };
  };
}

/** Returns the proof in a complete answer, empty if the answer contains no proof; undefined while the answer is incomplete. */
function proofIn(answer: string): Buffer | undefined {
  const end = answer.indexOf('\r\n\r\n');
  const length = Number(/\r\ncontent-length: *(\d{1,5})\r\n/i.exec(answer)?.[1] ?? 0);
  if (end < 0 || answer.length < end + 4 + length) return undefined;
  return Buffer.from(/^HTTP\/1\.1 200 /.test(answer) ? (/"proof":"([^"]*)"/.exec(answer.slice(end))?.[1] ?? '') : '', 'base64');
}

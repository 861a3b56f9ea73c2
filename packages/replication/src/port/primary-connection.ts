import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Connect, connectionBy, connectTo, openWebSocket, parseHostAndPort, untrustedReason } from '@transitd/cluster';
import { answerTo, bytesOf } from '@transitd/process';
import { jsonIn } from '@transitd/storage-fsm';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { frameBytesMax } from '../stream/frame-codec.ts';
import { addressesSchema, authoritiesSchema, type PrimaryCredential } from './credential.ts';
import { primaryNodeFault } from './secondary-certificate.ts';
import type { ActivationRequest, IssuedCertificate } from './secondary-desk.ts';
import { activatePath, activeNodeHeader, streamPath, streamProtocol } from './wire.ts';

interface PrimaryConnectionOptions {
  /** `host:port` of a node of the primary. */
  readonly address: string;
  readonly credential: PrimaryCredential;
  /** Time limit for the connection, for the handshake, and for the head of the answer. */
  readonly connectMsMax: number;
}

/** The answer of a node of the primary that refuses. */
interface PrimaryRefusal {
  readonly status: number;
  /** The cluster port of the active node, if the refusing node is not active. */
  readonly activeNode?: string;
  readonly reason?: string;
}

const answerBytesMax = 64 * 1024;
const issued = z.object({ certificate: z.string().max(2048), addresses: addressesSchema, authorities: authoritiesSchema });

/** Connects only to a node of the primary's cluster. Sends nothing to any other node. */
const connecting =
  ({ address, credential, connectMsMax }: PrimaryConnectionOptions): Connect =>
  (done) => {
    const { key, certificate, authorities } = credential;
    connectTo(
      {
        ...{ address, name: address, connectMsMax },
        identity: { key, certificate, authority: authorities.join('\n') },
        accepts: (shown) => primaryNodeFault(shown, credential),
      },
      (error, connection) => done(error ?? null, connection?.socket),
    );
  };

/** Opens the stream. `onRefused` is called before `close` when a node of the primary answers with a refusal. */
export function openStream(options: PrimaryConnectionOptions, onRefused: (refusal: PrimaryRefusal) => void): WebSocket {
  const { address, connectMsMax: handshakeMsMax } = options;
  const socket = openWebSocket(
    { address, path: streamPath, protocols: [streamProtocol], frameBytesMax, handshakeMsMax },
    connecting(options),
  );
  socket.on('unexpected-response', (_request, response) => {
    void bytesOf(response, answerBytesMax)
      .catch(() => Buffer.alloc(0))
      .then((body) => {
        onRefused(refusalIn(response.statusCode ?? 0, response.headers[activeNodeHeader], body));
        socket.terminate();
      });
  });
  return socket;
}

/**
 * Exchanges an activation token for a certificate at one node of the primary.
 * @returns a refusal, or the certificate and where the nodes of the primary are
 * @throws Error when the node cannot be reached, or its answer is malformed
 */
export async function requestCertificate(
  options: PrimaryConnectionOptions,
  request: ActivationRequest,
): Promise<PrimaryRefusal | IssuedCertificate> {
  const { status, activeNode, body } = await exchange(options, Buffer.from(JSON.stringify(request)));
  if (status !== 200) return refusalIn(status, activeNode, body);
  const read = issued.safeParse(jsonIn(body));
  if (!read.success) throw new Error(`${options.address}: the answer to the activation is malformed`);
  return read.data;
}

interface Exchanged {
  readonly status: number;
  readonly activeNode: unknown;
  readonly body: Buffer;
}

function exchange(options: PrimaryConnectionOptions, body: Buffer): Promise<Exchanged> {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length, Connection: 'close' };
  const signal = AbortSignal.timeout(2 * options.connectMsMax);
  const outgoing = httpsRequest({
    ...{ method: 'POST', path: activatePath, headers, setHost: true },
    host: parseHostAndPort(options.address)?.host,
    ...connectionBy(connecting(options)),
    signal,
  });
  const answer = answerTo(outgoing, signal, async (response: IncomingMessage) => {
    const { statusCode: status = 0, headers: answered } = response;
    return { status, activeNode: answered[activeNodeHeader], body: await bytesOf(response, answerBytesMax) };
  });
  outgoing.end(body);
  return answer;
}

function refusalIn(status: number, activeNode: unknown, body: Buffer): PrimaryRefusal {
  const reason = untrustedReason(jsonIn(body));
  return {
    status,
    ...(reason !== undefined && { reason }),
    ...(typeof activeNode === 'string' && parseHostAndPort(activeNode) !== undefined && { activeNode }),
  };
}

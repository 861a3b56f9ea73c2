import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { InvariantViolation, LogDamage } from '@transitd/raft-core';
import { armFailpoints, StorageDamaged, StorageFailed, StorageInUse } from '@transitd/storage-fsm';
import { allRoutes } from './api/routes.ts';
import { type Config, isLoopback, type ListenerConfig } from './config.ts';
import type { DevNode } from './dev.ts';
import { printWelcome } from './dev-welcome.ts';
import { exitCode, StartError } from './exit.ts';
import { createFront } from './http/front.ts';
import { installListVerb } from './http/list-verb.ts';
import { createLog, type Logger } from './log.ts';
import { Metrics } from './metrics.ts';
import { Node } from './node/node.ts';
import { createTelemetry } from './telemetry.ts';
import { version } from './version.ts';

/** How long requests in flight may take to end after the process was asked to stop. */
const drainMs = 5000;

export interface RunOptions {
  /** Present for a node that initialises and unseals itself. */
  readonly dev?: DevNode;
  /** The configuration as it is now, for SIGHUP; it may throw StartError. */
  readonly reread?: () => Config;
}

/**
 * Runs one node until it is asked to stop; resolves with the exit code.
 * @throws StartError when it cannot start
 */
export async function runServer(config: Config, { dev, reread }: RunOptions = {}): Promise<number> {
  const log = createLog(config.log);
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  let failed = false;
  const onFatal = (error: Error): void => {
    if (failed) return; // one fault of the disk is told by the log and by the driver
    failed = true;
    const code = codeOf(error);
    log.fatal(
      { reason: error.message },
      code === exitCode.storage ? 'storage failed: the node stops and acknowledges nothing more' : 'broken invariant',
    );
    // Answers that say "outcome unknown" were handed out just now: this turn writes them, the next one ends the process.
    setImmediate(() => process.exit(code));
  };

  armFailpoints(process.env['TRANSITD_FAILPOINTS']);
  const node = await opening(() => Node.open({ config, log, onFatal }), log);
  if (typeof node === 'number') return node;
  const metrics = new Metrics(config.telemetry.prefix, {
    unsealed: () => node.service !== undefined,
    active: () => node.active,
    raft: () => node.replicaStatus,
    barrierEncryptions: () => (node.service === undefined ? 0 : (node.member?.barrier.keyStatus().encryptions ?? 0)),
  });
  const routes = allRoutes(metrics);
  const servers: Server[] = [];
  // From here on: who is told "listening" may already stop it.
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    log.info({ signal }, 'stopping');
    await Promise.all(servers.map(drain));
    await node.stop();
    log.info('stopped');
    end(exitCode.ok);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  try {
    if (dev !== undefined && !node.initialized) await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, dev.rootToken);
    for (const listener of config.listeners) {
      const front = createFront({ node, log, metrics, routes, bodyBytesMax: listener.max_request_size });
      const server = createListener(listener, front);
      servers.push(server);
      const address = await listen(server, listener.address, listener.tls === undefined ? 'http' : 'https');
      if (listener.tls === undefined && !isLoopback(listener.address.host)) {
        log.warn({ address }, 'this listener has no TLS: tokens and plaintexts cross the network in clear');
      }
      node.listens(address);
      log.info({ address }, 'listening');
      if (dev !== undefined) printWelcome({ address, ...dev, log: config.log });
    }
    if (config.telemetry.address !== undefined) {
      const server = createServer(createTelemetry(node, metrics));
      servers.push(server);
      log.info({ telemetry: await listen(server, config.telemetry.address, 'http') }, 'telemetry');
    }
  } catch (error) {
    for (const server of servers) server.close();
    await node.stop();
    throw error;
  }
  log.info({ version, node: config.node_id, initialized: node.initialized, sealed: node.service === undefined }, 'started');

  process.on('SIGHUP', () => {
    try {
      reload(reread?.() ?? config, servers, log);
    } catch (error) {
      log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        'not everything was reloaded; what was not stays as it was',
      );
    }
  });
  return ended;
}

/** Opens the node; damage and failures of the disk end in one sentence and their exit code. */
async function opening(open: () => Promise<Node>, log: Logger): Promise<Node | number> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StorageInUse) throw new StartError(error.message);
    if (error instanceof StorageDamaged || error instanceof LogDamage || error instanceof StorageFailed) {
      log.fatal({ reason: error.message }, 'the data directory cannot be used');
      return exitCode.storage;
    }
    throw error;
  }
}

const codeOf = (error: Error): number =>
  error instanceof InvariantViolation ? exitCode.invariant : isStorageError(error) ? exitCode.storage : exitCode.invariant;

const isStorageError = (error: Error): boolean =>
  error instanceof StorageFailed || error instanceof StorageDamaged || error instanceof LogDamage;

function createListener({ tls, headers_timeout }: ListenerConfig, front: RequestListener): Server {
  const options = {
    headersTimeout: headers_timeout,
    requestTimeout: 0,
    keepAliveTimeout: 5 * 60_000,
    maxHeaderSize: 16 * 1024,
    noDelay: true,
  };
  const server: Server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...tlsContext(tls),
          minVersion: `TLSv${tls.min_version}`,
          requestCert: tls.client_ca_file !== undefined,
          rejectUnauthorized: tls.client_ca_file !== undefined,
        });
  server.on('request', front);
  // The body reader decides whether a caller that asks first may send at all.
  server.on('checkContinue', front);
  installListVerb(server, front);
  trackConnections(server);
  return server;
}

/** @throws StartError */
function tlsContext({ cert_file, key_file, client_ca_file }: NonNullable<ListenerConfig['tls']>): SecureContextOptions {
  const read = (file: string): Buffer => {
    try {
      return readFileSync(file);
    } catch (error) {
      throw new StartError(`listeners: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
    }
  };
  return { cert: read(cert_file), key: read(key_file), ...(client_ca_file !== undefined && { ca: read(client_ca_file) }) };
}

/** Resolves with the address under which it answers. @throws StartError */
function listen(server: Server, { host, port }: { host: string; port: number }, scheme: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const what = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used: ${error.code ?? error.message}`;
      reject(new StartError(`listeners: ${host}:${port} ${what}`));
    };
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      const bound = server.address();
      const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
      resolve(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${boundPort}`);
    });
  });
}

/** Open connections: Node closes those that have fallen idle, but not those on which nothing was ever asked. */
const connectionsOf = new WeakMap<Server, Set<Socket>>();

function trackConnections(server: Server): void {
  const connections = new Set<Socket>();
  connectionsOf.set(server, connections);
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
}

/** Takes no new connections, lets requests in flight end, and cuts what is left after a while. */
function drain(server: Server): Promise<void> {
  return new Promise((resolve) => {
    for (const socket of connectionsOf.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
    server.prependListener('request', (_req, res) => {
      res.shouldKeepAlive = false; // a caller with more to ask would keep its connection, and us, busy
    });
    const cut = setTimeout(() => server.closeAllConnections(), drainMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** SIGHUP: certificates and the log's level are read again; what follows from no other setting changes. */
function reload({ listeners, log: { level } }: Config, servers: readonly Server[], log: Logger): void {
  log.level = level;
  for (const [index, { tls }] of listeners.entries()) {
    if (tls === undefined) continue;
    (servers[index] as TlsServer).setSecureContext(tlsContext(tls));
    log.info({ certificate: tls.cert_file }, 'certificate reloaded');
  }
  log.info({ level }, 'reloaded');
}

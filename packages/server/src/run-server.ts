import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { allRoutes, createRouter, Limits, PathForms } from '@transitd/api';
import { AuditDevices } from '@transitd/audit';
import { BarrierError } from '@transitd/barrier';
import { type Config, isLoopback, type ListenerConfig, tlsContext } from '@transitd/configuration';
import { Connections } from '@transitd/http';
import { Node } from '@transitd/node';
import { exitCode, type Logger, reasonOf, StartError, version, warnOfCoreDumps } from '@transitd/process';
import { InvariantViolation, LogDamage } from '@transitd/raft-core';
import { armFailpoints, StorageDamaged, StorageFailed, StorageInUse, StoreError } from '@transitd/storage-fsm';
import { connectionsWithin, openFilesMax } from './descriptors.ts';
import type { DevNode } from './dev.ts';
import { printWelcome } from './dev-welcome.ts';
import { createListener, Listener } from './listener.ts';
import { createLog } from './log.ts';
import { Metrics } from './metrics.ts';
import { figuresOf } from './metrics-node.ts';
import { listenForStop } from './stop-request.ts';
import { createTelemetry } from './telemetry.ts';

/** For the head of a request to the telemetry listener, in milliseconds. */
const telemetryHeadMs = 10_000;

export interface RunOptions {
  /** Present for a node that initialises and unseals itself. */
  readonly dev?: DevNode;
  /** The configuration as it is now, for SIGHUP; it may throw StartError. */
  readonly reread?: () => Config;
}

/**
 * Incarnations one node until it is asked to stop; resolves with the exit code.
 * @throws StartError when it cannot start
 */
export async function runServer(config: Config, { dev, reread }: RunOptions = {}): Promise<number> {
  const log = createLog(config.log);
  warnOfCoreDumps(log);
  const listeners: Listener[] = [];
  const running: { node?: Node; audit?: AuditDevices | undefined } = {};
  const stop = listenForStop((signal) => log.info({ signal }, 'stopping'));
  process.on('SIGHUP', () => {
    try {
      void running.audit?.reopen();
      reload({ present: config, next: reread?.() ?? config }, listeners, log);
    } catch (error) {
      log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        'not everything was reloaded; what was not stays as it was',
      );
    }
  });
  // Without a listener it would end the process with no word to the others; process managers and log shippers send it by habit.
  process.on('SIGUSR2', () => log.warn('SIGUSR2 has no meaning here and is ignored'));

  arm(process.env['TRANSITD_FAILPOINTS']);
  const limits = new Limits(config.limits);
  const connections = new Connections(connectionsMax(config, log));
  const metrics = new Metrics(config.telemetry.prefix, { ...figuresOf(() => running.node), load: { limits, connections } });
  const audit = await AuditDevices.open({ devices: config.audit, log, observer: metrics.audit });
  running.audit = audit;
  const routes = allRoutes(metrics, audit);
  const forms = new PathForms(() => routes);
  const canonicalPath = (path: string): string => forms.canonical(path);
  const open = () => Node.open({ config, log, onFatal: stopOnFault(log), observer: metrics.observer, canonicalPath });
  // A stop does not wait for the opening, which may be cut off anywhere, as by a crash.
  const opened = await Promise.race([stop.asked, opening(open, log)]);
  if (typeof opened === 'number') return opened;
  const node = opened;
  running.node = node;
  const start = async (): Promise<void> => {
    if (dev !== undefined && !node.initialized) await Promise.race([stop.asked, initializing(node, dev)]);
    const bodyBytesMax = Math.max(...config.listeners.map(({ max_request_size }) => max_request_size));
    node.serveForwarded(createRouter({ node, log, metrics, routes, bodyBytesMax, limits, audit, forwarded: true }));
    for (const listenerConfig of config.listeners) {
      if (stop.isAsked) return;
      const front = createRouter({
        node,
        log,
        metrics,
        routes,
        limits,
        audit,
        bodyBytesMax: listenerConfig.max_request_size,
        trustedProxies: config.trusted_proxies,
      });
      const listener = new Listener(front, (counted) => createListener(listenerConfig, counted), { connections });
      listeners.push(listener);
      const address = await listener.listen(listenerConfig.address);
      if (listenerConfig.tls === undefined && !isLoopback(listenerConfig.address.host)) {
        log.warn({ address }, 'this listener has no TLS: tokens and plaintexts cross the network in clear');
      }
      node.listeningAt(address);
      log.info({ address }, 'listening');
      if (dev !== undefined && !stop.isAsked) printWelcome({ address, ...dev, log: config.log });
    }
    if (config.telemetry.address !== undefined && !stop.isAsked) {
      const create = (counted: RequestListener) => createListener({ headers_timeout: telemetryHeadMs }, counted);
      const listener = new Listener(createTelemetry(node, metrics), create, { connections });
      listeners.push(listener);
      log.info({ telemetry: await listener.listen(config.telemetry.address) }, 'telemetry');
    }
    if (!stop.isAsked)
      log.info({ version, node: config.node_id, initialized: node.initialized, sealed: node.services === undefined }, 'started');
  };
  try {
    await start();
    return await stop.asked;
  } finally {
    await node.transferLeadership();
    await Promise.all(listeners.map((listener) => listener.drain()));
    await node.stop();
    await audit?.close();
    log.info('stopped');
  }
}

/** Over all listeners; says so where the process may not open as many files as the configuration expects. @throws StartError */
function connectionsMax({ limits, cluster_addr }: Config, log: Logger): number {
  const openFiles = openFilesMax();
  const configured = limits.connections;
  const connections = connectionsWithin({
    openFilesMax: openFiles,
    connectionsMax: configured,
    clustered: cluster_addr !== undefined,
  });
  if (connections < configured)
    log.warn(
      { openFiles, configured, connections },
      'limits.connections was lowered: this process may open too few files for more (raise ulimit -n, LimitNOFILE)',
    );
  return connections;
}

/** Faults for a test, from the environment. @throws StartError */
function arm(failpoints: string | undefined): void {
  try {
    armFailpoints(failpoints);
  } catch (error) {
    if (error instanceof TypeError) throw new StartError(`TRANSITD_FAILPOINTS: ${error.message}`);
    throw error;
  }
}

/** What the node calls when it can go on no more. */
function stopOnFault(log: Logger): (error: Error) => void {
  let failed = false;
  return (error) => {
    if (failed) return; // one fault of the disk is told by the log and by the driver
    failed = true;
    const code = codeOf(error);
    log.fatal(
      { reason: reasonOf(error) },
      code === exitCode.storage ? 'storage failed: the node stops and acknowledges nothing more' : 'broken invariant',
    );
    // Answers that say "outcome unknown" were handed out just now: this turn writes them, the next one ends the process.
    setImmediate(() => process.exit(code));
  };
}

/** Opens the node; damage and failures of the disk end in one sentence and their exit code. */
async function opening(open: () => Promise<Node>, log: Logger): Promise<Node | number> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StorageInUse) throw new StartError(error.message);
    if (error instanceof Error && isStorageError(error)) {
      log.fatal({ reason: reasonOf(error) }, 'the data directory cannot be used');
      return exitCode.storage;
    }
    throw error;
  }
}

/** Initialises a node to try things on. @throws StartError */
async function initializing(node: Node, { rootToken }: DevNode): Promise<void> {
  try {
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, rootToken);
  } catch (error) {
    if (error instanceof StoreError || error instanceof BarrierError)
      throw new StartError(`the node could not be initialised: ${error.message}`);
    throw error;
  }
}

const codeOf = (error: Error): number =>
  error instanceof InvariantViolation ? exitCode.invariant : isStorageError(error) ? exitCode.storage : exitCode.invariant;

const isStorageError = (error: Error): boolean =>
  error instanceof StorageFailed || error instanceof StorageDamaged || error instanceof LogDamage;

/**
 * SIGHUP: certificates and the log's level are read again, and the files of the audit opened anew; what follows from no other setting changes.
 * @throws StartError when the listeners have changed in more than that; then none of them changes
 */
function reload({ present, next }: { present: Config; next: Config }, listeners: readonly Listener[], log: Logger): void {
  const { level } = next.log;
  log.level = level;
  if (!isDeepStrictEqual(next.listeners.map(unchangeable), present.listeners.map(unchangeable)))
    throw new StartError('listeners: they have changed in more than certificates, which needs a restart');
  const contexts = next.listeners.map(({ tls }) => tls && tlsContext(tls));
  for (const [index, context] of contexts.entries()) if (context !== undefined) listeners[index]?.replaceContext(context);
  log.info({ logLevel: level, certificates: contexts.filter((context) => context !== undefined).length }, 'reloaded');
}

/** What of a listener stays as it was at the start. */
const unchangeable = ({ tls, ...rest }: ListenerConfig): object => ({
  ...rest,
  tls: tls && { asksForCertificate: tls.client_ca_file !== undefined },
});

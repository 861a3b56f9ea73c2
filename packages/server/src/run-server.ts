import type { RequestListener } from 'node:http';
import { availableParallelism, totalmem } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { allRoutes, createRouter, Limits, PathForms } from '@transitd/api';
import { AuditDevices } from '@transitd/audit';
import { BarrierError } from '@transitd/barrier';
import { type Config, isLoopback, type ListenerConfig, tlsContext } from '@transitd/configuration';
import { Connections, reading } from '@transitd/http';
import { gatewayCount, Node } from '@transitd/node';
import { exitCode, type Logger, reasonOf, StartError, version, warnOfCoreDumps } from '@transitd/process';
import { InvariantViolation, LogDamage } from '@transitd/raft-core';
import { armFailpoints, StorageDamaged, StorageFailed, StorageInUse, StoreError, UnsupportedLevel } from '@transitd/storage-fsm';
import { type ConnectionSharing, clientConnectionsMax, fittingConnections, openFilesMax } from './descriptors.ts';
import type { DevNode } from './dev.ts';
import { printWelcome } from './dev-welcome.ts';
import { totalLoad } from './gateway-load.ts';
import { Gateways } from './gateways/gateways.ts';
import type { GatewayListener } from './gateways/messages.ts';
import { nodeLimits, threadLimits } from './gateways/node-limits.ts';
import { PassedRequests } from './gateways/passed-requests.ts';
import { gatewayThreads } from './gateways/thread-count.ts';
import { createListener, Listener, requireFree } from './listener.ts';
import { NodeLog } from './log.ts';
import { type MetricSources, Metrics } from './metrics.ts';
import { metricSourcesOf } from './metrics-node.ts';
import { listenForStop } from './stop-request.ts';
import { createTelemetry } from './telemetry.ts';
import { openTracing } from './tracing/tracing.ts';

/** Headers timeout of the telemetry listener, in milliseconds. */
const telemetryHeadersMs = 10_000;

export interface RunOptions {
  /** Present for a node that initializes and unseals itself. */
  readonly dev?: DevNode;
  /** Reads the configuration again on SIGHUP. @throws StartError */
  readonly reread?: () => Config;
}

/**
 * Runs one node until a stop signal; resolves with the exit code.
 * @throws StartError if it cannot start
 */
export async function runServer(given: Config, { dev, reread }: RunOptions = {}): Promise<number> {
  const nodeLog = new NodeLog(given.log);
  const log = nodeLog.logger;
  const config = { ...given, workers: workersOf(given, log) };
  warnOfCoreDumps(log);
  const listeners: Listener[] = [];
  const running: { node?: Node; audit?: AuditDevices | undefined; gateways?: Gateways; passed?: PassedRequests } = {};
  const stop = listenForStop((signal) => log.info({ signal }, 'stopping'));
  process.on('SIGHUP', () => {
    void running.audit?.reopen();
    reload({ current: config, reread }, { listeners, gateways: running.gateways }, nodeLog).catch((error: unknown) =>
      log.error({ reason: reasonOf(error) }, 'reload failed; settings that were not reloaded keep their values'),
    );
  });
  // By default SIGUSR2 would end the process without a leadership transfer, and process managers and log shippers send it by habit.
  process.on('SIGUSR2', () => log.warn('ignored SIGUSR2: transitd does not use it'));

  arm(process.env['TRANSITD_FAILPOINTS']);
  const workers = gatewayCount(config);
  const divided = nodeLimits(config, workers, connectionsMax(config, log, 1 + workers));
  const own = threadLimits(divided);
  const limits = new Limits(config.limits, own);
  const connections = new Connections(own.connections);
  reading.divide(1 + workers);
  const metrics = new Metrics(config.telemetry.prefix, {
    ...metricSourcesOf(() => running.node),
    ...gatewaySourcesOf(() => running.gateways),
    load: totalLoad({ limits, connections, pipelining: reading }, () => running.gateways),
    auditDevices: config.audit.map(({ name }) => name),
  });
  const audit = await AuditDevices.open({ devices: config.audit, log, observer: metrics.audit });
  running.audit = audit;
  const tracing = openTracing(config, log, metrics.spans);
  const tracer = tracing?.tracer;
  const routes = allRoutes(metrics, audit, nodeLog);
  const forms = new PathForms(() => routes);
  const canonicalPath = (path: string): string => forms.canonical(path);
  const observer = { ...metrics.observer, ...(tracer && { tracer }) };
  const open = () => Node.open({ config, log, onFatal: stopOnFault(log), observer, canonicalPath, work: () => metrics.work() });
  // A stop does not wait until the node is open: like a crash, a stop may interrupt the opening at any point.
  const opened = await Promise.race([stop.requested, openNode(open, log)]);
  if (typeof opened === 'number') return opened;
  const node = opened;
  running.node = node;
  const start = async (): Promise<void> => {
    if (dev !== undefined && !node.initialized) await Promise.race([stop.requested, initializeNode(node, dev)]);
    const bodyBytesMax = Math.max(...config.listeners.map(({ max_request_size }) => max_request_size));
    node.serveForwarded(createRouter({ node, log, metrics, tracer, routes, bodyBytesMax, limits, audit, forwarded: true }));
    const fronts: RequestListener[] = [];
    const bound: GatewayListener[] = [];
    for (const listenerConfig of config.listeners) {
      if (stop.isRequested) return;
      const tls = listenerConfig.tls && tlsContext(listenerConfig.tls);
      const front = createRouter({
        node,
        log,
        metrics,
        tracer,
        routes,
        limits,
        audit,
        bodyBytesMax: listenerConfig.max_request_size,
        trustedProxies: config.trusted_proxies,
      });
      // Imported only if it is served, so that it costs nothing elsewhere.
      const served = config.ui ? await (await import('./console.ts')).withConsole(front) : front;
      fronts.push(served);
      const create = (counted: RequestListener) => createListener({ ...listenerConfig, context: tls }, counted);
      const listener = new Listener(served, create, { connections });
      listeners.push(listener);
      if (workers > 0 && listenerConfig.address.port !== 0) await requireFree(listenerConfig.address);
      const address = await listener.listen(listenerConfig.address, { shared: workers > 0 });
      bound.push({ config: listenerConfig, tls, bound: { ...listenerConfig.address, port: portOf(address) } });
      if (listenerConfig.tls === undefined && !isLoopback(listenerConfig.address.host)) {
        log.warn({ address }, 'this listener has no TLS: tokens and plaintexts cross the network unencrypted');
      }
      node.listeningAt(address);
      log.info({ address }, 'listening');
      if (dev !== undefined && !stop.isRequested) printWelcome({ address, ...dev, config });
    }
    if (node.gateways !== undefined && !stop.isRequested) {
      running.passed = new PassedRequests(config.data_dir, fronts);
      await running.passed.listen();
      const parts = {
        config,
        limits: divided,
        main: running.passed.address,
        listeners: bound,
        metrics,
        audit,
        log,
      };
      running.gateways = new Gateways({ ...parts, host: node.gateways, count: workers });
      running.gateways.start();
    }
    if (config.telemetry.address !== undefined && !stop.isRequested) {
      const create = (counted: RequestListener) => createListener({ headers_timeout: telemetryHeadersMs }, counted);
      const listener = new Listener(createTelemetry(node, metrics), create, { connections });
      listeners.push(listener);
      log.info({ telemetry: await listener.listen(config.telemetry.address) }, 'telemetry listening');
    }
    if (!stop.isRequested)
      log.info({ version, node: config.node_id, initialized: node.initialized, sealed: node.services === undefined }, 'started');
  };
  try {
    await start();
    return await stop.requested;
  } finally {
    await node.transferLeadership();
    nodeLog.close();
    node.reports.streams.close();
    // Gateways pass requests to the main thread until they have drained.
    await Promise.all([...listeners.map((listener) => listener.drain()), running.gateways?.drain()]);
    await running.gateways?.stop();
    running.passed?.close();
    await node.stop();
    await audit?.close();
    await tracing?.close();
    log.info('stopped');
  }
}

const portOf = (url: string): number => Number(new URL(url).port || (url.startsWith('https:') ? 443 : 80));

/** Returns the sources of what gateways add to the metrics. */
const gatewaySourcesOf = (gateways: () => Gateways | undefined): Pick<MetricSources, 'inFlightElsewhere' | 'collect'> => ({
  inFlightElsewhere: () => (gateways()?.loads ?? []).reduce((sum, { inFlight }) => sum + inFlight, 0),
  collect: async () => gateways()?.report(),
});

/** Returns the number of gateway threads on this machine. */
function workersOf(config: Config, log: Logger): number {
  const spreadsConnections = process.platform === 'linux';
  const sharing = sharingOf(config, openFilesMax());
  const count = gatewayThreads(config, {
    spreadsConnections,
    cores: availableParallelism(),
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    connectionsFor: (threads) => fittingConnections({ ...sharing, threads }),
  });
  if (config.workers === 'auto') log.info({ workers: count }, 'chose the number of gateway threads');
  else if (count < config.workers) log.warn('workers: ignored, because this system does not spread connections over threads');
  return count;
}

const sharingOf = ({ limits, cluster_addr }: Config, openFiles: number | undefined): ConnectionSharing => ({
  openFilesMax: openFiles,
  connectionsMax: limits.connections,
  clustered: cluster_addr !== undefined,
});

/** Returns the connection limit over all listeners and threads; warns if the open-file limit lowers it. @throws StartError */
function connectionsMax(config: Config, log: Logger, threads: number): number {
  const openFiles = openFilesMax();
  const configured = config.limits.connections;
  const connections = clientConnectionsMax({ ...sharingOf(config, openFiles), threads });
  if (connections < configured)
    log.warn(
      { openFiles, configured, connections },
      'limits.connections was lowered: the open-file limit is too low (raise ulimit -n, LimitNOFILE)',
    );
  return connections;
}

/** Arms the failpoints in the environment, for tests. @throws StartError */
function arm(failpoints: string | undefined): void {
  try {
    armFailpoints(failpoints);
  } catch (error) {
    if (error instanceof TypeError) throw new StartError(`TRANSITD_FAILPOINTS: ${error.message}`);
    throw error;
  }
}

/** Returns the handler of fatal errors, which ends the process. */
function stopOnFault(log: Logger): (error: Error) => void {
  let failed = false;
  return (error) => {
    if (failed) return; // the log and the driver both report the same disk failure
    failed = true;
    const code = codeOf(error);
    if (error instanceof UnsupportedLevel) log.fatal(error.message);
    else
      log.fatal(
        { reason: reasonOf(error) },
        code === exitCode.storage ? 'storage failed: the node stops and acknowledges nothing more' : 'broken invariant',
      );
    // Responses with "outcome unknown" were just passed to their sockets. This event-loop turn writes them; the next turn ends the process.
    setImmediate(() => process.exit(code));
  };
}

/** Opens the node; a disk failure or damage is logged and returned as an exit code. */
async function openNode(open: () => Promise<Node>, log: Logger): Promise<Node | number> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StorageInUse || error instanceof UnsupportedLevel) throw new StartError(error.message);
    if (error instanceof Error && isStorageError(error)) {
      log.fatal({ reason: reasonOf(error) }, 'the data directory cannot be used');
      return exitCode.storage;
    }
    throw error;
  }
}

/** Initializes a development node. @throws StartError */
async function initializeNode(node: Node, { rootToken }: DevNode): Promise<void> {
  try {
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, rootToken);
  } catch (error) {
    if (error instanceof StoreError || error instanceof BarrierError)
      throw new StartError(`the node could not be initialized: ${error.message}`);
    throw error;
  }
}

const codeOf = (error: Error): number =>
  error instanceof UnsupportedLevel
    ? exitCode.start
    : error instanceof InvariantViolation
      ? exitCode.invariant
      : isStorageError(error)
        ? exitCode.storage
        : exitCode.invariant;

const isStorageError = (error: Error): boolean =>
  error instanceof StorageFailed || error instanceof StorageDamaged || error instanceof LogDamage;

/**
 * Applies the certificates and the log level of a reread configuration (SIGHUP); ignores other settings.
 * @throws StartError if listeners changed in anything but certificates; then no listener changes
 */
async function reload(
  { current, reread }: { readonly current: Config; readonly reread: (() => Config) | undefined },
  { listeners, gateways }: { readonly listeners: readonly Listener[]; readonly gateways: Gateways | undefined },
  nodeLog: NodeLog,
): Promise<void> {
  const next = reread?.() ?? current;
  const { level } = next.log;
  nodeLog.level = level;
  if (!isDeepStrictEqual(next.listeners.map(fixedSettings), current.listeners.map(fixedSettings)))
    throw new StartError('listeners: only certificates can be reloaded; restart the node to apply the other changes');
  const contexts = next.listeners.map(({ tls }) => tls && tlsContext(tls));
  for (const [index, context] of contexts.entries()) if (context !== undefined) listeners[index]?.replaceContext(context);
  await gateways?.replaceContexts(contexts);
  nodeLog.logger.info({ logLevel: level, certificates: contexts.filter((context) => context !== undefined).length }, 'reloaded');
}

/** Returns the settings of a listener that need a restart to change. */
const fixedSettings = ({ tls, ...rest }: ListenerConfig): object => ({
  ...rest,
  tls: tls && { requestsCertificate: tls.client_ca_file !== undefined },
});

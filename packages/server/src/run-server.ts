import { allRoutes, authMethods, Limits } from '@transitd/api';
import { AuditDevices, noAudit } from '@transitd/audit';
import { BarrierError } from '@transitd/barrier';
import { type Config, changedKeys, reloaded } from '@transitd/configuration';
import { Connections, reading, unreadResponses } from '@transitd/http';
import { gatewayCount, Node } from '@transitd/node';
import { exitCode, type Logger, reasonOf, StartError, version, warnOfCoreDumps } from '@transitd/process';
import { armFailpoints, StoreError } from '@transitd/storage-fsm';
import { type DevNode, printWelcome } from './dev.ts';
import { openOrExitCode, stopOnFault, storageExitCode } from './faults.ts';
import { HeapGrowth } from './gateways/heap-growth.ts';
import { type NodeLimits, nodeLimits, threadLimits, unreadBytesMax } from './gateways/node-limits.ts';
import { added, loadOf } from './gateways/thread-load.ts';
import { NodeLog } from './log.ts';
import { connectionsMaxHere, workersHere } from './machine.ts';
import { type MetricSources, Metrics } from './metrics/metrics.ts';
import { NodeListeners } from './node-listeners.ts';
import { listenForStop } from './stop-request.ts';
import { openTracing } from './tracing/tracing.ts';
import { onWarnings } from './warnings.ts';

export interface RunOptions {
  /** Present for a node that initializes and unseals itself. */
  readonly dev?: DevNode;
  /** Reads the configuration again on SIGHUP. @throws StartError */
  readonly reread?: () => Config;
}

/** The parts of a process that exist by now. Signals and metrics refer to them before all of them exist. */
interface Running {
  audit?: AuditDevices | undefined;
  node?: Node;
  listeners?: NodeListeners;
}

/**
 * Runs one node until a stop signal; resolves with the exit code. If the node cannot start, the reason is the last line of a log in JSON
 * that no terminal shows.
 * @throws StartError if it cannot start and nothing has logged why
 */
export async function runServer(given: Config, options: RunOptions = {}): Promise<number> {
  const nodeLog = new NodeLog(given.log);
  try {
    return await run(given, options, nodeLog);
  } catch (error) {
    if (!(error instanceof StartError)) return storageExitCode(error);
    const { format, level } = given.log;
    if (format !== 'json' || level === 'silent' || process.stderr.isTTY) throw error;
    nodeLog.logger.fatal(error.message);
    return exitCode.start;
  }
}

/** @throws StartError if the node cannot start */
async function run(given: Config, { dev, reread }: RunOptions, nodeLog: NodeLog): Promise<number> {
  const log = nodeLog.logger;
  const config = { ...given, workers: workersHere(given, log) };
  onWarnings((warning, message) => log.warn({ warning }, message));
  warnOfCoreDumps(log);
  const running: Running = {};
  const stop = listenForStop((signal) => log.info({ signal }, 'stopping'));
  handleOtherSignals({ config: given, reread, nodeLog, running });
  arm(process.env['TRANSITD_FAILPOINTS']);

  const limits = limitsFor(config, log);
  const metrics = new Metrics(config.telemetry.prefix, metricSources(config, limits, running));
  const audit = await AuditDevices.open({ devices: config.audit, log, observer: metrics.audit });
  running.audit = audit;
  const tracing = await openTracing(config, log, metrics.spans);
  const tracer = tracing?.tracer;
  const routes = allRoutes(metrics, audit, nodeLog);
  const observer = { ...metrics.observer, ...(tracer && { tracer }) };
  const open = () =>
    Node.open({
      ...{ config, log, authMethods, audit: audit ?? noAudit, observer },
      onFatal: stopOnFault(log),
      work: () => metrics.work(),
    });
  // A stop does not wait until the node is open: like a crash, a stop may interrupt the opening at any point.
  const opened = await Promise.race([stop.requested, openOrExitCode(open, log)]);
  if (typeof opened === 'number') return opened;
  const node = opened;
  running.node = node;
  const heapGrowth = new HeapGrowth();
  const listeners = new NodeListeners({
    ...limits,
    config,
    node,
    log,
    metrics,
    tracer,
    routes,
    audit,
    heapGrowth,
    isStopRequested: () => stop.isRequested,
    onListening: (address) => {
      if (dev !== undefined && !stop.isRequested) printWelcome({ address, ...dev, config });
    },
  });
  running.listeners = listeners;
  try {
    if (dev !== undefined) await Promise.race([stop.requested, makeReady(node, dev)]);
    await listeners.open();
    heapGrowth.threadLoaded();
    if (!stop.isRequested)
      log.info({ version, node: config.node_id, initialized: node.initialized, sealed: node.services === undefined }, 'started');
    return await stop.requested;
  } finally {
    await node.transferLeadership();
    nodeLog.close();
    node.closeStreams();
    await listeners.close();
    await node.stop();
    await audit?.close();
    await tracing?.close();
    log.info('stopped');
  }
}

/** The limits that refuse and delay requests and connections. */
interface LoadLimits {
  /** Of all threads. */
  readonly nodeLimits: NodeLimits;
  /** Of the main thread. */
  readonly limits: Limits;
  readonly connections: Connections;
}

/** Divides the limits of the configuration between the threads of the node. @throws StartError if too few connections would remain */
function limitsFor(config: Config, log: Logger): LoadLimits {
  const workers = gatewayCount(config);
  const ofNode = nodeLimits(config, workers, connectionsMaxHere(config, log, 1 + workers));
  const own = threadLimits(ofNode);
  reading.divide(1 + workers);
  unreadResponses.limit(unreadBytesMax(config));
  return { nodeLimits: ofNode, limits: new Limits(config.limits, own), connections: new Connections(own.connections) };
}

/** Returns the sources of the metrics of the main thread, of the gateways, and of the node once it is open. */
function metricSources(config: Config, { limits, connections }: LoadLimits, running: Running): MetricSources {
  const gateways = () => running.listeners?.gateways;
  return {
    node: () => running.node,
    load: {
      limits,
      total: () => [loadOf(limits, connections, 0), ...(gateways()?.loads ?? [])].reduce(added),
      gateways,
    },
    certificates: () => running.listeners?.certificates ?? [],
    auditDevices: config.audit.map(({ name }) => name),
    inFlightElsewhere: () => (gateways()?.loads ?? []).reduce((sum, { inFlight }) => sum + inFlight, 0),
    collect: async () => void (await gateways()?.report()),
  };
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

/** Initializes a development node if it is new. @throws StartError also if its records could not be read: nobody would unseal it later */
async function makeReady(node: Node, { rootToken }: DevNode): Promise<void> {
  if (node.services !== undefined) return;
  if (node.initialized)
    throw new StartError(
      `the records in ${node.config.data_dir} could not be read, so this node would stay sealed: ` +
        'see the reason in the log, and use an earlier copy of the directory or another --data-dir',
    );
  try {
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, rootToken);
  } catch (error) {
    if (error instanceof StoreError || error instanceof BarrierError)
      throw new StartError(`the node could not be initialized: ${error.message}`);
    throw error;
  }
}

interface Reloading {
  /** The configuration at the start, as it was read. */
  readonly config: Config;
  readonly reread: (() => Config) | undefined;
  readonly nodeLog: NodeLog;
  readonly running: Running;
}

/** Reloads at SIGHUP, and ignores SIGUSR2. */
function handleOtherSignals(reloading: Reloading): void {
  const log = reloading.nodeLog.logger;
  process.on('SIGHUP', () => {
    reload(reloading).catch((error: unknown) => log.error({ reason: reasonOf(error) }, 'reload failed'));
  });
  // By default SIGUSR2 would end the process without a leadership transfer, and process managers and log shippers send it by habit.
  process.on('SIGUSR2', () => log.warn('ignored SIGUSR2: transitd does not use it'));
}

/** Applies the changes of a reread configuration that need no restart, and reads the TLS files again. Names the other changes. */
async function reload({ config, reread, nodeLog, running }: Reloading): Promise<void> {
  const log = nodeLog.logger;
  const { audit, listeners } = running;
  void audit?.reopen();
  const present: Config = {
    ...config,
    log: { ...config.log, level: nodeLog.level },
    listeners: listeners?.settings ?? config.listeners,
  };
  let next = present;
  try {
    next = reread?.() ?? present;
  } catch (error) {
    log.error({ reason: reasonOf(error) }, 'the configuration file was not reloaded: all settings keep their values');
  }
  const applied = reloaded(present, next);
  nodeLog.level = applied.log.level;
  const settings = changedKeys(applied, next);
  if (settings.length > 0)
    log.warn({ settings }, 'these settings have changed in the configuration, and need a restart of this node');
  const certificates = await listeners?.reload(applied.listeners);
  log.info({ logLevel: nodeLog.level, certificates }, 'reloaded');
}

import type { RequestListener } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import { createRouter, type RouterOptions } from '@transitd/api';
import type { AuditDevices } from '@transitd/audit';
import {
  addressText,
  type Config,
  isLoopback,
  type ListenerConfig,
  revocationExpiryMs,
  revocationWarnedMs,
  tlsContext,
} from '@transitd/configuration';
import { RepeatingTask } from '@transitd/event-loop';
import type { Connections } from '@transitd/http';
import { gatewayCount, type Node } from '@transitd/node';
import { reasonOf } from '@transitd/process';
import { Gateways } from './gateways/gateways.ts';
import type { HeapGrowth } from './gateways/heap-growth.ts';
import type { GatewayListener } from './gateways/messages.ts';
import type { NodeLimits } from './gateways/node-limits.ts';
import { PassedRequests } from './gateways/passed-requests.ts';
import { createListener, Listener, requireFree } from './listener.ts';
import type { ShownCertificate } from './metrics/certificates.ts';
import type { Metrics } from './metrics/metrics.ts';
import { createTelemetry } from './telemetry.ts';

/** Headers timeout of the telemetry listener, in milliseconds. */
const telemetryHeadersMs = 10_000;
/** How often the log warns of a revocation list that expires soon, in milliseconds. */
const revocationWarningMs = 3_600_000;
/** How long gateways may take to hand over the uses of keys, in milliseconds. */
const usesMsMax = 1000;

export interface NodeListenersParts extends Pick<RouterOptions, 'limits' | 'log' | 'routes' | 'tracer'> {
  readonly config: Config;
  readonly node: Node;
  readonly metrics: Metrics;
  readonly audit: AuditDevices | undefined;
  readonly connections: Connections;
  /** The limits of all threads. */
  readonly nodeLimits: NodeLimits;
  readonly heapGrowth: HeapGrowth;
  /** Whether to open nothing further. */
  readonly isStopRequested: () => boolean;
  /** A listener for clients is open. @param address - its URL */
  readonly onListening: (address: string) => void;
}

/** A listener for clients that is open. */
interface OpenListener extends GatewayListener {
  /** When the first of its revocation lists expires, in Unix milliseconds: computed once per context, because lists may be long. */
  readonly revocationExpiryMs: number | undefined;
  /** Serves its requests in the main thread. */
  readonly front: RequestListener;
}

/** The listeners of an open node: for clients, for telemetry, and in its gateway threads. */
export class NodeListeners {
  readonly #parts: NodeListenersParts;
  /** For clients, in the order of the configuration; then for telemetry. */
  readonly #listeners: Listener[] = [];
  /** The listeners for clients that are open, in the order of the configuration. */
  #forClients: readonly OpenListener[] = [];
  /** Resolves when the listeners are open. */
  #opening: Promise<void> = Promise.resolve();
  #passed: PassedRequests | undefined;
  #gateways: Gateways | undefined;
  readonly #revocationWarnings = new RepeatingTask(revocationWarningMs, () => this.#warnOfRevocationLists());

  constructor(parts: NodeListenersParts) {
    this.#parts = parts;
  }

  /** The certificates of the listeners that have TLS, as new handshakes show them. */
  get certificates(): readonly ShownCertificate[] {
    return this.#forClients.flatMap(({ bound, tls, revocationExpiryMs }) =>
      tls === undefined ? [] : [{ address: addressText(bound), chain: String(tls.cert), revocationExpiryMs }],
    );
  }

  /** The settings of the listeners for clients: of the last reload, or, before they are open, of the start. */
  get settings(): ListenerConfig[] {
    return this.#parts.config.listeners.map((listener, index) => this.#forClients[index]?.config ?? listener);
  }

  /** The gateway threads; undefined until they are started, and on a node without any. */
  get gateways(): Gateways | undefined {
    return this.#gateways;
  }

  /** Serves requests that other nodes forward, then opens the listeners until a stop is requested. @throws StartError */
  open(): Promise<void> {
    this.#opening = this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { config, node, isStopRequested } = this.#parts;
    node.serveForwarded(this.#forwardedFront());
    for (const listener of config.listeners)
      if (!isStopRequested()) this.#forClients = [...this.#forClients, await this.#openForClients(listener)];
    if (gatewayCount(config) > 0 && !isStopRequested()) await this.#startGateways(this.#forClients);
    const telemetry = config.telemetry.address;
    if (telemetry !== undefined && !isStopRequested()) await this.#openForTelemetry(telemetry);
    this.#warnOfRevocationLists();
    this.#revocationWarnings.start();
  }

  /**
   * Reads the TLS files of the listeners, once all are open, and uses them for new handshakes. A listener whose files have a fault keeps
   * all that it has.
   * @param settings - by the index of the listener; they differ from the present ones in what a reload may change
   * @returns the number of certificates that were replaced
   */
  async reload(settings: readonly ListenerConfig[]): Promise<number> {
    await this.#opening; // a listener that is being opened has read its files already
    const contexts: (SecureContextOptions | undefined)[] = [];
    this.#forClients = this.#forClients.map((listener, index) => {
      const config = settings[index] ?? listener.config;
      const context = this.#readAgain(config);
      contexts.push(context);
      if (context === undefined) return listener;
      this.#listeners[index]?.replaceContext(context);
      return { ...listener, config, ...withExpiry(context) };
    });
    await this.#gateways?.replaceContexts(contexts);
    this.#warnOfRevocationLists();
    return contexts.filter((context) => context !== undefined).length;
  }

  #readAgain({ address, tls }: ListenerConfig): SecureContextOptions | undefined {
    try {
      return tls && tlsContext(tls);
    } catch (error) {
      const reason = reasonOf(error);
      this.#parts.log.error(
        { address: addressText(address), reason },
        'the TLS files of this listener were not reloaded: it keeps its own',
      );
      return undefined;
    }
  }

  /** Resolves when all requests in flight have ended or their time is up, and all listeners and threads are closed. */
  async close(): Promise<void> {
    this.#revocationWarnings.stop();
    // Gateways pass requests to the main thread until they have drained.
    await Promise.all([...this.#listeners.map((listener) => listener.drain()), this.#gateways?.drain()]);
    await this.#gateways?.stop();
    this.#passed?.close();
  }

  /** An expired list refuses all certificates of its authority, and nothing else says so before clients fail. */
  #warnOfRevocationLists(): void {
    for (const { address, revocationExpiryMs: endMs = Number.POSITIVE_INFINITY } of this.certificates)
      if (endMs - Date.now() < revocationWarnedMs)
        this.#parts.log.warn(
          { address, expires: new Date(endMs).toISOString() },
          'a revocation list of client_crl_file expires within six hours, or has expired: then no certificate of its authority is accepted',
        );
  }

  #forwardedFront(): RequestListener {
    const bodyBytesMax = Math.max(...this.#parts.config.listeners.map(({ max_request_size }) => max_request_size));
    return createRouter({ ...this.#routerOptions, bodyBytesMax, forwarded: true });
  }

  async #openForClients(config: ListenerConfig): Promise<OpenListener> {
    const { connections, log, node, onListening } = this.#parts;
    const isShared = gatewayCount(this.#parts.config) > 0;
    const tls = config.tls && tlsContext(config.tls);
    const front = await this.#clientFront(config);
    const create = (counted: RequestListener) => createListener({ ...config, context: tls }, counted);
    const listener = new Listener(front, create, { connections });
    this.#listeners.push(listener);
    if (isShared) await requireFree(config.address);
    const address = await listener.listen(config.address, { shared: isShared });
    if (config.tls === undefined && !isLoopback(config.address.host))
      log.warn({ address }, 'this listener has no TLS: tokens and plaintexts cross the network unencrypted');
    node.listeningAt(address);
    log.info({ address }, 'listening');
    onListening(address);
    return { config, ...withExpiry(tls), bound: { ...config.address, port: portOf(address) }, front };
  }

  async #clientFront({ max_request_size: bodyBytesMax }: ListenerConfig): Promise<RequestListener> {
    const { ui, trusted_proxies: trustedProxies } = this.#parts.config;
    const front = createRouter({ ...this.#routerOptions, bodyBytesMax, trustedProxies });
    // Imported only if it is served, so that it costs nothing elsewhere.
    return ui ? (await import('./console.ts')).withConsole(front) : front;
  }

  async #startGateways(open: readonly OpenListener[]): Promise<void> {
    const { config, nodeLimits: limits, metrics, audit, log, node, heapGrowth } = this.#parts;
    const { gateways: host } = node;
    const passed = new PassedRequests(
      config.data_dir,
      open.map(({ front }) => front),
    );
    this.#passed = passed;
    await passed.listen();
    const listeners = open.map(({ config, tls, bound }) => ({ config, tls, bound }));
    const count = gatewayCount(config);
    const { usage } = node;
    const gateways = new Gateways({
      config,
      limits,
      main: passed.address,
      listeners,
      metrics,
      audit,
      log,
      host,
      usage,
      count,
      heapGrowth,
    });
    this.#gateways = gateways;
    usage.followThreads(() => gateways.report(usesMsMax));
    gateways.start();
  }

  async #openForTelemetry(address: ListenerConfig['address']): Promise<void> {
    const { connections, log, metrics, node } = this.#parts;
    const create = (counted: RequestListener) => createListener({ headers_timeout: telemetryHeadersMs }, counted);
    const listener = new Listener(createTelemetry(node, metrics), create, { connections });
    this.#listeners.push(listener);
    log.info({ telemetry: await listener.listen(address) }, 'telemetry listening');
  }

  get #routerOptions(): Omit<RouterOptions, 'bodyBytesMax'> {
    const { node, log, metrics, tracer, routes, limits, audit } = this.#parts;
    return { node, log, metrics, tracer, routes, limits, audit };
  }
}

const withExpiry = (tls: SecureContextOptions | undefined): Pick<OpenListener, 'tls' | 'revocationExpiryMs'> => ({
  tls,
  revocationExpiryMs: tls && revocationExpiryMs(tls),
});

const portOf = (url: string): number => Number(new URL(url).port || (url.startsWith('https:') ? 443 : 80));

import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs, type TransportLimits } from '@transitd/cluster';
import { type Clock, type Logger, reasonOf } from '@transitd/process';
import { SecondarySession, type SecondaryStatus } from '../sessions/secondary-session.ts';
import { type SecondaryCluster, type SessionLimits, type StopReason, sessionLimits } from '../sessions/session-ports.ts';
import type { PrimaryCredential } from './credential.ts';
import { openStream } from './primary-connection.ts';
import { deliver, sessionEndText, wireOf } from './wire.ts';

interface PrimaryLinkOptions {
  /** The newest credential; read for each attempt. */
  readonly credentials: { readonly present: PrimaryCredential };
  readonly cluster: SecondaryCluster;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly limits?: SessionLimits;
  readonly reconnect?: ReconnectLimits;
}

type ReconnectLimits = Pick<TransportLimits, 'connectMsMax' | 'reconnectMsMin' | 'reconnectMsMax'>;

export const reconnectLimits: ReconnectLimits = { connectMsMax: 5_000, reconnectMsMin: 100, reconnectMsMax: 10_000 };

/** Maximum number of referrals to other nodes before this side waits. */
const referralsMax = 3;

/** `stopped`: until an operator has decided. */
export interface PrimaryLinkStatus {
  readonly connection: 'connected' | 'connecting' | 'stopped';
  /** The node that the last attempt was made to. */
  readonly address: string;
  /**
   * Number of entries that this secondary is known to lack, and the age of its state. `ms` is undefined until it has caught up for the
   * first time.
   */
  readonly lag: { readonly entries: number; readonly ms: number | undefined };
  /** Time since a frame of the primary arrived; undefined before the first one. */
  readonly silentMs: number | undefined;
  /** Why the last connection or attempt ended. */
  readonly reason: string | undefined;
  /** Why this secondary has stopped; undefined while it has not. */
  readonly stopped: StopReason | undefined;
}

interface ConnectionEnd {
  readonly reason: string;
  /** The active node, according to the node that refused. */
  readonly activeNode?: string;
  /** Why this secondary must not connect again before an operator has decided. */
  readonly stopped?: StopReason;
}

const interrupted: ConnectionEnd = { reason: 'the connection ended' };

/** The connection of a secondary's active node to its primary. It finds the primary's active node, and reconnects until closed. */
export class PrimaryLink {
  readonly #options: PrimaryLinkOptions;
  readonly #limits: SessionLimits;
  readonly #reconnect: ReconnectLimits;
  readonly #timer: NodeJS.Timeout;
  readonly #closing = new AbortController();
  /** Undefined while there is no connection. */
  #session: SecondarySession | undefined;
  #address = '';
  /** How the last connection or attempt ended; undefined before the first end. */
  #end: ConnectionEnd | undefined;
  /** Number of attempts since this secondary last had caught up. */
  #attempts = 0;
  #entries = 0;
  /** Time at which the primary had everything that this secondary now has. */
  #freshMs: number | undefined;
  #heardMs: number | undefined;

  constructor(options: PrimaryLinkOptions) {
    this.#options = options;
    this.#limits = options.limits ?? sessionLimits;
    this.#reconnect = options.reconnect ?? reconnectLimits;
    this.#timer = setInterval(() => this.#tick(), this.#limits.heartbeatMs);
    void this.#follow();
  }

  status(): PrimaryLinkStatus {
    const nowMs = this.#options.clock.nowMs();
    const session = this.#observe(nowMs);
    const stopped = this.#end?.stopped;
    return {
      connection: stopped !== undefined ? 'stopped' : session?.isWelcome === true ? 'connected' : 'connecting',
      address: this.#address,
      lag: { entries: this.#entries, ms: this.#freshMs === undefined ? undefined : nowMs - this.#freshMs },
      silentMs: this.#heardMs === undefined ? undefined : nowMs - this.#heardMs,
      reason: this.#end?.reason,
      stopped,
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#session?.closed(); // frames that have arrived already have no effect
    this.#closing.abort();
  }

  /** Records the lag as the present connection reports it. */
  #observe(nowMs: number): SecondaryStatus | undefined {
    const status = this.#session?.status();
    if (status?.isWelcome !== true) return status;
    this.#entries = status.lag.entries;
    this.#heardMs = nowMs - status.silentMs;
    if (!status.hasCaughtUp) return status;
    this.#freshMs = nowMs - status.lag.ms;
    this.#attempts = 0;
    return status;
  }

  #tick(): void {
    this.#observe(this.#options.clock.nowMs());
    this.#session?.tick();
  }

  /** Connects again and again, until this link is closed or an operator must decide. */
  async #follow(): Promise<void> {
    const { credentials, log } = this.#options;
    const { signal } = this.#closing;
    let next = 0;
    const listed = (): string => credentials.present.addresses[next % credentials.present.addresses.length] ?? '';
    let address = listed();
    let referrals = 0;
    for (;;) {
      const end = await this.#connection(address);
      if (signal.aborted) return;
      this.#end = end;
      log.info({ address, reason: end.reason }, 'not connected to the primary');
      if (end.stopped !== undefined) {
        const text = 'this secondary stopped following its primary: an operator must decide how to continue';
        log.error({ reason: end.stopped }, text);
        return;
      }
      if (end.activeNode !== undefined && referrals < referralsMax) {
        referrals += 1;
        address = end.activeNode;
        continue;
      }
      referrals = 0;
      // Tries the node that answered last first, because usually only the connection was lost.
      if (this.#attempts > 0) next += 1;
      await pause(backoffMs(this.#attempts++, this.#reconnect, Math.random()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      address = listed();
    }
  }

  /** Connects to a node of the primary, and follows the primary while the connection lasts; resolves with how that ended. */
  #connection(address: string): Promise<ConnectionEnd> {
    const { credentials, cluster, clock } = this.#options;
    const { signal } = this.#closing;
    const { connectMsMax } = this.#reconnect;
    this.#address = address;
    let end = interrupted;
    const socket = openStream({ address, credential: credentials.present, connectMsMax }, ({ status, reason, ...refusal }) => {
      end = { ...refusal, reason: `${address} answered with status ${status}${reason === undefined ? '' : `: ${reason}`}` };
    });
    const terminate = (): void => socket.terminate();
    signal.addEventListener('abort', terminate);
    socket.on('error', (error) => {
      if (end === interrupted) end = { reason: reasonOf(error) };
    });
    socket.on('open', () => {
      const session = new SecondarySession({
        ...{ cluster, clock, limits: this.#limits, wire: wireOf(socket) },
        onEnd: (ended) => {
          end = { reason: sessionEndText(ended), ...(ended.why === 'stop' && { stopped: ended.reason }) };
          this.#observe(clock.nowMs());
        },
      });
      this.#session = session;
      deliver(socket, session);
    });
    return new Promise((resolve) => {
      socket.on('close', () => {
        signal.removeEventListener('abort', terminate);
        this.#session = undefined;
        resolve(end); // as it is now: the session learns of the close later, and calls that its end
      });
    });
  }
}

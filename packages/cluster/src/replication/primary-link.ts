import { type Clock, type Logger, reasonOf } from '@transitd/process';
import {
  type SecondaryCluster,
  SecondarySession,
  type SecondaryStatus,
  type SessionEnd,
  type SessionLimits,
  type StopReason,
  sessionLimits,
} from '@transitd/replication';
import { backoffMs } from '../transport/peer-link.ts';
import type { PrimaryCredential } from './credential.ts';
import { openStream } from './primary-connection.ts';
import { deliver, sessionEndText, wireOf } from './wire.ts';

export interface PrimaryLinkOptions {
  /** The newest credential; read for each attempt. */
  readonly credentials: { readonly present: PrimaryCredential };
  readonly cluster: SecondaryCluster;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'error'>;
  readonly localAddress?: string | undefined;
  readonly limits?: SessionLimits;
  readonly reconnect?: ReconnectLimits;
}

export interface ReconnectLimits {
  readonly connectMsMax: number;
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
}

export const reconnectLimits: ReconnectLimits = { connectMsMax: 5_000, reconnectMsMin: 100, reconnectMsMax: 10_000 };

/** Maximum number of referrals to other nodes before this side waits. */
const redirectsMax = 3;

/** `stopped`: until an operator has decided. */
export interface PrimaryLinkStatus {
  readonly connection: 'connected' | 'connecting' | 'stopped';
  /** The node that the last attempt was made to. */
  readonly address: string | undefined;
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

/** The connection of a secondary's active node to its primary. It finds the primary's active node, and reconnects until closed. */
export class PrimaryLink {
  readonly #options: PrimaryLinkOptions;
  readonly #limits: SessionLimits;
  readonly #reconnect: ReconnectLimits;
  readonly #timer: NodeJS.Timeout;
  #session: SecondarySession | undefined;
  #retry: NodeJS.Timeout | undefined;
  #end: (() => void) | undefined;
  /** Number of attempts since this secondary last had caught up. */
  #attempts = 0;
  #redirects = 0;
  #next = 0;
  #redirect: string | undefined;
  #address: string | undefined;
  #reason: string | undefined;
  #entries = 0;
  /** Time at which the primary had everything that this secondary now has. */
  #freshMs: number | undefined;
  #heardMs: number | undefined;
  #stopped: StopReason | undefined;
  #isClosed = false;

  constructor(options: PrimaryLinkOptions) {
    this.#options = options;
    this.#limits = options.limits ?? sessionLimits;
    this.#reconnect = options.reconnect ?? reconnectLimits;
    this.#timer = setInterval(() => this.#tick(), this.#limits.heartbeatMs);
    this.#connect();
  }

  status(): PrimaryLinkStatus {
    const nowMs = this.#options.clock.nowMs();
    const session = this.#observe(nowMs);
    return {
      connection: this.#stopped !== undefined ? 'stopped' : session?.isWelcome === true ? 'connected' : 'connecting',
      address: this.#address,
      lag: { entries: this.#entries, ms: this.#freshMs === undefined ? undefined : nowMs - this.#freshMs },
      silentMs: this.#heardMs === undefined ? undefined : nowMs - this.#heardMs,
      reason: this.#reason,
      stopped: this.#stopped,
    };
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    this.#session?.closed(); // frames that have arrived already have no effect
    this.#end?.();
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

  #connect(): void {
    const { credentials, cluster, clock, localAddress } = this.#options;
    const { present } = credentials;
    const address = this.#redirect ?? present.addresses[this.#next % present.addresses.length] ?? '';
    this.#redirect = undefined;
    this.#address = address;
    let ended: SessionEnd | undefined;
    let activeNode: string | undefined;
    let reason: string | undefined;
    const { connectMsMax } = this.#reconnect;
    const socket = openStream({ address, credential: present, localAddress, connectMsMax }, (refusal) => {
      activeNode = refusal.activeNode;
      reason = `${address} answered with status ${refusal.status}${refusal.reason === undefined ? '' : `: ${refusal.reason}`}`;
    });
    this.#end = () => socket.terminate();
    socket.on('error', (error) => {
      reason ??= reasonOf(error);
    });
    socket.on('open', () => {
      const session = new SecondarySession({
        ...{ cluster, clock, limits: this.#limits, wire: wireOf(socket) },
        onEnd: (end) => {
          ended = end;
          this.#observe(clock.nowMs());
        },
      });
      this.#session = session;
      deliver(socket, session);
    });
    socket.on('close', () => {
      this.#session = undefined;
      this.#onClose(ended, reason ?? 'the connection ended', activeNode);
    });
  }

  #onClose(ended: SessionEnd | undefined, reason: string, activeNode: string | undefined): void {
    if (this.#isClosed) return;
    this.#reason = ended === undefined ? reason : sessionEndText(ended);
    this.#options.log.info({ address: this.#address, reason: this.#reason }, 'not connected to the primary');
    if (ended?.why === 'stop') {
      this.#stopped = ended.reason;
      this.#options.log.error(
        { reason: ended.reason },
        'this secondary stopped following its primary: an operator must decide how to continue',
      );
      return;
    }
    if (activeNode !== undefined && this.#redirects++ < redirectsMax) {
      this.#redirect = activeNode;
      this.#connect();
      return;
    }
    this.#redirects = 0;
    // Tries the node that answered last first, because usually only the connection was lost.
    if (this.#attempts > 0) this.#next += 1;
    this.#retry = setTimeout(() => this.#connect(), backoffMs(this.#attempts++, this.#reconnect, Math.random()));
  }
}

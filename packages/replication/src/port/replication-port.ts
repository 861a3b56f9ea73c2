import {
  ClusterError,
  type GuestHandlers,
  type GuestRequest,
  type GuestStanding,
  type GuestStream,
  type Member,
} from '@transitd/cluster';
import type { Reply } from '@transitd/http';
import type { Logger, RecordClock } from '@transitd/process';
import { jsonIn } from '@transitd/storage-fsm';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { credentialOf, follows } from '../registry/registry.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import { ReplicationError } from '../replication-error.ts';
import { PrimarySession } from '../sessions/primary-session.ts';
import { type PrimaryCluster, type SessionEnd, type SessionLimits, sessionLimits } from '../sessions/session-ports.ts';
import type { SecondaryDesk } from './secondary-desk.ts';
import { activatePath, activeNodeHeader, deliver, sessionEndText, streamPath, streamProtocol, wireOf } from './wire.ts';

interface ReplicationPortOptions {
  readonly registry: Pick<StoredRegistry, 'current' | 'change' | 'onChange'>;
  readonly desk: Pick<SecondaryDesk, 'activate'>;
  readonly primary: PrimaryCluster;
  readonly role: { readonly isActive: boolean };
  /** Names the active node, for the answers of any other one. */
  readonly cluster: { readonly activeMember: Pick<Member, 'clusterAddress'> | undefined };
  readonly clock: Pick<RecordClock, 'nowMs' | 'dueMs'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly limits?: SessionLimits;
}

interface ConnectedSecondary extends ReturnType<PrimarySession['status']> {
  readonly secondary: string;
}

const activation = z.strictObject({ request: z.string().max(4096), cluster: z.string().min(1).max(64) });

/**
 * The part of a primary's cluster port that secondaries use. Each has one connection at most: a newer one replaces it. A connection ends
 * when its certificate is no longer in force.
 */
export class ReplicationPort implements GuestHandlers {
  readonly #options: ReplicationPortOptions;
  readonly #limits: SessionLimits;
  /** By the id of the secondary. */
  readonly #sessions = new Map<string, { readonly session: PrimarySession; readonly certificate: string }>();
  readonly #timer: NodeJS.Timeout;
  readonly #unwatch: () => void;
  #isProgressDue = false;

  constructor(options: ReplicationPortOptions) {
    this.#options = options;
    this.#limits = options.limits ?? sessionLimits;
    this.#unwatch = options.registry.onChange(() => this.#recheck());
    this.#timer = setInterval(() => this.#each((session) => session.tick()), this.#limits.heartbeatMs);
  }

  standing(certificate: string): GuestStanding | undefined {
    const right = this.#rightOf(certificate);
    return right && (right.kind === 'ended' ? 'ended' : 'current');
  }

  async call({ call, certificate }: GuestRequest, body: () => Promise<Buffer>): Promise<Reply | undefined> {
    const refusal = this.#refusal(certificate, 'activate');
    if (refusal !== undefined) return refusal;
    if (call !== `POST ${activatePath}`) return undefined;
    const read = activation.safeParse(jsonIn(await body()));
    if (!read.success) return { status: 400, errors: ['request is missing or malformed'] };
    try {
      return { status: 200, json: await this.#options.desk.activate(certificate, read.data) };
    } catch (error) {
      if (error instanceof ReplicationError) return { status: 410, errors: [error.message] };
      if (error instanceof ClusterError) return { status: 400, errors: [error.message] };
      throw error;
    }
  }

  stream({ call, certificate, offered }: GuestRequest): Reply | GuestStream | undefined {
    const refusal = this.#refusal(certificate, 'follow');
    if (refusal !== undefined) return refusal;
    if (call !== `GET ${streamPath}`) return undefined;
    if (!offered.has(streamProtocol)) return { status: 426, errors: ['no version of the stream in common'] };
    return { protocol: streamProtocol, serve: (socket) => this.#serve(socket, certificate) };
  }

  /** Called after this node has applied entries. The work is done once in each turn of the event loop. */
  progress(): void {
    if (this.#isProgressDue || this.#sessions.size === 0) return;
    this.#isProgressDue = true;
    setImmediate(() => {
      this.#isProgressDue = false;
      this.#each((session) => session.progress());
    });
  }

  get connected(): readonly ConnectedSecondary[] {
    return [...this.#sessions].map(([secondary, { session }]) => ({ secondary, ...session.status() }));
  }

  /** Ends all connections, because this node is no longer active or stops. */
  disconnect(): void {
    this.#each((session) => session.closed());
  }

  close(): void {
    clearInterval(this.#timer);
    this.#unwatch();
    this.disconnect();
  }

  #serve(socket: WebSocket, certificate: string): void {
    const { primary: cluster, registry, clock, log } = this.#options;
    const right = this.#rightOf(certificate);
    if (right?.kind !== 'follow') {
      socket.terminate();
      return;
    }
    const { secondary } = right;
    this.#sessions.get(secondary)?.session.closed();
    const session: PrimarySession = new PrimarySession({
      ...{ secondary, cluster, clock, limits: this.#limits, wire: wireOf(socket) },
      registered: async () => void (await registry.change((present) => follows(present, certificate))),
      onEnd: (end) => {
        if (this.#sessions.get(secondary)?.session === session) this.#sessions.delete(secondary);
        log[isUsual(end) ? 'info' : 'warn']({ secondary, reason: sessionEndText(end) }, 'a secondary is disconnected');
      },
    });
    this.#sessions.set(secondary, { session, certificate });
    log.info({ secondary }, 'a secondary is connected');
    deliver(socket, session);
  }

  #recheck(): void {
    for (const { session, certificate } of [...this.#sessions.values()])
      if (this.#rightOf(certificate)?.kind !== 'follow') session.closed();
  }

  #each(act: (session: PrimarySession) => void): void {
    for (const { session } of [...this.#sessions.values()]) act(session);
  }

  #rightOf(certificate: string): ReturnType<typeof credentialOf> {
    return credentialOf(this.#options.registry.current, certificate, this.#options.clock.dueMs());
  }

  /** Returns the reply to a request that this node refuses without reading it. */
  #refusal(certificate: string, wanted: 'activate' | 'follow'): Reply | undefined {
    const right = this.#rightOf(certificate);
    if (right?.kind === 'ended') return { status: 410, errors: [`the right to connect has ended: ${right.why}`] };
    if (right?.kind !== wanted) return { status: 403, errors: ['this certificate is not for this request'] };
    const { role, cluster } = this.#options;
    if (role.isActive) return undefined;
    const active = cluster.activeMember;
    const headers = active && { headers: { [activeNodeHeader]: active.clusterAddress } };
    return { status: 503, errors: ['this node is not the active one'], ...headers };
  }
}

const isUsual = ({ why }: SessionEnd): boolean => why === 'closed' || why === 'not_active' || why === 'epoch_ended';

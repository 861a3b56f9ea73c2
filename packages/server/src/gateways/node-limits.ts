import { randomInt } from 'node:crypto';
import { callerPart, type ThreadLimits } from '@transitd/api';
import type { Config } from '@transitd/configuration';
import {
  bodyCallerPart,
  CommonAmount,
  type CommonMemory,
  growingBytes,
  growingBytesOf,
  newCommonMemory,
  parsedBytesOf,
  type ThreadLimit,
} from '@transitd/http';
import { gatewayCount } from '@transitd/node';

type Own = Omit<ThreadLimit, 'common'>;

/**
 * A limit that several threads enforce. Half of it is divided between the threads, so that a caller who fills one thread, such as the one
 * that serves the telemetry, leaves room on the others. The other half is common, so that a thread that gets more connections or requests
 * than the others does not refuse them while the node has room.
 */
export interface DividedLimit {
  readonly main: Own;
  /** Of each gateway. */
  readonly gateway: Own;
  /** Absent if there are no gateways. The main thread has the last row. */
  readonly common: CommonMemory | undefined;
}

/** The limits of a node that all of its threads enforce. A gateway gets them when it starts. */
export interface NodeLimits {
  readonly workers: number;
  readonly connections: DividedLimit;
  readonly reads: DividedLimit;
  readonly bodies: DividedLimit;
  readonly growing: DividedLimit;
  readonly parsed: DividedLimit;
  /** Maximum number of queued bodies. */
  readonly waitingBodies: { readonly main: number; readonly gateway: number };
}

/**
 * @param workers - number of gateways
 * @param connectionsMax - maximum number of client connections
 */
export function nodeLimits(
  { limits, listeners }: Pick<Config, 'limits' | 'listeners'>,
  workers: number,
  connectionsMax: number,
): NodeLimits {
  const bodyBytesMax = Math.max(...listeners.map(({ max_request_size }) => max_request_size));
  const waitingGateway = Math.floor(limits.waiting / (workers + 1));
  return {
    workers,
    connections: divided(connectionsMax, workers),
    reads: divided(limits.reads, workers, { callerPart }),
    // The main thread must have room for the largest body, because it serves everything that gateways pass on.
    bodies: divided(limits.body_memory, workers, { callerPart: bodyCallerPart, mainMin: bodyBytesMax }),
    growing: divided(growingBytesOf(limits.body_memory), workers, { callerPart: bodyCallerPart, mainMin: growingBytes }),
    parsed: divided(parsedBytesOf(limits.body_memory), workers, { callerPart: bodyCallerPart, mainMin: parsedBytesOf(0) }),
    waitingBodies: { main: limits.waiting - workers * waitingGateway, gateway: waitingGateway },
  };
}

/**
 * Divides a limit. All parts add up to it, and so do the parts of one caller.
 * @param callerPart - part of the limit that one caller may take
 * @param mainMin - smallest amount of the main thread's own, if the limit is not smaller
 */
function divided(max: number, workers: number, { callerPart = 1, mainMin = 1 } = {}): DividedLimit {
  const perCaller = Math.ceil(max * callerPart);
  if (workers === 0)
    return { main: { own: max, ownPerCaller: perCaller }, gateway: { own: 0, ownPerCaller: 0 }, common: undefined };
  const equal = Math.floor(max / 2 / (workers + 1));
  const main = Math.min(max, Math.max(equal, mainMin));
  const gateway = Math.min(equal, Math.floor((max - main) / workers));
  const own = (amount: number): Own => ({ own: amount, ownPerCaller: Math.floor(amount * callerPart) });
  const parts = { main: own(main), gateway: own(gateway) };
  const common = {
    max: max - main - workers * gateway,
    perCallerMax: perCaller - parts.main.ownPerCaller - workers * parts.gateway.ownPerCaller,
    seed: randomInt(2 ** 32 - 1),
  };
  return { ...parts, common: newCommonMemory(common, workers + 1) };
}

/** Returns the limits as one thread enforces them. @param row - that of a gateway; default: the main thread */
export function threadLimits(limits: NodeLimits, row?: number): ThreadLimits & { readonly connections: ThreadLimit } {
  const ofThread = ({ main, gateway, common }: DividedLimit): ThreadLimit => ({
    ...(row === undefined ? main : gateway),
    ...(common && { common: new CommonAmount(common, row ?? limits.workers) }),
  });
  return {
    connections: ofThread(limits.connections),
    reads: ofThread(limits.reads),
    bodies: ofThread(limits.bodies),
    growing: ofThread(limits.growing),
    parsed: ofThread(limits.parsed),
    waitingBodies: row === undefined ? limits.waitingBodies.main : limits.waitingBodies.gateway,
  };
}

/**
 * Returns the bytes of unread responses that each thread keeps. Node may hold a response twice, as text and as bytes. The threads need no
 * common part, because no request is refused above the limit.
 */
export const unreadBytesMax = (config: Pick<Config, 'limits' | 'workers'>): number =>
  Math.floor(config.limits.body_memory / 2 / (1 + gatewayCount(config)));

/** Gives back everything that a gateway held, which has ended: its sockets are closed. */
export function clearRow({ connections, reads, bodies, growing, parsed }: NodeLimits, row: number): void {
  for (const { common } of [connections, reads, bodies, growing, parsed])
    if (common !== undefined) new CommonAmount(common, row).clear();
}

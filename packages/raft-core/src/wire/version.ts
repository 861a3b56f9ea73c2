import type { Message } from '../types.ts';

/** The range of frame formats that a program reads and writes, both ends included. */
export interface WireVersions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The versions of this program. A release adds at most one version and reads the previous one, so that a cluster can be upgraded node by
 * node; any new field or message type makes a new version.
 */
export const wireVersions: WireVersions = { oldest: 1, newest: 2 };

/**
 * Returns the version in which two nodes talk, agreed when they connect: the newest that both know. Undefined if they have none in common:
 * then neither reads the other's messages.
 */
export function commonVersion(one: WireVersions, other: WireVersions): number | undefined {
  const newest = Math.min(one.newest, other.newest);
  return newest < Math.max(one.oldest, other.oldest) ? undefined : newest;
}

/** The version that was the first with a type of message, unless that is the oldest. */
const firstVersions: Partial<Record<Message['type'], number>> = { Confirm: 2, ConfirmResp: 2 };

/** Whether frames of that version have such messages. */
export const isInVersion = (type: Message['type'], version: number): boolean =>
  version >= (firstVersions[type] ?? wireVersions.oldest);

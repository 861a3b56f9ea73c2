/** The frame formats that a program reads and writes, both ends included. */
export interface WireVersions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * This program's. A release adds one version at most and reads the one before it, so that a cluster is upgraded node by node:
 * any field or type of message that a release adds makes a new version.
 */
export const wireVersions: WireVersions = { oldest: 1, newest: 1 };

/**
 * The version in which two nodes talk, agreed on when they connect: the newest that both know. Undefined where they have none in
 * common: then neither hears the other.
 */
export function commonVersion(one: WireVersions, other: WireVersions): number | undefined {
  const newest = Math.min(one.newest, other.newest);
  return newest < Math.max(one.oldest, other.oldest) ? undefined : newest;
}

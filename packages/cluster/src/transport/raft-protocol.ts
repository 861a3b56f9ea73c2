import type { WireVersions } from '@transitd/raft-core';

/**
 * Returns the WebSocket subprotocols (RFC 6455 §1.9) that a node offers when it connects: one for each frame format it knows, newest first.
 */
export const raftProtocols = ({ oldest, newest }: WireVersions): readonly string[] =>
  Array.from({ length: newest - oldest + 1 }, (_, age) => `transitd.raft.${newest - age}`);

/** Returns the frame format that a subprotocol names. */
export const versionOf = (protocol: string, local: WireVersions): number =>
  local.newest - Math.max(0, raftProtocols(local).indexOf(protocol));

/**
 * Returns the newest frame format that both sides know; undefined when they have none in common because their releases are too far apart.
 */
export function agreedProtocol(offered: ReadonlySet<string>, local: WireVersions): string | undefined {
  return raftProtocols(local).find((protocol) => offered.has(protocol));
}

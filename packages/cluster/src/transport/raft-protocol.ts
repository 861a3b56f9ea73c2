import type { WireVersions } from '@transitd/raft-core';

/** The WebSocket subprotocols (RFC 6455 §1.9) of the frame formats that a program knows, newest first: what it offers when it connects. */
export const raftProtocols = ({ oldest, newest }: WireVersions): readonly string[] =>
  Array.from({ length: newest - oldest + 1 }, (_, age) => `transitd.raft.${newest - age}`);

/** The newest format that both know; undefined where they have none in common: the releases are too far apart. */
export function agreedProtocol(offered: ReadonlySet<string>, local: WireVersions): string | undefined {
  return raftProtocols(local).find((protocol) => offered.has(protocol));
}

import type { Message, NodeId } from '@transitd/raft-core';

/** A renaming of nodes 1 to n: the new name of node `id` is at position `id`; 0, which means none, stays. */
export type Renaming = readonly NodeId[];

/** Returns all renamings of this many nodes; the first changes nothing. */
export function renamings(nodes: number): readonly Renaming[] {
  let orders: NodeId[][] = [[0]];
  for (let id = 1; id <= nodes; id++) {
    orders = orders.flatMap((order) => {
      const rest = Array.from({ length: nodes }, (_, at) => at + 1).filter((name) => !order.includes(name));
      return rest.map((name) => [...order, name]);
    });
  }
  return orders;
}

export const renamed = (id: NodeId, renaming: Renaming): NodeId => renaming[id] ?? id;

/** Returns the message that would be sent under the new names. */
export function renamedMessage(message: Message, renaming: Renaming): Message {
  const [from, to] = [renamed(message.from, renaming), renamed(message.to, renaming)];
  return { ...message, from, to, session: message.session === 0 ? 0 : sessionOf({ ...message, from, to }) };
}

/** A leader numbers its peers, ascending by id; while nobody joins or leaves, that is their position among them. */
function sessionOf({ type, from, to }: Pick<Message, 'type' | 'from' | 'to'>): number {
  const [leader, peer] = type === 'AppendResp' || type === 'HeartbeatResp' ? [to, from] : [from, to];
  return peer < leader ? peer : peer - 1;
}

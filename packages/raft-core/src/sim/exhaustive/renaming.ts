import type { Message, NodeId } from '../../types.ts';

/** Other names for nodes 1 to n: what node `id` is called then stands at `id`, and 0, which is nobody, stays. */
export type Renaming = readonly NodeId[];

/** All renamings of so many nodes, the first of which changes nothing. */
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

/** The message that is sent where the nodes have these names. */
export function renamedMessage(message: Message, renaming: Renaming): Message {
  const [from, to] = [renamed(message.from, renaming), renamed(message.to, renaming)];
  return { ...message, from, to, session: message.session === 0 ? 0 : sessionOf({ ...message, from, to }) };
}

/** A leader numbers its peers, ascending by id; where nobody joins or leaves, that is their place among them. */
function sessionOf({ type, from, to }: Pick<Message, 'type' | 'from' | 'to'>): number {
  const [leader, peer] = type === 'AppendResp' || type === 'HeartbeatResp' ? [to, from] : [from, to];
  return peer < leader ? peer : peer - 1;
}

import type { IncomingHttpHeaders } from 'node:http';
import type { ReadRole } from '@transitd/cluster';
import { indexOfOtherCluster, indexWanted, RequestError, wantsIndex } from '@transitd/http';
import type { Eligibility, Node } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import type { Where } from '../operation/operation.ts';

/** The state that this node may answer a request from. `none`: this node must forward the request to the active node. */
export type ReadSource = ReadRole | 'none' | 'here';

/** The node, and whether another node has forwarded the request, which is never forwarded again. */
interface Asked {
  readonly node: Pick<Node, 'eligibility'>;
  readonly forwarded?: true;
}

/** This node is not the active one, or will soon not be, and has executed nothing of the request. */
export class NotActive extends StoreError {
  constructor(message = 'this node is not the active one') {
    super('not_leader', message);
  }
}

/**
 * Returns the state that this node may answer a request from.
 * @param waits - whether to wait until this node reaches the index that the caller has seen on another node
 * @throws RequestError, StoreError
 */
export function readSource(
  headers: IncomingHttpHeaders,
  where: Where,
  options: Asked,
  { waits = true } = {},
): ReadSource | Promise<ReadSource> {
  if (where === 'here') return 'here';
  // Nearly every request on the active node ends here, without a promise.
  if (!wantsIndex(headers) && options.node.eligibility.readRole === 'active') return 'active';
  return awaitedSource(headers, where, options, waits);
}

async function awaitedSource(
  headers: IncomingHttpHeaders,
  where: Where,
  { node: { eligibility }, forwarded }: Asked,
  waits: boolean,
): Promise<ReadSource> {
  const wanted = indexWanted(headers);
  const found = wanted === undefined ? 'reached' : await eligibility.reached(wanted, { waits });
  let source: ReadSource = eligibility.readRole ?? 'none';
  // A leader without a lease (just elected, or paused) asks the other nodes whether it still leads, because it knows no other node to
  // forward the request to. A node that was a standby until a moment ago may still be a reader.
  if (source !== 'active' && eligibility.mayLead && (await eligibility.becomesActive())) source = 'active';
  if (source === 'active' && found === 'foreign') throw indexOfOtherCluster();
  if (source === 'active' && found === 'behind' && waits)
    throw new RequestError('index_not_reached', 'the active node itself has not reached the requested index');
  // Only the active node says that an index is foreign or lost: this node may not have applied a promotion yet.
  if (source === 'reader' && (found !== 'reached' || where === 'leader' || asksForActive(headers))) source = 'none';
  if (source === 'none' && (forwarded === true || !eligibility.canForward)) throw new NotActive();
  return source;
}

/** Returns whether this node may still answer from the state that it chose when the request began. */
export function sourceHolds(source: ReadSource, eligibility: Eligibility): boolean | Promise<boolean> {
  if (source === 'here') return true;
  if (source === 'reader') return eligibility.readRole !== undefined;
  return eligibility.readRole === 'active' || (eligibility.active && eligibility.confirmLeadership());
}

/** Returns whether this node is still active. Checked again, because writing an audit entry takes time. */
export const stillLeads = async (eligibility: Eligibility): Promise<boolean> =>
  eligibility.readRole === 'active' || (await eligibility.confirmLeadership());

/** Returns whether the caller requires an answer of the active node. */
const asksForActive = (headers: IncomingHttpHeaders): boolean =>
  (headers['x-service-forward'] || headers['x-vault-forward']) === 'active-node';

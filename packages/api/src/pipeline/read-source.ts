import type { IncomingHttpHeaders } from 'node:http';
import { indexWanted, RequestError } from '@transitd/http';
import type { ReadEligibility, ReadRole } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import type { Where } from '../operation/operation.ts';
import type { PipelineOptions } from './request.ts';

/** State that this node may answer a request from. `none`: the request must be forwarded to the active node. */
export type ReadSource = ReadRole | 'none' | 'here';

export const notActive = (): StoreError => new StoreError('not_leader', 'this node is not the active one');

/**
 * Returns the state that this node may answer a request from.
 * @param waits - whether to wait for the index that the caller has seen elsewhere
 * @throws RequestError, StoreError
 */
export async function readSource(
  headers: IncomingHttpHeaders,
  where: Where,
  { node: { eligibility }, forwarded }: Pick<PipelineOptions, 'node' | 'forwarded'>,
  { waits = true } = {},
): Promise<ReadSource> {
  if (where === 'here') return 'here';
  const { clusterId } = eligibility;
  const index = clusterId === undefined ? undefined : indexWanted(headers, clusterId);
  const isThere = index === undefined || (waits && (await eligibility.reached(index)));
  let source: ReadSource = eligibility.readRole ?? 'none';
  // A leader without a lease (just elected, or paused) asks the other nodes whether it still leads. There is no other node to forward
  // the request to, and a former standby may still be a reader.
  if (source !== 'active' && eligibility.mayLead && (await eligibility.becomesActive())) source = 'active';
  if (source === 'active' && !isThere && waits)
    throw new RequestError('index_not_reached', 'the active node itself has not reached the index that is asked for');
  if (source === 'reader' && (!isThere || where === 'leader' || asksForActive(headers))) source = 'none';
  if (source === 'none' && (forwarded === true || !eligibility.canForward)) throw notActive();
  return source;
}

/** Returns whether this node may still answer from the source that it had when the request began. */
export async function isStill(source: ReadSource, eligibility: ReadEligibility): Promise<boolean> {
  if (source === 'here') return true;
  if (source === 'reader') return eligibility.readRole !== undefined;
  return eligibility.readRole === 'active' || (eligibility.active && (await eligibility.confirmLeadership()));
}

/** Returns whether this node is still active; it is checked again because writing an audit entry took time. */
export const stillLeads = async (eligibility: ReadEligibility): Promise<boolean> =>
  eligibility.readRole === 'active' || (await eligibility.confirmLeadership());

/** Returns whether the caller requires an answer of the active node. */
const asksForActive = (headers: IncomingHttpHeaders): boolean =>
  (headers['x-service-forward'] || headers['x-vault-forward']) === 'active-node';

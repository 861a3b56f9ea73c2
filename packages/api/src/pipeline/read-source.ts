import type { IncomingHttpHeaders } from 'node:http';
import { indexWanted, RequestError } from '@transitd/http';
import type { ReadEligibility, ReadRole } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import type { Where } from '../operation/operation.ts';
import type { PipelineOptions } from './request.ts';

/** What this node may answer a request from. `none`: it has to be handed to the active node. */
export type ReadSource = ReadRole | 'none' | 'here';

export const notActive = (): StoreError => new StoreError('not_leader', 'this node is not the active one');

/**
 * From what this request may be answered.
 * @param waits - for the state that its caller has seen elsewhere
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
  // A leader without a lease (it has just begun, or was paused) asks the others whether it still leads. There is no other node that it
  // could hand the request to, and a former standby may still be a reader.
  if (source !== 'active' && eligibility.mayLead && (await eligibility.begins())) source = 'active';
  if (source === 'active' && !isThere && waits)
    throw new RequestError('index_not_reached', 'the active node itself has not reached the index that is asked for');
  if (source === 'reader' && (!isThere || where === 'leader' || asksForActive(headers))) source = 'none';
  if (source === 'none' && (forwarded === true || !eligibility.forwards)) throw notActive();
  return source;
}

/** Whether this node may still answer from what it could when it began to read. */
export async function isStill(source: ReadSource, eligibility: ReadEligibility): Promise<boolean> {
  if (source === 'here') return true;
  if (source === 'reader') return eligibility.readRole !== undefined;
  return eligibility.readRole === 'active' || (eligibility.active && (await eligibility.leads()));
}

/** Whether the active node is that still; since it was asked before, an entry was written. */
export const stillLeads = async (eligibility: ReadEligibility): Promise<boolean> =>
  eligibility.readRole === 'active' || (await eligibility.leads());

/** The caller insists on the active node's answer. */
const asksForActive = (headers: IncomingHttpHeaders): boolean =>
  (headers['x-service-forward'] || headers['x-vault-forward']) === 'active-node';

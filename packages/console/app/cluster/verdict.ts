import type { Tone } from '../parts/tone.ts';
import type { ClusterView, Member } from './members.ts';

/** Whether a member answers reads from its own state. */
export const isServing = ({ report }: Member): boolean => report !== undefined && report.serves !== '';

/** Whether the members vote. Nodes whose records are in etcd do not: any of them alone can be the active node. */
export const isVoting = (members: readonly Member[]): boolean => members.some(({ voter }) => voter);

/** Returns how many more nodes may fail before none can be active; negative if none can be now. */
export function tolerance(members: readonly Member[]): number {
  const counted = isVoting(members) ? members.filter(({ voter }) => voter) : members;
  const healthy = counted.filter(({ report }) => report !== undefined && report.code !== 474 && report.code !== 530);
  return healthy.length - (isVoting(members) ? Math.floor(counted.length / 2) + 1 : 1);
}

/** The active node, by its own report; of two, the one with the higher term. */
export const activeOf = ({ members }: ClusterView): Member | undefined =>
  members.filter(({ report }) => report?.code === 200).toSorted((a, b) => (b.report?.term ?? 0) - (a.report?.term ?? 0))[0];

/** Returns the worst that can be said of the cluster, or that it is healthy. */
export function verdictOf(view: ClusterView): { readonly word: string; readonly tone: Tone } {
  const { members } = view;
  const active = activeOf(view);
  if (members.some(({ report }) => report?.log?.digest === 'different')) return { word: 'records differ', tone: 'bad' };
  if (active === undefined) return { word: 'no active node', tone: 'bad' };
  if (members.some(({ report }) => report?.diskLow)) return { word: 'disk space is low', tone: 'bad' };
  if (members.length > 2 && tolerance(members) < 1) return { word: 'no failure tolerated', tone: 'warn' };
  if (!members.every(isServing)) return { word: 'degraded', tone: 'warn' };
  return { word: 'healthy', tone: 'ok' };
}

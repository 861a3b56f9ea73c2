import { membersOf } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { LogStart } from '../ports.ts';
import { decodeConfState } from '../wire/conf-state.ts';

/** @throws if any configuration of the log, committed or not, names another member: a driver without peers runs only a cluster of one */
export function requireSoleMember({ nodeId, base, confEntries }: LogStart): void {
  const confs = [base.conf, ...confEntries.map(({ data }) => decodeConfState(data))];
  const isAlone = confs.every((conf) => [...membersOf(conf)].every((id) => id === nodeId));
  invariant(isAlone && confs.at(-1)?.voters.includes(nodeId) === true, 'without peers the only member is this node', {
    nodeId,
    members: confs.map((conf) => [...membersOf(conf)]),
  });
}

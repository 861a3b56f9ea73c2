import { membersOf } from '../confchange/conf-state.ts';
import type { LogStart } from '../ports.ts';
import { decodeConfState } from '../wire/conf-state.ts';

/** Returns whether a driver needs no ports to peers: this node votes, and no configuration of the log, committed or not, names another. */
export function runsWithoutPeers({ nodeId, base, confEntries }: LogStart): boolean {
  const confs = [base.conf, ...confEntries.map(({ data }) => decodeConfState(data))];
  return (
    confs.at(-1)?.voters.includes(nodeId) === true && confs.every((conf) => [...membersOf(conf)].every((id) => id === nodeId))
  );
}

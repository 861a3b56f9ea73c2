import type { Config } from '@transitd/configuration';
import type { PeerStatus } from '@transitd/raft-core';
import type { FeatureLevel, LevelRange } from '@transitd/storage-fsm';
import { requireSigner } from '../maintenance/member-entries.ts';
import type { OwnEntry } from '../maintenance/own-entry.ts';
import { certifyNode, type SigningAuthority } from '../maintenance/signing-authority.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { levelsText, supportsLevel } from '../membership/member-levels.ts';
import { type Member, type Membership, memberRemoved, severalNamed } from '../membership/membership.ts';
import type { Storage } from '../ports/storage-port.ts';
import { ClusterError } from '../refusals/cluster-error.ts';
import type { Admission, Joiner } from './join-messages.ts';

/** Minimum silence of a member before another node may take its name. A member that restarts is heard again sooner. */
const silentMsMin = 10_000;

interface AdmissionsOptions {
  readonly config: Pick<Config, 'node_id'>;
  readonly storage: {
    readonly driver: Pick<Storage['driver'], 'peers' | 'status'>;
    readonly machine: Pick<Storage['machine'], 'featureLevel'>;
  };
  readonly changes: Pick<ConfigurationChanges, 'make'>;
  readonly authority: Pick<SigningAuthority, 'clusterId' | 'readOrMake'>;
  readonly ownEntry: Pick<OwnEntry, 'update'>;
}

/** Admits nodes that have proved that they hold the seal's key: first as a learner, and as a voter once it has caught up. */
export class Admissions {
  readonly #options: AdmissionsOptions;

  constructor(options: AdmissionsOptions) {
    this.#options = options;
  }

  /**
   * Signs the request and adds the node to the configuration; resolves when this change is committed.
   * @throws ClusterError `request_refused`, `name_taken`, `node_id_used`, `node_removed`, `level_unsupported`;
   *   StoreError
   */
  async admit(joiner: Joiner): Promise<Admission> {
    const { config, changes, authority: signing, ownEntry } = this.#options;
    const { driver, machine } = this.#options.storage;
    // The membership entry of this node may still have a former name.
    const { node_id: selfName } = config;
    const { nodeId: self } = driver.status();
    await ownEntry.update(); // the joiner admits only the members named at its join: this node must be one of them
    const { id, name, apiAddress, clusterAddress, nonVoter, request, levels } = joiner;
    refuseLevels(levels, machine.featureLevel);
    const { authority, certificate, fingerprint } = await certifyNode(signing, id, { request, now: new Date() });
    const member: Member = { id, name, apiAddress, clusterAddress, certificate: fingerprint, nonVoter, levels };
    const change = await changes.make((_conf, before) => {
      requireSigner(before, authority);
      refuseLevels(levels, machine.featureLevel); // the level may have been raised since the challenge
      // A node that lost its disk returns under a new id: it may replace a member with its name that has been silent for a while. If the
      // answer to an earlier attempt was lost, the same id may try again until this member is first heard. A member that was just
      // admitted counts as heard, so only one of several joiners with the same name is admitted.
      const namesakes = before.members.filter((one) => one.name === name);
      if (namesakes.length > 1) throw new ClusterError('name_taken', `${severalNamed(namesakes)}: remove one of them by its id`);
      const [namesake] = namesakes;
      const peer = driver.peers().find((one) => one.id === namesake?.id);
      const neverHeard = peer?.learner === true && peer.match === 0;
      const isRetry = namesake?.id === id && neverHeard;
      if (namesake?.id === self || name === selfName)
        throw new ClusterError('name_taken', `the name ${name} belongs to the active node: give this node another node_id`);
      if (peer !== undefined && !isRetry && peer.silentMs < silentMsMin)
        throw new ClusterError('name_taken', takenText(name, peer));
      if (isRetry) return { membership: { ...before, members: before.members.map((one) => (one.id === id ? member : one)) } };
      refuseUsedId(before, joiner);
      const kept = namesake === undefined ? before : memberRemoved(before, namesake.id);
      return {
        members: [...(namesake === undefined ? [] : [{ id: namesake.id, to: 'none' as const }]), { id, to: 'learner' as const }],
        membership: { ...kept, members: [...kept.members, member] },
      };
    });
    return { certificate, members: change?.membership.members ?? [] };
  }
}

/** @throws ClusterError `level_unsupported` for a node that could not apply the entries of this cluster */
function refuseLevels(levels: LevelRange, level: FeatureLevel): void {
  if (supportsLevel(levels, level)) return;
  const remedy =
    level > levels.newest
      ? `install a release that supports level ${level} on this node`
      : 'raise the feature level of the cluster first, or install an earlier release on this node';
  throw new ClusterError(
    'level_unsupported',
    `the cluster is at feature level ${level}, and the joining node supports ${levelsText(levels)}: ${remedy}`,
  );
}

function refuseUsedId({ members, removed }: Membership, { id }: Joiner): void {
  if (removed.some((one) => one.id === id)) throw new ClusterError('node_removed', 'this node was removed from the cluster');
  if (members.some((one) => one.id === id)) throw new ClusterError('node_id_used', 'this node id belongs to a member');
}

/** Returns the refusal that a node with a lost disk gets until the leader may assume that the member with the same name is gone. */
function takenText(name: string, { silentMs }: PeerStatus): string {
  const [heardS, replaceS] = [Math.round(silentMs / 100) / 10, silentMsMin / 1000];
  return (
    `the name ${name} belongs to a member that the leader admitted or last heard ${heardS} s ago; ` +
    `a node with an empty data directory can replace that member once it has been silent for ${replaceS} s`
  );
}

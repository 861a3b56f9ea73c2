/** A fault in one place of the product, and the tests that find it. `find` occurs once in the file, and `replace` takes its place. */
export interface PlantedFault {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Files of tests, from the root of the repository. At least one of their tests fails. */
  readonly tests: readonly string[];
}

/**
 * Faults in the rules by which a node may answer from its state, outside the packages that have a simulator of their own. Each of them was
 * once planted without any test that failed.
 */
export const faults: readonly PlantedFault[] = [
  {
    name: 'the active node answers heartbeats without a lease and a quorum',
    file: 'packages/cluster/src/heartbeat-handler.ts',
    find: 'role.isActive && (storage.holdsLease() || (await confirmsLeadership()))',
    replace: 'role.isActive',
    tests: ['packages/cluster/test/heartbeat-handler.test.ts'],
  },
  {
    name: 'a revocation does not wait for nodes that were removed a moment ago',
    file: 'packages/cluster/src/membership/membership-list.ts',
    find: 'return [...this.knownMembers, ...this.#membership.removed].map(({ id }) => id);',
    replace: 'return this.knownMembers.map(({ id }) => id);',
    tests: ['packages/cluster/test/membership/membership-list.test.ts'],
  },
  {
    name: 'a gateway looks at the deadline after it has taken the changes',
    file: 'packages/node/src/gateway-services.ts',
    find: `if (session?.services === undefined || this.#readRole === undefined) return undefined;
    session.proxy.drain();`,
    replace: `if (session?.services === undefined) return undefined;
    session.proxy.drain();
    if (this.#readRole === undefined) return undefined;`,
    tests: ['packages/node/test/gateway-services.test.ts'],
  },
  {
    name: 'a reply to a gateway has the number from before its request was executed',
    file: 'packages/node/src/threads/replica/replica-host.ts',
    find: `const result = await this.#resultOf(request);
    const { feed } = this.#options;
    feed.publishStatus(); // an entry without changes moves the applied index too
    this.#post({ kind: 'reply', number: feed.publisher.number,`,
    replace: `const { feed } = this.#options;
    const { number } = feed.publisher;
    const result = await this.#resultOf(request);
    feed.publishStatus();
    this.#post({ kind: 'reply', number,`,
    tests: ['packages/node/test/threads/replica/replica-host.test.ts'],
  },
  {
    name: 'a reader does not count a jump of its clocks',
    file: 'packages/raft-core/src/grant.ts',
    find: 'grant.sentMs > clockJumpedMs && ',
    replace: '',
    tests: ['packages/cluster/test/ports/read-role.test.ts'],
  },
  {
    name: 'a gateway does not look at its clocks',
    file: 'packages/node/src/gateway-services.ts',
    find: 'clockJumpedMs: this.#jump.jumpedMs,',
    replace: 'clockJumpedMs: Number.NEGATIVE_INFINITY,',
    tests: ['packages/node/test/gateway-services.test.ts'],
  },
  {
    name: 'a primary counts the contact with a secondary from the arrival of the answer',
    file: 'packages/replication/src/sessions/primary-session.ts',
    find: 'cluster.answered(secondary, echoMs, own)',
    replace: 'cluster.answered(secondary, this.#parts.nowMs(), own)',
    tests: ['packages/replication/test/sessions/sessions.test.ts'],
  },
  {
    name: 'the fence counts a contact from before the machine was suspended',
    file: 'packages/replication/src/roles/write-fence.ts',
    find: 'sinceMs !== undefined && sinceMs > storage.clockJumpedMs()',
    replace: 'sinceMs !== undefined',
    tests: ['packages/replication/test/roles/write-fence.test.ts'],
  },
  {
    name: 'a promotion takes the silence of its node for that of its cluster',
    file: 'packages/replication/src/roles/promotion-control.ts',
    find: 'if (term !== this.#activeTerm) this',
    replace: 'if (this.#activeSinceMs === Number.POSITIVE_INFINITY) this',
    tests: ['packages/replication/test/roles/promotion-control.test.ts'],
  },
  {
    name: 'a secondary answers heartbeats without a leader lease',
    file: 'packages/replication/src/node/secondary-side.ts',
    find: '!this.isPromoting && this.#options.storage.holdsLease()',
    replace: '!this.isPromoting',
    tests: ['packages/replication/test/node/received-state.test.ts'],
  },
];

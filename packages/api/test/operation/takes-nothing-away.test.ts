import { Readable } from 'node:stream';
import { expect } from 'chai';
import { whereOf } from '../../src/operation/operation.ts';
import { takesNothingAway } from '../../src/operation/takes-nothing-away.ts';
import { allRoutes } from '../../src/routes.ts';
import { TestMetrics } from '../test-metrics.ts';

/** Operations whose answers wait until no node serves the state from before them. */
const waiting = [
  ...['approle-role-field-reset', 'approle-role-field-write', 'approle-role-id-write', 'approle-secret-id-destroy'],
  'approle-secret-id-tidy',
  ...['auth-config-write', 'auth-disable', 'auth-role-delete', 'auth-role-write', 'auth-tune', 'backup', 'cache-config-write'],
  ...['cert-delete', 'cert-write'],
  ...['config-keys-write', 'dr-primary-acknowledge', 'dr-primary-demote', 'dr-secondary-enable', 'encrypt', 'keys-config'],
  ...['keys-csr', 'keys-delete', 'keys-import-version', 'keys-rotate', 'keys-schedule-deletion', 'keys-set-certificate'],
  ...['keys-soft-delete', 'keys-trim', 'keys-version-disable'],
  ...['managed-keys-delete', 'managed-keys-test-sign', 'managed-keys-write', 'mount-disable'],
  ...['mount-tune', 'plugins-reload', 'plugins-reload-by-name'],
  ...['policy-delete', 'policy-write', 'quota-config-write', 'quota-delete', 'quota-write', 'raft-autopilot-configuration-write'],
  ...['raft-remove-peer', 'raft-snapshot-force', 'raft-snapshot-restore', 'rekey-cancel', 'rekey-start', 'rekey-update'],
  ...['rekey-verify', 'remount', 'restore', 'rotate', 'rotate-config-write', 'token-renew', 'token-renew-accessor'],
  ...['token-renew-self', 'token-revoke', 'token-revoke-accessor', 'token-revoke-orphan', 'token-revoke-self'],
  ...['token-role-delete', 'token-role-write', 'token-tidy', 'userpass-delete', 'userpass-password', 'userpass-policies'],
  ...['userpass-write', 'wrapping-key', 'wrapping-rewrap'],
];

describe('an operation on the active node', () => {
  it('either waits for every node, or is named as one that takes nothing away', () => {
    const routes = allRoutes(new TestMetrics(), undefined, { follow: () => Readable.from([]) });
    const names = routes.flatMap(({ operations }) =>
      (['GET', 'LIST', 'POST', 'DELETE'] as const).flatMap((verb) => {
        const operation = operations[verb];
        if (operation?.access !== 'token') return [];
        return whereOf(operation, verb) === 'leader' || operation.mayWrite === true ? [operation.name] : [];
      }),
    );
    expect([...waiting, ...takesNothingAway].sort()).to.deep.equal([...new Set(names)].sort());
  });
});

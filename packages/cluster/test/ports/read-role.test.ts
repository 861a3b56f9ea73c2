import { type Grant, grantUntil } from '@transitd/raft-core';
import { expect } from 'chai';
import { type ReadRole, readRoleOf } from '../../src/ports/read-role.ts';

const noJump = Number.NEGATIVE_INFINITY;

interface Row {
  readonly when: string;
  readonly lease?: Grant;
  readonly heartbeat?: Grant;
  readonly clockJumpedMs?: number;
  readonly role: ReadRole | undefined;
}

/** All at the time 1000. */
const rows: readonly Row[] = [
  { when: 'it has neither a lease nor a heartbeat', role: undefined },
  { when: 'it holds a lease', lease: { sentMs: 900, endMs: 1001 }, role: 'active' },
  { when: 'the lease ends now', lease: { sentMs: 900, endMs: 1000 }, role: undefined },
  { when: 'the heartbeat is fresh', heartbeat: { sentMs: 900, endMs: 1001 }, role: 'reader' },
  { when: 'the heartbeat ends now', heartbeat: { sentMs: 900, endMs: 1000 }, role: undefined },
  { when: 'both hold', lease: { sentMs: 900, endMs: 1050 }, heartbeat: { sentMs: 900, endMs: 2900 }, role: 'active' },
  {
    when: 'only the heartbeat holds',
    lease: { sentMs: 800, endMs: 950 },
    heartbeat: { sentMs: 900, endMs: 2900 },
    role: 'reader',
  },
  { when: 'a clock jumped before the lease', lease: { sentMs: 900, endMs: 1050 }, clockJumpedMs: 899, role: 'active' },
  { when: 'a clock jumped as the lease was requested', lease: { sentMs: 900, endMs: 1050 }, clockJumpedMs: 900, role: undefined },
  {
    when: 'a clock jumped since the lease was requested',
    lease: { sentMs: 900, endMs: 1050 },
    clockJumpedMs: 999,
    role: undefined,
  },
  { when: 'a clock jumped before the heartbeat', heartbeat: { sentMs: 900, endMs: 2900 }, clockJumpedMs: 899, role: 'reader' },
  { when: 'a clock jumped since the heartbeat', heartbeat: { sentMs: 900, endMs: 2900 }, clockJumpedMs: 999, role: undefined },
  {
    when: 'a clock jumped between the lease and the heartbeat',
    lease: { sentMs: 900, endMs: 1050 },
    heartbeat: { sentMs: 950, endMs: 2950 },
    clockJumpedMs: 920,
    role: 'reader',
  },
  { when: 'only the end of its lease is known', lease: grantUntil(1050, 150), clockJumpedMs: 899, role: 'active' },
  { when: 'a clock jumped when the lease may have held', lease: grantUntil(1050, 150), clockJumpedMs: 900, role: undefined },
];

describe('readRoleOf', () => {
  for (const { when, lease, heartbeat, clockJumpedMs = noJump, role } of rows)
    it(`is ${role ?? 'none'} when ${when}`, () => {
      expect(readRoleOf({ nowMs: 1000, clockJumpedMs, lease, heartbeat })).to.equal(role);
    });
});

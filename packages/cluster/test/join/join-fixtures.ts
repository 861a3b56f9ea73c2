import { randomBytes, X509Certificate } from 'node:crypto';
import { Barrier, BarrierError, type InitializeRequest, type SealConfig } from '@transitd/barrier';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { clockOf } from '../../../process/test/test-clock.ts';
import { challengePath, JoinClient, type JoinClientOptions, type Send } from '../../src/join/join-client.ts';
import { JoinDesk, type JoinDeskOptions } from '../../src/join/join-desk.ts';
import type { Joiner } from '../../src/join/join-messages.ts';
import { makeAuthority, makeRequest, signRequest } from '../../src/membership/authority.ts';
import { fingerprintOf } from '../../src/membership/certificate.ts';
import type { Member } from '../../src/membership/membership.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';

export const clusterId = '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b';

export type StaticSeal = Extract<SealConfig, { type: 'static' }>;
export const staticSeal = (id = 'k1'): StaticSeal => ({ type: 'static', current: { id, key: randomBytes(32) } });

const founder: Member = {
  id: 1,
  name: 'n1',
  apiAddress: 'https://10.0.0.1:8200',
  clusterAddress: '10.0.0.1:8201',
  certificate: 'ab'.repeat(32),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
};

/** The active node of a cluster, with the parts that a join needs. */
export interface Leader {
  readonly barrier: Barrier;
  /** Key shares, or recovery shares. */
  readonly shares: readonly Buffer[];
  readonly desk: JoinDesk;
  /** The certificate of the cluster's authority. */
  readonly authority: string;
  /** The nodes admitted so far. */
  readonly admitted: readonly Joiner[];
  readonly clock: { nowMs: number };
}

export async function startLeader(seal: SealConfig, options: Partial<JoinDeskOptions> = {}): Promise<Leader> {
  const barrier = await Barrier.open({ store: memoryStore(), seal, valuesWritten: () => 0, clock: clockOf(() => 0) });
  const counts: InitializeRequest =
    seal.type === 'shamir' ? { secretShares: 3, secretThreshold: 2 } : { recoveryShares: 3, recoveryThreshold: 2 };
  const { shares } = await barrier.initialize(counts, []);
  if (seal.type === 'shamir') for (const share of shares.slice(0, 2)) await barrier.unseal(share);
  const now = new Date('2026-06-01T00:00:00Z');
  const authority = await makeAuthority(clusterId, now);
  const admitted: Joiner[] = [];
  const clock = { nowMs: 5_000_000 };
  const desk = new JoinDesk({
    barrier,
    authority: { clusterId, readOrMake: async () => authority },
    admissions: {
      admit: async (joiner) => {
        admitted.push(joiner);
        const { request, ...rest } = joiner;
        const certificate = await signRequest(authority, { clusterId, nodeId: joiner.id, request, now });
        return { certificate, members: [founder, { ...rest, certificate: fingerprintOf(new X509Certificate(certificate)) }] };
      },
    },
    clock: { nowMs: () => clock.nowMs },
    ...options,
  });
  return { barrier, shares, desk, authority: authority.certificate, admitted, clock };
}

export interface JoiningNode {
  readonly joiner: Joiner;
  readonly key: string;
}

export async function makeJoiner(id = 42): Promise<JoiningNode> {
  const { key, request } = await makeRequest(id);
  const addresses = { apiAddress: `https://10.0.0.${id}:8200`, clusterAddress: `10.0.0.${id}:8201` };
  return { key, joiner: { id, name: `n${id}`, ...addresses, nonVoter: false, levels: { oldest: 1, newest: 2 }, request } };
}

/** Carries messages as JSON text to the leader's desk and back, as HTTP would. */
export const sendTo =
  ({ desk }: Pick<Leader, 'desk'>, source = '192.0.2.1'): Send =>
  async (_address, path, message) => {
    const arrived: unknown = JSON.parse(JSON.stringify(message));
    const answer = path === challengePath ? desk.challenge(arrived, source) : desk.answer(arrived);
    return JSON.parse(JSON.stringify(await answer));
  };

export const clientOf = ({ joiner, key }: JoiningNode, send: Send, options: Partial<JoinClientOptions> = {}): JoinClient =>
  new JoinClient({ joiner, key, leaders: ['https://10.0.0.1:8200'], send, randomBytes, ...options });

/** Returns the code of the error. */
export async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof ClusterError || error instanceof BarrierError || error instanceof StoreError) return error.code;
    throw error;
  }
  throw new Error('it did not fail');
}

/** Returns the message of the error. */
export async function messageOf(attempt: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error('it did not fail');
}

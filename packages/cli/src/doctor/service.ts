import {
  type AutopilotState,
  type Health,
  RefusedError,
  type SealStatus,
  type TransitdClient,
  UnansweredError,
} from '@transitd/client';
import { version } from '@transitd/process';
import { certificateFinding, type Finding, fail, ok, warn } from './finding.ts';
import { endpointOf, peerCertificate, unreachable } from './reach.ts';

/** Checks a running node and, if the token permits, the other members. */
export async function checkService(client: TransitdClient, address: string, hasToken: boolean): Promise<readonly Finding[]> {
  const certificate = address.startsWith('https:') ? await certificateOf(address) : [];
  let health: Health;
  let seal: SealStatus;
  const requestedMs = Date.now();
  try {
    [health, seal] = [await client.sys.health(), await client.sys.sealStatus()];
  } catch (error) {
    if (error instanceof UnansweredError || error instanceof RefusedError)
      return [...certificate, fail('node', error.message, 'start it, correct the address, or pass its CA with --ca-cert')];
    throw error;
  }
  return [
    ok('node', `${address} answers`),
    ...certificate,
    stateFinding(health, seal),
    versionFinding(health.version),
    clockFinding(health, { requestedMs, answeredMs: Date.now() }),
    ...(health.initialized && !health.sealed ? await membersFindings(client, { ...seal, ...health }, hasToken) : []),
  ];
}

async function certificateOf(address: string): Promise<readonly Finding[]> {
  const certificate = await peerCertificate(endpointOf(address));
  if (certificate === undefined) return [];
  const times = { fromMs: Date.parse(certificate.valid_from), untilMs: Date.parse(certificate.valid_to) };
  return [certificateFinding('certificate', times, Date.now())];
}

const isSecondary = ({ replication_dr_mode: mode }: Pick<Health, 'replication_dr_mode'>): boolean =>
  ['secondary', 'bootstrapping'].includes(mode);

/** Checks whether a node serves requests. */
export function stateFinding(health: Health, seal: Pick<SealStatus, 'type' | 'progress' | 't'>): Finding {
  if (!health.initialized)
    return warn('state', 'it is not initialized', 'run transitd operator init, or transitd operator raft join');
  if (health.removed_from_cluster === true)
    return fail('state', 'it was removed from the cluster', 'rejoin it with an empty data directory');
  if (health.seal_failure !== undefined)
    return fail(
      'state',
      `it is sealed, because its ${seal.type} seal cannot be opened: ${health.seal_failure}`,
      `correct that at the seal's provider; the node then unseals itself`,
    );
  if (health.sealed && seal.type !== 'shamir')
    return fail(
      'state',
      `it is sealed; its ${seal.type} seal needs no shares`,
      'read the reason in its log; a restart unseals it',
    );
  if (health.sealed)
    return fail('state', `it is sealed; ${seal.progress} of ${seal.t} shares were submitted`, 'run transitd operator unseal');
  if (health.ha_connection_healthy === false)
    return fail('state', 'it has no contact with the active node', 'check the connections between the cluster ports');
  if (isSecondary(health)) return ok('state', 'a disaster-recovery secondary: it serves no clients until it is promoted');
  return ok('state', health.standby ? (health.performance_standby ? 'performance standby' : 'standby') : 'active');
}

const versionFinding = (running: string): Finding =>
  running === version
    ? ok('version', running)
    : warn('version', `the node runs ${running}, this command is ${version}`, 'use the same release');

/** Clock difference above which expiry times are no longer reliable across machines, in milliseconds. */
const skewMsMax = 2_000;

/** Compares the clocks. The node reports whole seconds, so its clock may be up to 1 s ahead of the reported time. */
export function clockFinding(
  { server_time_utc: serverS, clock_skew_ms: skewMs }: Pick<Health, 'server_time_utc' | 'clock_skew_ms'>,
  { requestedMs, answeredMs }: { readonly requestedMs: number; readonly answeredMs: number },
): Finding {
  const [earliestMs, latestMs] = [serverS * 1000, serverS * 1000 + 999];
  const apartMs = latestMs < requestedMs ? requestedMs - latestMs : earliestMs > answeredMs ? earliestMs - answeredMs : 0;
  const apart = apartMs < 1000 ? 'less than 1 s' : `${Math.round(apartMs / 1000)} s`;
  const found = `the node differs by ${apart} from this machine and by ${skewMs} ms from the active node`;
  return apartMs > skewMsMax || Math.abs(skewMs) > skewMsMax
    ? warn('clocks', found, 'run a time synchronization service on every machine')
    : ok('clocks', found);
}

async function membersFindings(
  client: TransitdClient,
  node: Pick<SealStatus, 'storage_type'> & Pick<Health, 'replication_dr_mode'>,
  hasToken: boolean,
): Promise<readonly Finding[]> {
  if (!hasToken) return [warn('members', 'not checked', 'use a token that can read sys/storage/raft')];
  try {
    // A secondary serves neither the addresses of its members nor the audit devices.
    if (isSecondary(node)) return memberFindings((await client.sys.raft.autopilotState()).data);
    const { nodes } = (await client.sys.haStatus()).data;
    const state = await stateOfMembers(client, { ...node, count: nodes.length });
    const addresses = await Promise.all(
      nodes.filter(({ api_address }) => /^https?:/.test(api_address)).map(({ api_address }) => addressFinding(api_address)),
    );
    const audit = Object.keys((await client.sys.audits()).data);
    return [
      ...state,
      ...addresses,
      audit.length === 0 ? warn('audit', 'requests are not audited', 'configure an audit device') : ok('audit', audit.join(', ')),
    ];
  } catch (error) {
    if (error instanceof RefusedError && error.status === 403)
      return [
        warn('members', 'the token has no permission', 'use a token that can read sys/storage/raft, sys/ha-status and sys/audit'),
      ];
    if (error instanceof RefusedError || error instanceof UnansweredError)
      return [fail('members', error.message, 'check that a majority of the voters is running and connected')];
    throw error;
  }
}

/** Nodes on etcd are no members: a node that has stopped is no longer listed, and there is no quorum of nodes to check. */
async function stateOfMembers(
  client: TransitdClient,
  { storage_type, count }: Pick<SealStatus, 'storage_type'> & { readonly count: number },
): Promise<readonly Finding[]> {
  if (count === 1) return [ok('members', 'a single node')];
  if (storage_type === 'etcd') return [ok('members', `${count} nodes on etcd`)];
  return memberFindings((await client.sys.raft.autopilotState()).data);
}

export function memberFindings({
  healthy,
  failure_tolerance: tolerance,
  servers,
}: Pick<AutopilotState, 'healthy' | 'failure_tolerance' | 'servers'>): readonly Finding[] {
  const unhealthy = Object.entries(servers).filter(([, server]) => !server.healthy);
  const found = `${Object.keys(servers).length - unhealthy.length} healthy, failure tolerance ${tolerance}`;
  const summary =
    healthy && tolerance > 0 ? ok('members', found) : warn('members', found, 'restore the failed members, or add members');
  return [
    summary,
    ...unhealthy.map(([name, { node_status, last_contact }]) =>
      fail(
        `member ${name}`,
        `${node_status}, last contact ${last_contact} ago`,
        'start or unseal it, or remove it with transitd operator raft remove-peer',
      ),
    ),
  ];
}

async function addressFinding(address: string): Promise<Finding> {
  const reason = await unreachable(endpointOf(address));
  return reason === undefined
    ? ok(`address ${address}`, 'is reachable')
    : warn(
        `address ${address}`,
        `is not reachable from here: ${reason}`,
        'allow connections to it, because clients may use this address',
      );
}

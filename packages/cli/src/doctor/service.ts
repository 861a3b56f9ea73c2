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

/** What a running node says of itself, and of the others to whom its token lets us ask. */
export async function checkService(client: TransitdClient, address: string, hasToken: boolean): Promise<readonly Finding[]> {
  const certificate = address.startsWith('https:') ? await certificateOf(address) : [];
  let health: Health;
  let seal: SealStatus;
  const askedMs = Date.now();
  try {
    [health, seal] = [await client.sys.health(), await client.sys.sealStatus()];
  } catch (error) {
    if (error instanceof UnansweredError || error instanceof RefusedError)
      return [...certificate, fail('node', error.message, 'start it, correct the address, or name its authority with --ca-cert')];
    throw error;
  }
  return [
    ok('node', `${address} answers`),
    ...certificate,
    stateFinding(health, seal),
    versionFinding(health.version),
    clockFinding(health, { askedMs, answeredMs: Date.now() }),
    ...(health.initialized && !health.sealed ? await membersFindings(client, hasToken) : []),
  ];
}

async function certificateOf(address: string): Promise<readonly Finding[]> {
  const certificate = await peerCertificate(endpointOf(address));
  if (certificate === undefined) return [];
  const times = { fromMs: Date.parse(certificate.valid_from), untilMs: Date.parse(certificate.valid_to) };
  return [certificateFinding('certificate', times, Date.now())];
}

/** What of a node keeps it from serving. */
export function stateFinding(health: Health, seal: Pick<SealStatus, 'progress' | 't'>): Finding {
  if (!health.initialized) return warn('state', 'it is not initialised', 'transitd operator init, or operator raft join');
  if (health.removed_from_cluster === true)
    return fail('state', 'it was removed from the cluster', 'let it join anew with an empty data directory');
  if (health.sealed)
    return fail('state', `it is sealed; ${seal.progress} of ${seal.t} shares are given`, 'transitd operator unseal');
  if (health.ha_connection_healthy === false)
    return fail('state', 'it does not hear the active node', 'see that the cluster ports reach each other');
  return ok('state', health.standby ? (health.performance_standby ? 'performance standby' : 'standby') : 'active');
}

const versionFinding = (running: string): Finding =>
  running === version
    ? ok('version', running)
    : warn('version', `the node has ${running}, this command ${version}`, 'use the same release');

/** Seconds that the clocks may be apart before expiry times mean something else here and there. */
const skewMsMax = 2_000;

/** The node's clock has whole seconds, so it is behind by up to one. */
export function clockFinding(
  { server_time_utc: serverS, clock_skew_ms: skewMs }: Pick<Health, 'server_time_utc' | 'clock_skew_ms'>,
  { askedMs, answeredMs }: { readonly askedMs: number; readonly answeredMs: number },
): Finding {
  const [earliestMs, latestMs] = [serverS * 1000, serverS * 1000 + 999];
  const apartMs = latestMs < askedMs ? askedMs - latestMs : earliestMs > answeredMs ? earliestMs - answeredMs : 0;
  const found = `${apartMs < 1000 ? 'less than 1 s' : `${Math.round(apartMs / 1000)} s`} between this machine and the node, ${skewMs} ms between the node and the active one`;
  return apartMs > skewMsMax || Math.abs(skewMs) > skewMsMax
    ? warn('clocks', found, 'let a time service run on every machine')
    : ok('clocks', found);
}

async function membersFindings(client: TransitdClient, hasToken: boolean): Promise<readonly Finding[]> {
  if (!hasToken) return [warn('members', 'not looked at', 'give a token that may read sys/storage/raft')];
  try {
    const { nodes } = (await client.sys.haStatus()).data;
    const state =
      nodes.length > 1 ? memberFindings((await client.sys.raft.autopilotState()).data) : [ok('members', 'a single node')];
    const seen = await Promise.all(
      nodes.filter(({ api_address }) => /^https?:/.test(api_address)).map(({ api_address }) => reached(api_address)),
    );
    const audit = Object.keys((await client.sys.audits()).data);
    return [
      ...state,
      ...seen,
      audit.length === 0
        ? warn('audit', 'nothing is recorded of who asks for what', 'configure a sink')
        : ok('audit', audit.join(', ')),
    ];
  } catch (error) {
    if (error instanceof RefusedError && error.status === 403)
      return [
        warn('members', 'the token may not ask for them', 'give one that may read sys/storage/raft, sys/ha-status and sys/audit'),
      ];
    if (error instanceof RefusedError || error instanceof UnansweredError)
      return [fail('members', error.message, 'see that more than half of the voters run and reach each other')];
    throw error;
  }
}

export function memberFindings({
  healthy,
  failure_tolerance: spare,
  servers,
}: Pick<AutopilotState, 'healthy' | 'failure_tolerance' | 'servers'>): readonly Finding[] {
  const ill = Object.entries(servers).filter(([, server]) => !server.healthy);
  const found = `${Object.keys(servers).length - ill.length} healthy, ${spare} may fail`;
  const all = healthy && spare > 0 ? ok('members', found) : warn('members', found, 'bring the members back, or add one');
  return [
    all,
    ...ill.map(([name, { node_status, last_contact }]) =>
      fail(
        `member ${name}`,
        `${node_status}, last heard ${last_contact} ago`,
        'start or unseal it, or remove it with operator raft remove-peer',
      ),
    ),
  ];
}

async function reached(address: string): Promise<Finding> {
  const reason = await unreachable(endpointOf(address));
  return reason === undefined
    ? ok(`address ${address}`, 'can be reached')
    : warn(`address ${address}`, `cannot be reached from here: ${reason}`, 'clients that are sent there cannot either');
}

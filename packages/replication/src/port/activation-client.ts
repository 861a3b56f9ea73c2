import { X509Certificate } from 'node:crypto';
import { isPair } from '@transitd/cluster';
import { reasonOf } from '@transitd/process';
import { ReplicationError } from '../replication-error.ts';
import type { ActivationToken } from './activation-token.ts';
import type { PrimaryCredential } from './credential.ts';
import { requestCertificate } from './primary-connection.ts';
import { secondaryIn } from './secondary-certificate.ts';
import type { ActivationRequest } from './secondary-desk.ts';

/** Maximum number of times that a node may refer to another one. */
const redirectsMax = 3;
const connectMsMax = 5_000;
/** No further attempt begins after this time. */
const activationMsMax = 30_000;

/**
 * Exchanges an activation token for the credential of this secondary, at the active node of the primary. After `unreachable` the call may
 * be repeated, but only with the same key, because the primary may have issued the certificate.
 * @param own - of `makeSecondaryRequest`
 * @throws ReplicationError
 */
export async function activate(
  token: ActivationToken,
  own: ActivationRequest & { readonly key: string },
): Promise<PrimaryCredential> {
  const { secondary, clusterId } = token;
  // Asks each node twice: if an answer was lost, the node gives the same key the same answer again.
  const waiting = [...token.addresses, ...token.addresses];
  const reasons: string[] = [];
  const endMs = performance.now() + activationMsMax;
  let redirects = 0;
  for (let address = waiting.shift(); address !== undefined && performance.now() < endMs; address = waiting.shift()) {
    let answer: Awaited<ReturnType<typeof requestCertificate>>;
    try {
      answer = await requestCertificate(
        { connectMsMax, address, credential: token },
        { request: own.request, cluster: own.cluster },
      );
    } catch (error) {
      reasons.push(reasonOf(error));
      continue;
    }
    if ('certificate' in answer) {
      const credential = { secondary, clusterId, key: own.key, ...answer };
      if (!isWhole(credential))
        throw new ReplicationError('untrusted', `${address} answered with a certificate that was not asked for`);
      return credential;
    }
    const { status, activeNode, reason = `status ${status}` } = answer;
    if (status < 500) throw new ReplicationError('refused', `the primary refuses the activation: ${reason}`);
    reasons.push(`${address}: ${reason}`);
    if (activeNode !== undefined && redirects++ < redirectsMax) waiting.unshift(activeNode);
  }
  const different = [...new Set(reasons)].join('; ');
  throw new ReplicationError('unreachable', `no active node of the primary could be reached: ${different}`);
}

function isWhole({ secondary, clusterId, key, certificate, authorities }: PrimaryCredential): boolean {
  try {
    const trusted = authorities.map((pem) => new X509Certificate(pem));
    return (
      isPair({ key, certificate }) &&
      secondaryIn(new X509Certificate(certificate), { clusterId, authorities: trusted }) === secondary
    );
  } catch {
    return false;
  }
}

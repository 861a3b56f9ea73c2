import { X509Certificate } from 'node:crypto';
import { isHostAndPort, isPair } from '@transitd/cluster';
import { jsonIn } from '@transitd/storage-fsm';
import { z } from 'zod';
import { isSecondaryId } from '../registry/registry.ts';
import type { PrimaryNodes } from '../stream/frame.ts';

/** The addresses, authorities and certificate with which a secondary connects to its primary. The key is a secret. */
export interface PrimaryCredential {
  /** Id of this secondary at the primary. */
  readonly secondary: string;
  /** Id of the primary's Raft cluster. */
  readonly clusterId: string;
  /** Cluster ports of the primary's nodes, `host:port`. */
  readonly addresses: readonly string[];
  /** Authorities that sign the certificates of the primary's nodes, PEM. */
  readonly authorities: readonly string[];
  /** PEM of PKCS #8, EC P-256. */
  readonly key: string;
  /** PEM. */
  readonly certificate: string;
  /** Whether the fence of the primary counts this secondary. */
  readonly isCounted?: boolean;
}

/** Path of the record with this cluster's own credential at its primary. It begins with a local prefix, so it is not replicated. */
export const credentialPath = 'core/replication/primary';

const format = 1;
const pem = z.string().min(1).max(2048);

const isCertificate = (text: string): boolean => {
  try {
    return new X509Certificate(text).raw.length > 0;
  } catch {
    return false;
  }
};

export const addressesSchema = z.array(z.string().max(261).refine(isHostAndPort, 'is no address')).min(1).max(32);
export const authoritiesSchema = z.array(pem.refine(isCertificate, 'is no certificate')).min(1).max(4);

/** The fields of a credential, for tokens and records. */
export const credentialFields = {
  format: z.literal(format),
  secondary: z.string().refine(isSecondaryId, 'is no id of a secondary'),
  cluster: z.string().regex(/^[0-9a-f-]{1,64}$/),
  addresses: addressesSchema,
  authorities: authoritiesSchema,
  key: pem,
  certificate: pem,
} as const;

const record = z
  .strictObject({ ...credentialFields, isCounted: z.boolean().exactOptional() })
  .refine(isPair, 'is not a pair of a key and its certificate');

/** Returns the credential with other nodes of the primary: the same object if nothing is different, or if `nodes` are malformed. */
export function withNodes(credential: PrimaryCredential, { addresses, authorities }: PrimaryNodes): PrimaryCredential {
  const present = JSON.stringify([credential.addresses, credential.authorities]);
  const isUsable = addressesSchema.safeParse(addresses).success && authoritiesSchema.safeParse(authorities).success;
  return isUsable && JSON.stringify([addresses, authorities]) !== present
    ? { ...credential, addresses, authorities }
    : credential;
}

/** Encodes the record; write it through the barrier. */
export const encodeCredential = ({ clusterId: cluster, ...fields }: PrimaryCredential): Buffer =>
  Buffer.from(JSON.stringify({ format, cluster, ...fields }));

/** Decodes the record. @throws Error, whose text contains nothing of the record */
export function decodeCredential(bytes: Uint8Array): PrimaryCredential {
  const read = record.safeParse(jsonIn(bytes));
  if (!read.success) throw new Error(`the record ${credentialPath} is damaged or of an unknown format`);
  const { format: _, cluster: clusterId, ...fields } = read.data;
  return { clusterId, ...fields };
}

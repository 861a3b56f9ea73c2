import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { z } from 'zod';
import { isPair } from './authority.ts';
import { type NodeName, nameIn } from './certificate.ts';
import { type Member, parseMembers } from './membership.ts';
import { replaceFile } from './replace-file.ts';

/** The certificate and key with which a node authenticates to its peers. */
export interface NodeIdentity {
  /** PEM of PKCS #8, EC P-256. Unencrypted on disk, because a sealed node needs it to vote. */
  readonly key: string;
  /** PEM, signed by the authority. */
  readonly certificate: string;
  /** PEM of the cluster's own authority. */
  readonly authority: string;
  /** The members at the time of the join, used until the log names this node; empty on the founder. */
  readonly membersAtJoin: readonly Member[];
}

/** Returns the node that an identity names. @throws Error unless its authority signed its certificate */
export function nameOf({ certificate, authority }: NodeIdentity): NodeName {
  const name = nameIn(new X509Certificate(certificate), new X509Certificate(authority));
  if (name === undefined) throw new Error("this node's certificate is not signed by its cluster's authority");
  return name;
}

const fileName = 'identity.json';
const format = 1;
const stored = z
  .object({
    format: z.literal(format),
    key: z.string(),
    certificate: z.string(),
    authority: z.string(),
    seeds: z.unknown(),
  })
  .refine(isPair);

/**
 * Reads the identity in a data directory; undefined if the node has no identity yet.
 * @throws StartError when other users can access the file, or it is damaged; errors of the file system
 */
export async function readIdentity(directory: string): Promise<NodeIdentity | undefined> {
  const path = join(directory, fileName);
  requireOwnerOnly(path);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const identity = identityIn(text);
  if (identity === undefined) throw new StartError(`${path} is damaged or of an unknown format`);
  return identity;
}

/** Parses an identity. No error repeats the text, because it contains the key of the node. */
function identityIn(text: string): NodeIdentity | undefined {
  try {
    const { format: _, seeds, ...identity } = stored.parse(JSON.parse(text));
    const named = nameIn(new X509Certificate(identity.certificate), new X509Certificate(identity.authority));
    return named === undefined ? undefined : { ...identity, membersAtJoin: parseMembers(seeds) };
  } catch {
    return undefined;
  }
}

/** Replaces the identity in a data directory, atomically and durably. @throws errors of the file system */
export function writeIdentity(directory: string, identity: NodeIdentity): Promise<void> {
  const { key, certificate, authority, membersAtJoin: seeds } = identity;
  return replaceFile(
    join(directory, fileName),
    `${JSON.stringify({ format, key, certificate, authority, seeds }, undefined, 2)}\n`,
  );
}

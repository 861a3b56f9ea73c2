import type { VersionView } from '@transitd/transit-engine';

/** Versions whose numbers differ only in the last eight bits share a text. */
const blockBits = 8;
const blockSize = 2 ** blockBits;

/**
 * Texts of whole blocks, by the block's first version. A rotation returns all versions of the key, and all but one are the same objects as
 * before.
 */
const blocks = new WeakMap<VersionView, { readonly last: VersionView; readonly text: string }>();

/** Returns the versions of a key as a JSON object, with the version numbers as names. @param versions - in ascending order */
export function versionsJson(versions: readonly VersionView[]): string {
  const parts: string[] = [];
  for (let at = 0; at < versions.length; ) {
    const [first, last] = [versions[at], versions[at + blockSize - 1]];
    const isBlock =
      first !== undefined &&
      last !== undefined &&
      first.version % blockSize === 0 &&
      last.version === first.version + blockSize - 1;
    const end = isBlock ? at + blockSize : Math.min(versions.length, at + untilNextBlock(first?.version ?? 0));
    parts.push(isBlock ? blockText(first, last, versions.slice(at, end)) : membersOf(versions.slice(at, end)));
    at = end;
  }
  return `{${parts.join()}}`;
}

const untilNextBlock = (version: number): number => blockSize - (version % blockSize);

function blockText(first: VersionView, last: VersionView, versions: readonly VersionView[]): string {
  const known = blocks.get(first);
  if (known?.last === last) return known.text;
  const text = membersOf(versions);
  blocks.set(first, { last, text });
  return text;
}

const membersOf = (versions: readonly VersionView[]): string =>
  versions.map((version) => `"${version.version}":${JSON.stringify(versionJson(version))}`).join();

/** Returns the creation time in seconds; for a key pair, an object with its public parts. */
const versionJson = ({ createdMs, pair }: VersionView) =>
  pair === undefined
    ? Math.floor(createdMs / 1000)
    : {
        name: pair.name,
        public_key: pair.publicKey,
        hybrid_public_key: pair.hybridPublicKey,
        certificate_chain: pair.certificateChain,
        creation_time: new Date(createdMs).toISOString(),
      };

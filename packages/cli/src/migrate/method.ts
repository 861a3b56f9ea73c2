import { peerFormatObstacle } from './peer-format.ts';
import { disabledObstacle, firstVisible, type SeenKey } from './source-key.ts';

/** The way in which a key can be moved. */
export type Method =
  /** Everything arrives: versions, HMAC secrets, times, settings. */
  | { readonly kind: 'backup'; readonly losses: readonly string[] }
  /** The versions that the source exports arrive; `losses` names the rest. */
  | { readonly kind: 'import'; readonly losses: readonly string[] }
  /** The material cannot leave the source. `needs` names the settings at the source that would allow it. */
  | { readonly kind: 'rewrap'; readonly why: string; readonly needs: readonly Permission[] }
  | { readonly kind: 'impossible'; readonly why: string };

/** A setting of a key that cannot be turned off again. */
export type Permission = 'exportable' | 'allow_plaintext_backup';

/** A service at one end of a move. `own` is transitd; otherwise it is Vault or OpenBao. */
export interface EndKind {
  readonly own: boolean;
}

const importable = /^(?:aes(?:128|256)-gcm96|chacha20-poly1305|ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|hmac)$/;
const ownOnly = /^(?:aes(?:128|256)-cmac|ml-dsa|hybrid)/;

/**
 * Chooses how to move a key: by backup if the target reads the source's backups, otherwise by export and import.
 * @param granted - settings that the operator agrees to set at the source
 */
export function methodOf(
  key: SeenKey,
  { source, target, granted }: { readonly source: EndKind; readonly target: EndKind; readonly granted: ReadonlySet<Permission> },
): Method {
  const impossible = obstacleTo(key, target);
  if (impossible !== undefined) return { kind: 'impossible', why: impossible };
  const [exportable, backup] = [
    key.exportable || granted.has('exportable'),
    key.allowPlaintextBackup || granted.has('allow_plaintext_backup'),
  ];
  if (target.own && exportable && backup) return { kind: 'backup', losses: [] };
  if (source.own && !target.own && key.derived) return methodInPeerFormat(key, { exportable });
  const importWorks = importObstacle(key, target);
  if (importWorks === undefined && exportable) return { kind: 'import', losses: importLosses(key) };
  // A key pair without its private half is public: every service exports that.
  if (target.own) {
    const needs: Permission[] = [
      ...(key.exportable ? [] : (['exportable'] as const)),
      ...(key.allowPlaintextBackup ? [] : (['allow_plaintext_backup'] as const)),
    ];
    return { kind: 'rewrap', needs, why: `it is not ${needs.map((need) => word[need]).join(' and does not ')} at the source` };
  }
  if (importWorks !== undefined)
    return { kind: 'impossible', why: `${importWorks}, and the target reads no backups of ${nameOf(source)}` };
  return { kind: 'rewrap', needs: ['exportable'], why: 'it is not exportable at the source' };
}

/** An import would change how a derived key derives, so it goes back as a backup in the format of the peers, made from its exports. */
function methodInPeerFormat(key: SeenKey, { exportable }: { readonly exportable: boolean }): Method {
  const obstacle = peerFormatObstacle(key);
  if (obstacle !== undefined) return { kind: 'impossible', why: obstacle };
  return exportable
    ? { kind: 'backup', losses: hiddenVersions(key) }
    : { kind: 'rewrap', needs: ['exportable'], why: 'it is not exportable at the source' };
}

const word: Readonly<Record<Permission, string>> = {
  exportable: 'exportable',
  allow_plaintext_backup: 'allow plaintext backups',
};

export const nameOf = ({ own }: EndKind): string => (own ? 'transitd' : 'Vault or OpenBao');

function obstacleTo(key: SeenKey, target: EndKind): string | undefined {
  if (key.type === 'managed_key') return 'its material is in a hardware module: configure the same managed key at the target';
  if (key.softDeleted) return 'it is soft-deleted: restore it at the source first';
  if (target.own ? !importable.test(key.type) && !ownOnly.test(key.type) : !importable.test(key.type))
    return `the target has no keys of the type ${key.type}${target.own ? '' : ' in its free edition'}`;
  return undefined;
}

function importObstacle(key: SeenKey, target: EndKind): string | undefined {
  if (key.convergent) return 'convergent keys cannot be imported';
  if (key.disabledVersions.length > 0) return disabledObstacle;
  if (!importable.test(key.type) && !/-cmac$/.test(key.type)) return `keys of the type ${key.type} cannot be imported`;
  if (key.derived && !target.own)
    return 'OpenBao derives other keys from an imported derived key than from one that it generated';
  return undefined;
}

function hiddenVersions(key: SeenKey): readonly string[] {
  if (key.minDecryptionVersion <= Math.max(key.minAvailableVersion, 1)) return [];
  return [
    `versions before ${firstVisible(key)} stay at the source, where min_decryption_version hides them; lower it first to move them`,
  ];
}

function importLosses(key: SeenKey): readonly string[] {
  return [
    ...(key.type === 'hmac' || key.type.endsWith('-cmac')
      ? []
      : ['HMACs made with this key do not verify: imported versions get new HMAC secrets']),
    ...hiddenVersions(key),
    'creation times are those of the import',
  ];
}

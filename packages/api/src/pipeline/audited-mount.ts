import type { AuditedMount } from '@transitd/audit';
import { accessorOf, type Services } from '@transitd/node';

/** Returns the mount of a path as audit entries name it; with empty names if nothing is mounted there. @throws AccessError, StoreError */
export async function auditedMount({ mounts, logins }: Pick<Services, 'mounts' | 'logins'>, path: string): Promise<AuditedMount> {
  const [first = ''] = path.split('/', 1);
  if (first === 'sys') return { point: 'sys/', type: 'system', class: 'secret' };
  if (path === 'auth/token' || path.startsWith('auth/token/')) return { point: 'auth/token/', type: 'token', class: 'auth' };
  if (first === 'auth') {
    const method = await logins.mounts.serving(path.slice('auth/'.length));
    if (method !== undefined) {
      return { point: `auth/${method.path}/`, type: method.type, class: 'auth', accessor: method.accessor };
    }
  }
  const engine = mounts.list.find((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
  if (engine === undefined) return { point: '', type: '' };
  return { point: `${engine.path}/`, type: engine.type, class: 'secret', accessor: accessorOf(engine) };
}

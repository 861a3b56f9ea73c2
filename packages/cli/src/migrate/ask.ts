import { confirm } from '../terminal/confirm.ts';
import type { Output } from '../terminal/output.ts';
import type { Permission } from './method.ts';
import { wishesOf } from './permission.ts';
import type { Plan } from './plan.ts';

/**
 * Asks whether to set the permissions at the source that keys of the plan need. Without a terminal, and with every permission granted,
 * it does not ask.
 * @returns the permissions that are granted now; the given set if nothing changed
 */
export async function askForPermissions(
  plan: Plan,
  granted: ReadonlySet<Permission>,
  output: Output,
): Promise<ReadonlySet<Permission>> {
  const wishes = wishesOf(plan.keys);
  const wanted = new Set(wishes.flatMap(({ needs }) => needs).filter((need) => !granted.has(need)));
  if (wanted.size === 0 || process.stdin.isTTY !== true) return granted;
  const agreed = new Set(granted);
  output.notice('These keys cannot leave the source as they are:');
  for (const { mount, name, needs } of wishes) output.notice(`  ${mount}/${name} needs ${needs.join(' and ')}`);
  for (const permission of wanted) {
    const isGranted = await confirm(
      `Set ${permission} on these keys at the source? It cannot be turned off there again.`,
      `use ${flagOf[permission]}`,
    );
    if (isGranted) agreed.add(permission);
  }
  return agreed.size === granted.size ? granted : agreed;
}

const flagOf: Readonly<Record<Permission, string>> = {
  exportable: '--yes-set-exportable',
  allow_plaintext_backup: '--yes-allow-plaintext-backup',
};

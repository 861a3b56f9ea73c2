import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { connectionSettings } from '../session/environment.ts';

/** `healthcheck`: what a container engine runs every few seconds, so it loads next to nothing. */
export function healthcheckCommand(program: Command, { local }: Runner): void {
  program
    .command('healthcheck')
    .description('exit 0 when a node is unsealed and active or a standby, 1 when it does not answer, 2 otherwise')
    .option('--address <url>', 'address of the node')
    .option('--ca-cert <file>', 'PEM of the authorities to trust, and no others')
    .action(
      local(async (options: { address?: string; caCert?: string }) => {
        const { addresses, caFile } = connectionSettings(options, process.env);
        if (caFile !== undefined) (await import('../session/trust.ts')).trustOnly(caFile);
        const { checkHealth } = await import('../work/healthcheck.ts');
        return checkHealth(addresses[0] ?? '');
      }),
    );
}

import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { connectionSettings } from '../session/environment.ts';

/** `healthcheck`: a container engine runs it every few seconds, so it loads as little code as possible. */
export function healthcheckCommand(program: Command, { localAction }: Runner): void {
  program
    .command('healthcheck')
    .description('check a node: exits 0 if it is unsealed and active or standby, 1 if it does not answer, 2 otherwise')
    .option('--address <url>', 'address of the node')
    .option('--ca-cert <file>', 'PEM file of the only authorities to trust')
    .action(
      localAction(async (options: { address?: string; caCert?: string }) => {
        const { addresses, caFile } = connectionSettings(options, process.env);
        if (caFile !== undefined) (await import('../session/trust.ts')).trustOnly(caFile);
        const { checkHealth } = await import('../local/healthcheck.ts');
        return checkHealth(addresses[0] ?? '');
      }),
    );
}

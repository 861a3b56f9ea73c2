import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { type ConnectionOptions, connectionSettings } from '../session/environment.ts';
import { connectionOptions } from '../terminal/options.ts';

/** `healthcheck`: a container engine runs it every few seconds, so it loads as little code as possible. */
export function healthcheckCommand(program: Command, { localAction }: Runner): void {
  connectionOptions(program.command('healthcheck'))
    .description(
      'check a node: exits 0 if it is unsealed and active or standby, also of a secondary, 1 if it does not answer, 2 otherwise',
    )
    .action(
      localAction(async (options: ConnectionOptions) => {
        const { addresses, tls } = connectionSettings(options, process.env);
        if (tls.caFile !== undefined || tls.caPath !== undefined) {
          const { authorityFiles, trustOnly } = await import('../session/trust.ts');
          trustOnly(...authorityFiles(tls));
        }
        const [{ checkHealth }, { fetchWith }] = await Promise.all([
          import('../local/healthcheck.ts'),
          import('../session/tls-fetch.ts'),
        ]);
        return checkHealth(addresses[0] ?? '', fetchWith(tls));
      }),
    );
}

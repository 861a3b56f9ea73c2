import type { RootGeneration } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import { decodeRootToken } from '../local/root-token.ts';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { secretFrom } from '../terminal/input.ts';
import { serverOptions } from '../terminal/options.ts';
import { shareFrom } from '../terminal/share.ts';

interface Options {
  readonly init?: true;
  readonly status?: true;
  readonly cancel?: true;
  readonly otp?: string;
  readonly nonce?: string;
  readonly decode?: string;
}

/** `operator generate-root`: creates a root token from a threshold of shares, for use when no root token is left. */
export function generateRootCommand(operator: Command, { serverAction }: Runner): void {
  serverOptions(operator.command('generate-root'))
    .description('generate a root token from shares: start with --init, then each holder submits one share')
    .argument('[share]', '- for standard input or @file, in hex or base64; prompted for if omitted')
    .option('--init', 'start an attempt; prints its nonce (for the holders) and the OTP (to decode the token)')
    .option('--otp <otp>', 'one-time password of the attempt, for --init or --decode: - for standard input or @file')
    .option('--nonce <nonce>', 'nonce printed by --init; required with a share, optional with --cancel')
    .option('--status', 'show the progress of the attempt')
    .option('--cancel', 'cancel the attempt; requires its nonce or a token with sudo')
    .option('--decode <token>', 'decode the encoded token returned to the last holder')
    .action(serverAction(generateRoot));
}

async function generateRoot({ client, output, sources }: Session, argument: string | undefined, options: Options): Promise<void> {
  const { init, status, cancel, decode, nonce } = options;
  if ([init, status, cancel, decode, argument].filter((chosen) => chosen !== undefined).length > 1)
    throw new StartError('use only one of --init, --status, --cancel, --decode and a share');
  const otp = options.otp === undefined ? undefined : await secretFrom(options.otp, 'an OTP', sources);
  if (decode !== undefined) {
    if (otp === undefined) throw new StartError('--decode requires the --otp of the attempt');
    output.field([['token', decodeRootToken(decode, otp)]], 'token');
    return;
  }
  if (cancel === true)
    return output.done(await client.sys.cancelRootGeneration(nonce), 'Root generation canceled, if one was in progress.');
  if (status === true) return show(output, await client.sys.rootGeneration());
  if (init === true) return show(output, await client.sys.startRootGeneration(otp));
  if (nonce === undefined) throw new StartError('a share requires --nonce: use the nonce that --init printed');
  show(output, await client.sys.generateRoot({ key: await shareFrom(sources, argument), nonce }));
}

const show = (output: Session['output'], step: RootGeneration): void =>
  output.rows(
    [
      ['Started', step.started],
      ...(step.nonce === '' ? [] : [['Nonce', step.nonce] as const]),
      ['Progress', `${step.progress}/${step.required}`],
      ['Complete', step.complete],
      ...(step.otp === '' ? [] : [['OTP', step.otp] as const]),
      ['OTP Length', step.otp_length],
      ...(step.encoded_token === '' ? [] : [['Encoded Token', step.encoded_token] as const]),
    ],
    step,
  );

import type { RootGeneration } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { secretFrom } from '../terminal/input.ts';
import { asksServer } from '../terminal/options.ts';
import { shareFrom } from '../terminal/share.ts';
import { unmasked } from '../work/root-token.ts';

interface Options {
  readonly init?: true;
  readonly status?: true;
  readonly cancel?: true;
  readonly otp?: string;
  readonly nonce?: string;
  readonly decode?: string;
}

/** `operator generate-root`: a new root token by enough holders of the shares, when none is left. */
export function generateRootCommand(operator: Command, { asking }: Runner): void {
  asksServer(operator.command('generate-root'))
    .description('make a root token by shares: begin with --init, then each holder gives a share')
    .argument('[share]', '- for standard input or @file, hex or base64; asked for, unseen, unless given')
    .option('--init', 'begin; shows the nonce for the holders, and the OTP, which is for who shall read the token')
    .option('--otp <otp>', 'with --init: an OTP of your own; with --decode: that of the token; - for standard input or @file')
    .option('--nonce <nonce>', 'what --init has shown; names the attempt that a share is meant for, or the one to --cancel')
    .option('--status', 'show how far it is')
    .option('--cancel', 'end it: by its nonce, or by a token with sudo')
    .option('--decode <token>', 'show the token that the last holder has got')
    .action(asking(generateRoot));
}

async function generateRoot({ client, output, sources }: Session, given: string | undefined, options: Options): Promise<void> {
  const { init, status, cancel, decode, nonce } = options;
  if ([init, status, cancel, decode, given].filter((chosen) => chosen !== undefined).length > 1)
    throw new StartError('give one of --init, --status, --cancel, --decode and a share');
  const otp = options.otp === undefined ? undefined : await secretFrom(options.otp, 'an OTP', sources);
  if (decode !== undefined) {
    if (otp === undefined) throw new StartError('--decode needs the --otp of the attempt');
    output.field([['token', unmasked(decode, otp)]], 'token');
    return;
  }
  if (cancel === true)
    return output.done(await client.sys.cancelRootGeneration(nonce), 'The attempt is ended, if there was one.');
  if (status === true) return show(output, await client.sys.rootGeneration());
  if (init === true) return show(output, await client.sys.startRootGeneration(otp));
  if (nonce === undefined)
    throw new StartError('give the --nonce that --init has shown, so that the share is meant for that attempt');
  show(output, await client.sys.generateRoot({ key: await shareFrom(sources, given), nonce }));
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

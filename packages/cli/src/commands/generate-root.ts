import type { RootGeneration } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
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

/** The calls of one kind of token that a threshold of shares makes. */
export interface CeremonyCalls {
  status(): Promise<RootGeneration>;
  start(otp: string | undefined): Promise<RootGeneration>;
  cancel(nonce: string | undefined): Promise<unknown>;
  update(given: { readonly key: string; readonly nonce: string }): Promise<RootGeneration>;
}

export interface TokenCeremony {
  readonly runner: Runner;
  /** For the help, such as `a root token`. */
  readonly what: string;
  readonly calls: (client: Session['client']) => CeremonyCalls;
}

/** Makes a command that creates a token from a threshold of shares. */
export function tokenCeremonyCommand(command: Command, { runner, what, calls }: TokenCeremony): void {
  serverOptions(command)
    .description(`generate ${what} from shares: start with --init, then each holder submits one share`)
    .argument('[share]', '- for standard input or @file, in hex or base64; prompted for if omitted')
    .option('--init', 'start an attempt; prints its nonce (for the holders) and the OTP (to decode the token)')
    .option('--otp <otp>', 'one-time password of the attempt, for --init or --decode: - for standard input or @file')
    .option('--nonce <nonce>', 'nonce printed by --init; required with a share, optional with --cancel')
    .option('--status', 'show the progress of the attempt')
    .option('--cancel', 'cancel the attempt; requires its nonce or a token with sudo')
    .option('--decode <token>', 'decode the encoded token returned to the last holder')
    .action(
      runner.serverAction((session: Session, share: string | undefined, options: Options) =>
        step(session, calls(session.client), share, options),
      ),
    );
}

async function step(
  { output, sources }: Session,
  calls: CeremonyCalls,
  argument: string | undefined,
  options: Options,
): Promise<void> {
  const { init, status, cancel, decode, nonce } = options;
  if ([init, status, cancel, decode, argument].filter((chosen) => chosen !== undefined).length > 1)
    throw new StartError('use only one of --init, --status, --cancel, --decode and a share');
  const otp = options.otp === undefined ? undefined : await secretFrom(options.otp, 'an OTP', sources);
  if (decode !== undefined) {
    if (otp === undefined) throw new StartError('--decode requires the --otp of the attempt');
    output.field([['token', decodeRootToken(decode, otp)]], 'token');
    return;
  }
  if (cancel === true) return output.done(await calls.cancel(nonce), 'The attempt was canceled, if one was in progress.');
  if (status === true) return show(output, await calls.status());
  if (init === true) return show(output, await calls.start(otp));
  if (nonce === undefined) throw new StartError('a share requires --nonce: use the nonce that --init printed');
  show(output, await calls.update({ key: await shareFrom(sources, argument), nonce }));
}

const show = (output: Session['output'], status: RootGeneration): void =>
  output.rows(
    [
      ['Started', status.started],
      ...(status.nonce === '' ? [] : [['Nonce', status.nonce] as const]),
      ['Progress', `${status.progress}/${status.required}`],
      ['Complete', status.complete],
      ...(status.otp === '' ? [] : [['OTP', status.otp] as const]),
      ['OTP Length', status.otp_length],
      ...(status.encoded_token === '' ? [] : [['Encoded Token', status.encoded_token] as const]),
    ],
    status,
  );

/** `operator generate-root`: creates a root token from a threshold of shares, for use when no root token is left. */
export const generateRootCommand = (operator: Command, runner: Runner): void =>
  tokenCeremonyCommand(operator.command('generate-root'), {
    runner,
    what: 'a root token',
    calls: ({ sys }) => ({
      status: () => sys.rootGeneration(),
      start: (otp) => sys.startRootGeneration(otp),
      cancel: (nonce) => sys.cancelRootGeneration(nonce),
      update: (given) => sys.generateRoot(given),
    }),
  });

/**
 * Decodes the token of a root generation. The encoded token is the token's bytes XORed with the bytes of the OTP, in base64 without
 * padding.
 * @throws StartError if the OTP does not match the token
 */
function decodeRootToken(encoded: string, otp: string): string {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) throw new StartError('the encoded token is not valid base64');
  const [bytes, pad] = [Buffer.from(encoded, 'base64'), Buffer.from(otp)];
  if (bytes.length !== pad.length)
    throw new StartError('the OTP and the encoded token differ in length: use the OTP of the same attempt');
  const token = Buffer.from(bytes.map((byte, at) => byte ^ (pad[at] ?? 0))).toString('latin1');
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new StartError('the OTP does not match the encoded token: use the OTP of the same attempt');
  return token;
}

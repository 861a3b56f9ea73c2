import type { Command } from 'commander';
import type { Session, SessionOptions } from '../session/session.ts';
import type { LocalWork } from './local-work.ts';

/** Result of a command: its exit code, 0 if undefined. */
export type CommandResult = Promise<number | undefined> | Promise<void> | number | undefined;

/** The action of a command. commander calls it with the positional arguments, the options and the command. */
type Action = (...args: unknown[]) => Promise<void>;

/** Makes the actions of commands from handlers. The declaration of a command determines the argument types of its handler. */
export interface Runner {
  /** For commands that call a server: loads the client code when the command runs. */
  readonly serverAction: <Args extends unknown[]>(handler: (session: Session, ...args: Args) => CommandResult) => Action;
  /** For commands that run without a server session. */
  readonly localAction: <Args extends unknown[]>(handler: (...args: Args) => CommandResult) => Action;
  readonly work: LocalWork;
  /** Loads every command, for the completion scripts. */
  readonly wholeProgram: () => Promise<Command>;
}

export const createRunner = (
  setExitCode: (code: number) => void,
  work: LocalWork,
  wholeProgram: () => Promise<Command>,
): Runner => ({
  work,
  wholeProgram,
  serverAction:
    <Args extends unknown[]>(handler: (session: Session, ...args: Args) => CommandResult): Action =>
    async (...args) => {
      const { openSession, withTokenAdvice } = await import('../session/session.ts');
      const session = openSession(args.at(-2) as SessionOptions);
      setExitCode((await withTokenAdvice(session, async () => handler(session, ...(args.slice(0, -1) as Args)))) ?? 0);
    },
  localAction:
    <Args extends unknown[]>(handler: (...args: Args) => CommandResult): Action =>
    async (...args) =>
      setExitCode((await handler(...(args.slice(0, -1) as Args))) ?? 0),
});

import type { Command } from 'commander';
import type { Session, SessionOptions } from '../session/session.ts';
import type { LocalWork } from './local-work.ts';

/** What a command ends with: an exit code, 0 when it says nothing. */
export type Ending = Promise<number | undefined> | Promise<void> | number | undefined;

/** What commander calls: with the positional arguments, the options and the command. */
type Action = (...args: unknown[]) => Promise<void>;

/** How the actions of commands are run. The types of their arguments are what their declarations say. */
export interface Runner {
  /** One that asks a server: what is needed for that is loaded now, and by no other command. */
  readonly asking: <Args extends unknown[]>(handler: (session: Session, ...args: Args) => Ending) => Action;
  readonly local: <Args extends unknown[]>(handler: (...args: Args) => Ending) => Action;
  readonly work: LocalWork;
  /** Every command, loaded for those that describe them all. */
  readonly wholeProgram: () => Promise<Command>;
}

export const createRunner = (end: (code: number) => void, work: LocalWork, wholeProgram: () => Promise<Command>): Runner => ({
  work,
  wholeProgram,
  asking:
    <Args extends unknown[]>(handler: (session: Session, ...args: Args) => Ending): Action =>
    async (...args) => {
      const { openSession } = await import('../session/session.ts');
      end((await handler(openSession(args.at(-2) as SessionOptions), ...(args.slice(0, -1) as Args))) ?? 0);
    },
  local:
    <Args extends unknown[]>(handler: (...args: Args) => Ending): Action =>
    async (...args) =>
      end((await handler(...(args.slice(0, -1) as Args))) ?? 0),
});

import { readFile, rm, writeFile } from 'node:fs/promises';
import { StartError } from '@transitd/process';
import { fileError } from './part-file.ts';

/** The identity of the input, next to the part of an output that does not contain it. */
export class SourceNote {
  readonly #part: string;
  readonly #path: string;

  /** @param output - path of the complete output */
  constructor(output: string) {
    this.#part = `${output}.part`;
    this.#path = `${this.#part}.source`;
  }

  /** @throws StartError */
  async write(identity: string): Promise<void> {
    try {
      await this.delete();
      await writeFile(this.#path, identity, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      throw fileError(this.#path, error);
    }
  }

  /** @throws StartError if the part was made from another input, or from an earlier state of it */
  async require(identity: string, input: string): Promise<void> {
    const noted = await readFile(this.#path, 'latin1').catch(() => undefined);
    if (noted !== identity)
      throw new StartError(
        `${input} is not the file from which ${this.#part} was made, or it has changed: delete ${this.#part} and start again`,
      );
  }

  /** A note that stays changes the outcome of no command: the next part begins with another one. */
  async delete(): Promise<void> {
    await rm(this.#path, { force: true }).catch(() => undefined);
  }
}

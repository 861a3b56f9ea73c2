import type { TransitError } from '../errors.ts';
import { type KeyCache, type LoadedKey, VersionGone } from '../keys/key-cache.ts';
import type { BatchReply } from './batch.ts';
import { type Item, type Operation, perform, type Tools, type Work } from './operation.ts';

/** An operation whose key loses a version on the way starts over with the key as it is then, this often at most. */
const attemptsMax = 5;

/** Work that is done under one state of a key that exists. */
export class KeyedWork {
  readonly #keys: KeyCache;
  readonly #tools: Tools;

  constructor(keys: KeyCache, tools: Tools) {
    this.#keys = keys;
    this.#tools = tools;
  }

  /** @param missing - the refusal where there is no key of that name */
  async perform<I extends Item, R>(
    operation: Pick<Operation<I, R>, 'run'>,
    name: string,
    pending: Work<I> | Promise<Work<I>>,
    missing: () => TransitError,
  ): Promise<R | BatchReply<R>> {
    const work = pending instanceof Promise ? await pending : pending;
    return this.underKey(name, (key) => perform(operation, this.#tools, key, work), missing);
  }

  /** Does something under one state of a key, again from its newest state when a version of it is gone. */
  async underKey<R>(name: string, use: (key: LoadedKey) => Promise<R>, missing: () => TransitError): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      const key = this.#keys.cached(name) ?? (await this.#keys.key(name));
      if (key === undefined) throw missing();
      try {
        const reply = await use(key);
        this.#keys.assertOpen();
        return reply;
      } catch (error) {
        if (!(error instanceof VersionGone) || attempt === attemptsMax) throw error;
      }
    }
  }
}

import { TaskLimit } from '@transitd/event-loop';
import type { Store } from '@transitd/storage-fsm';
import { noBytes } from '../algorithms/aead.ts';
import type { KeyCache, LoadedKey } from './key-cache.ts';
import { type KeyRecord, usableVersion } from './key-record.ts';
import { type KeyView, keyView, type VersionView } from './key-view.ts';
import type { Paths } from './paths.ts';
import { visibleVersions } from './stored-versions.ts';

/** A view of so many versions takes milliseconds and a large part of a megabyte. */
const manyVersions = 256;

/**
 * Views of so many versions are made one after the other, over all engines of this thread. Requests share the event loop, so together they
 * would be no faster, and all views would be in memory at the same time.
 */
const large = new TaskLimit(1);

/** Makes the readable parts of keys. */
export class KeyViews {
  readonly #store: Store;
  readonly #paths: Paths;
  readonly #keys: KeyCache;
  /** Views that are being made, for all who request them meanwhile. A changed key is another object. */
  readonly #pending = new WeakMap<LoadedKey, Promise<KeyView>>();

  constructor({ store, paths, keys }: { readonly store: Store; readonly paths: Paths; readonly keys: KeyCache }) {
    this.#store = store;
    this.#paths = paths;
    this.#keys = keys;
  }

  /** Returns the view of a key. @param context - selects the public keys of a derived key pair; otherwise empty */
  async of(key: LoadedKey, context = noBytes): Promise<KeyView> {
    if (context.length > 0) return this.#make(key, context);
    return key.cachedView?.view ?? this.#pending.get(key) ?? this.#makeAndKeep(key);
  }

  /** Returns the stored versions that a changed key's view shows. They come from the cached view, if it has all of them. */
  async versionsAfter({ cachedView, record: before }: LoadedKey, after: KeyRecord): Promise<readonly VersionView[]> {
    const { minDecryptionVersion: first } = after;
    if (cachedView === undefined || first < before.minDecryptionVersion) return visibleVersions(this.#store, this.#paths, after);
    const { versions } = cachedView.view;
    return first === before.minDecryptionVersion ? versions : versions.filter(({ version }) => version >= first);
  }

  async #makeAndKeep(key: LoadedKey): Promise<KeyView> {
    const pending = this.#make(key, noBytes);
    this.#pending.set(key, pending);
    try {
      const view = await pending;
      this.#keys.keepView(key, view);
      return view;
    } finally {
      this.#pending.delete(key);
    }
  }

  #make(key: LoadedKey, context: Uint8Array): Promise<KeyView> {
    const make = async (): Promise<KeyView> => keyView(key, await visibleVersions(this.#store, this.#paths, key.record, context));
    const versions = usableVersion(key.record) - key.record.minDecryptionVersion;
    return versions < manyVersions ? make() : large.run(make);
  }
}

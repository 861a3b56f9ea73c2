import { PrimaryLink, type PrimaryLinkStatus } from '@transitd/cluster';
import type { Clock, Logger } from '@transitd/process';
import type { StoredPrimaryCredential } from './primary-credential.ts';
import type { SecondarySide } from './secondary-side.ts';

/** The link of this cluster's active node to the primary, or to the former one. It is open while the role of this cluster requires it. */
export class LinkToPrimary {
  readonly #secondary: SecondarySide;
  readonly #credential: StoredPrimaryCredential;
  readonly #clock: Clock;
  readonly #log: Logger;
  #link: PrimaryLink | undefined;

  constructor(
    secondary: SecondarySide,
    { credential, clock, log }: { readonly credential: StoredPrimaryCredential; readonly clock: Clock; readonly log: Logger },
  ) {
    this.#secondary = secondary;
    this.#credential = credential;
    this.#clock = clock;
    this.#log = log;
  }

  /** Undefined while the link is closed. */
  get status(): PrimaryLinkStatus | undefined {
    return this.#link?.status();
  }

  /** Opens the link, if this cluster has a credential. @throws StoreError */
  async open(): Promise<void> {
    if (this.#link !== undefined) return;
    const credential = this.#credential;
    const issued = await credential.read();
    if (issued === undefined) return;
    this.#secondary.certificate = issued.certificate;
    const credentials = {
      get present() {
        return credential.present?.certificate === issued.certificate ? credential.present : issued;
      },
    };
    this.#link = new PrimaryLink({ credentials, cluster: this.#secondary, clock: this.#clock, log: this.#log });
  }

  close(): void {
    this.#link?.close();
    this.#link = undefined;
  }
}

/** Where clients reach this node: the configured address, else that of its first listener. */
export class ApiAddress {
  readonly #configured: string | undefined;
  #listener: string | undefined;

  constructor(configured: string | undefined) {
    this.#configured = configured;
  }

  /** Empty until the first listener accepts connections, if none is configured. */
  get url(): string {
    return this.#configured ?? this.#listener ?? '';
  }

  get isListening(): boolean {
    return this.#listener !== undefined;
  }

  /** Records that a listener accepts connections at this address. */
  listeningAt(address: string): void {
    this.#listener ??= address;
  }
}

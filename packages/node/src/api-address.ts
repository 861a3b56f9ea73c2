/** Where clients reach this node: the configured address, else that of its first listener. */
export class ApiAddress {
  #url: string;
  #isListening = false;

  constructor(configured = '') {
    this.#url = configured;
  }

  /** Empty until the first listener accepts connections, if none is configured. */
  get url(): string {
    return this.#url;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  /** Records that a listener accepts connections at this address. */
  listeningAt(address: string): void {
    this.#url ||= address;
    this.#isListening = true;
  }
}

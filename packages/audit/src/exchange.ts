import { randomUUID } from 'node:crypto';
import type { Principal } from '@transitd/access';
import { type JsonSchema, type Reply, RequestError, type Verb, withRequestId } from '@transitd/http';
import type { AuditDevices, EntryType } from './audit-devices.ts';
import type { AuditKey, HashText } from './audit-key.ts';
import { type AuditedMount, requestEntry, responseEntry, type ShownRequest, shownRequest } from './entry.ts';

export interface ExchangeParts {
  readonly devices: AuditDevices;
  readonly auditKey: AuditKey;
  /** The mount that the path leads to. */
  readonly mount: () => Promise<AuditedMount>;
  readonly verb: Verb;
  readonly path: string;
  readonly address: string;
  readonly port: number | undefined;
  readonly forwardedFrom: string | undefined;
  /** What the operation reads, by the names of its members. */
  readonly reads: JsonSchema;
}

/** What one sink is told of the request. */
interface Shown {
  readonly hash: HashText;
  readonly request: ShownRequest;
}

/** One request and its answer, on the node that decides about it: a pair of entries. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #id = randomUUID();
  #token: string | undefined;
  #principal: Principal | undefined;
  #data: object | undefined;
  #wrapTtlS = 0;
  /** The answer decides whether this node writes anything. */
  #waitsForAnswer = false;
  #mount: AuditedMount = { point: '', type: '' };
  #shown: ReadonlyMap<string, Shown> | undefined;
  #begun = false;
  #ended = false;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** The first entry is written, or was to be. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Who asks. @param principal - undefined where the token is not good, or none is needed */
  from(token: string | undefined, principal?: Principal): void {
    this.#token = token;
    this.#principal = principal;
  }

  /** The answer will be wrapped. */
  wraps(ttlS: number): void {
    this.#wrapTtlS = ttlS;
  }

  /** Nothing is written before there is an answer: until then another node may come to decide. */
  waitForAnswer(): void {
    this.#waitsForAnswer = true;
  }

  /** Writes the first entry. Nothing was done yet, and nothing may be done when this fails. @throws RequestError `audit_failed` */
  async begin(data: object): Promise<void> {
    this.#data = data;
    if (!this.#waitsForAnswer) await this.#writeRequest(nothingDone);
  }

  /**
   * Writes what is still to be written; the answer, with the id of its entries, may leave then.
   * @param isDone - whether anything may have been done for the request, refused or not
   * @throws RequestError `audit_failed`
   */
  async end(reply: Reply, { isDone = this.#begun }: { readonly isDone?: boolean } = {}): Promise<Reply> {
    if (this.#ended) return reply;
    this.#ended = true;
    const failure = isDone ? untold(reply.status) : nothingDone;
    if (!this.#begun) await this.#writeRequest(failure);
    const time = new Date().toISOString();
    const answer = reply.body === undefined ? reply : { ...reply, body: withRequestId(reply.body, this.#id) };
    await this.#write('response', failure, ({ hash, request }) =>
      responseEntry(request, { reply: answer, data: this.#data, mount: this.#mount, time }, hash),
    );
    return answer;
  }

  async #writeRequest(failure: string): Promise<void> {
    this.#begun = true;
    const time = new Date().toISOString();
    try {
      await this.#show();
    } catch (error) {
      this.#parts.devices.unmade(error);
      throw auditFailed(failure, error);
    }
    await this.#write('request', failure, ({ request }) => requestEntry(request, time));
  }

  /** The keys are taken now, so that the answer of a request that seals the node has its entry too. */
  async #show(): Promise<void> {
    const { devices, auditKey, verb, path, address, port, forwardedFrom, reads } = this.#parts;
    this.#mount = await this.#parts.mount();
    const asked = {
      ...{ id: this.#id, verb, path, mount: this.#mount, address, port, forwardedFrom, reads },
      ...{ token: this.#token, principal: this.#principal, data: this.#data, wrapTtlS: this.#wrapTtlS },
    };
    const shown = new Map<string, Shown>();
    for (const device of devices.names) {
      const hash = await auditKey.hashOf(device);
      shown.set(device, { hash, request: shownRequest(asked, hash) });
    }
    this.#shown = shown;
  }

  async #write(type: EntryType, failure: string, entry: (shown: Shown) => string): Promise<void> {
    const shown = this.#shown;
    try {
      await this.#parts.devices.write(type, (device) => {
        const one = shown?.get(device);
        if (one === undefined) throw new Error('nothing is shown of this request');
        return entry(one);
      });
    } catch (error) {
      throw auditFailed(failure, error);
    }
  }
}

const nothingDone = 'nothing was done';

const untold = (status: number): string =>
  status < 400
    ? 'the request took effect, but its answer is withheld'
    : status < 500
      ? 'the request was refused'
      : 'the request failed, and may have taken effect';

const auditFailed = (failure: string, cause: unknown): RequestError =>
  new RequestError('audit_failed', `audit: no sink takes the entry of this request: ${failure}`, { cause });

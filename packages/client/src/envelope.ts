/** A token, as the answer that issues or renews it shows it. */
export interface Auth {
  readonly client_token: string;
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly token_policies: readonly string[];
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Seconds; 0 for one that does not end. */
  readonly lease_duration: number;
  readonly renewable: boolean;
  readonly token_type: 'service' | 'batch';
  readonly orphan: boolean;
  readonly num_uses: number;
}

/** Stands in the place of an answer that was wrapped. */
export interface WrapInfo {
  readonly token: string;
  readonly accessor: string;
  readonly ttl: number;
  readonly creation_time: string;
  readonly creation_path: string;
  readonly wrapped_accessor?: string;
}

/** What most answers are. Members are called as on the wire. */
export interface Envelope<Data = unknown> {
  readonly request_id: string;
  readonly lease_id: string;
  readonly renewable: boolean;
  readonly lease_duration: number;
  readonly data: Data;
  readonly wrap_info: WrapInfo | null;
  readonly warnings: readonly string[] | null;
  readonly auth: Auth | null;
}

/** Of a change without a result: nothing, unless there is a warning. */
export type Written = Envelope<null> | undefined;

/** Of a login, and of a token that was made or renewed. */
export type Issued = Envelope<null> & { readonly auth: Auth };

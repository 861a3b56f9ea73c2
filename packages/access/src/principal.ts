/** Who a request comes from, as its token says. */
export interface Principal {
  /** Names the token without being it; a secret too, but no credential. */
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly displayName: string;
  /** Has the policy `root`. */
  readonly root: boolean;
}

export type Capability = 'create' | 'read' | 'update' | 'patch' | 'delete' | 'list' | 'sudo';

/** The one question about rights: root may do everything, and no other policy grants anything yet. */
export const allows = (principal: Principal, _capability: Capability, _path: string): boolean => principal.root;

import type { ComponentChildren } from 'preact';
import { AuthMethods } from './auth-methods.tsx';
import { Denial } from './denial.tsx';
import { Policies } from './policies.tsx';
import { AuditDevices, OwnToken, SealState } from './state.tsx';

/** Shows the caller's token, the reasons of denials, the policies, the auth methods, and the state of the seal and the audit devices. */
export const AccessPage = () => (
  <>
    <Part id="token" title="Your token">
      <OwnToken />
    </Part>
    <Part id="denial" title="Why would a token be denied?">
      <Denial />
    </Part>
    <Part id="policies" title="Policies">
      <Policies />
    </Part>
    <Part id="auth" title="Auth methods">
      <AuthMethods />
    </Part>
    <div class="columns">
      <Part id="seal" title="Seal">
        <SealState />
      </Part>
      <Part id="audit" title="Audit devices of this node">
        <AuditDevices />
      </Part>
    </div>
  </>
);

const Part = ({ id, title, children }: { readonly id: string; readonly title: string; readonly children: ComponentChildren }) => (
  <section aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>{title}</h2>
    {children}
  </section>
);

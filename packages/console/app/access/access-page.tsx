import type { ComponentChildren } from 'preact';
import { Denial } from './denial.tsx';
import { Policies } from './policies.tsx';
import { AuditDevices, OwnToken, SealState } from './state.tsx';

/** Shows the rights of the caller's token, the reasons of denials, the policies, and the state of the seal and the audit devices. */
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

import type { ConfChange, ConfState, MemberChange, NodeId } from '../types.ts';
import { flawOf, isJoint } from './conf-state.ts';

export type Changed = { readonly conf: ConfState } | { readonly flaw: string };

/**
 * Returns the configuration that a change leads to, or why it cannot be made. Adding or removing one voter is applied directly, since any
 * two majorities before and after overlap (thesis §4.1). Every larger change becomes joint: both halves decide until `leave` (Raft §6).
 */
export function changeConf(conf: ConfState, change: ConfChange): Changed {
  const changed = change.kind === 'leave' ? leaveJoint(conf) : changeMembers(conf, change);
  const flaw = 'conf' in changed ? flawOf(changed.conf) : undefined;
  return flaw === undefined ? changed : { flaw };
}

/** Returns the configuration that follows a joint one: only the incoming voters remain voters, and demoted voters become learners. */
function leaveJoint(conf: ConfState): Changed {
  if (!isJoint(conf)) return { flaw: 'the configuration is not joint' };
  const learners = ascending([...conf.learners, ...conf.learnersNext]);
  return { conf: { ...conf, votersOutgoing: [], learners, learnersNext: [], autoLeave: false } };
}

function changeMembers(
  conf: ConfState,
  { members, context = conf.context, autoLeave = true }: Extract<ConfChange, { kind: 'change' }>,
): Changed {
  if (isJoint(conf)) return { flaw: 'a joint configuration can only be left' };
  if (new Set(members.map(({ id }) => id)).size !== members.length) return { flaw: 'a member is changed twice' };
  const voters = withChanges(conf.voters, members, 'voter');
  const learners = withChanges(conf.learners, members, 'learner');
  if (voters.length === 0) return { flaw: 'no voter would be left' };
  const votersChanged = [...voters, ...conf.voters].filter((id) => !(voters.includes(id) && conf.voters.includes(id)));
  if (votersChanged.length <= 1) {
    const same = votersChanged.length === 0 && learners.join() === conf.learners.join() && context === conf.context;
    return same ? { flaw: 'the change changes nothing' } : { conf: { ...conf, voters, learners, context } };
  }
  // A voter that is being demoted stays a voter of the outgoing half until that half is gone.
  const demoted = learners.filter((id) => conf.voters.includes(id));
  return {
    conf: {
      voters,
      votersOutgoing: conf.voters,
      learners: learners.filter((id) => !demoted.includes(id)),
      learnersNext: demoted,
      autoLeave,
      context,
    },
  };
}

const withChanges = (ids: readonly NodeId[], members: readonly MemberChange[], part: MemberChange['to']): NodeId[] => {
  const others = ids.filter((id) => !members.some((member) => member.id === id));
  return ascending([...others, ...members.filter(({ to }) => to === part).map(({ id }) => id)]);
};

const ascending = (ids: readonly NodeId[]): NodeId[] => [...ids].sort((a, b) => a - b);

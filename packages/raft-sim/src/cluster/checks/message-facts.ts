import type { Message } from '@transitd/raft-core';

/** Returns the fields of a message that are written to the trace. */
export function factsOf(message: Message): (number | boolean)[] {
  switch (message.type) {
    case 'Append':
      return [message.prevIndex, message.prevTerm, message.commit, message.entries.length, message.round];
    case 'Commit':
      return [message.prevIndex, message.prevTerm, message.commit];
    case 'AppendResp':
      return message.ok ? [true, message.match, message.round] : [false, message.prevIndex, message.hintIndex, message.hintTerm];
    case 'Heartbeat':
      return [message.commit, message.round];
    case 'HeartbeatResp':
      return [message.round, message.fit];
    case 'PreVote':
    case 'Vote':
      return [message.lastIndex, message.lastTerm, message.transfer];
    case 'PreVoteResp':
    case 'VoteResp':
      return [message.reject, message.forTerm, message.longerLog, message.votedElsewhere];
    case 'SnapOffer':
      return [message.meta.index, message.meta.term];
    case 'SnapResult':
      return [message.index, message.ok, message.lastIndex];
    case 'TimeoutNow':
      return [message.lastIndex, message.lastTerm];
    case 'Removed':
      return [message.atIndex];
    case 'ReadIndex':
      return [message.requests.length];
    case 'ReadIndexResp':
      return [message.requests.length, message.index, message.ok];
    case 'Confirm':
    case 'ConfirmResp':
      return [message.request.id, message.index];
  }
}

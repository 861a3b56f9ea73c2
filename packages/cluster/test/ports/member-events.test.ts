import { expect } from 'chai';
import { MemberEvents } from '../../src/ports/member-events.ts';

describe('the events of a member', () => {
  it('reach the listeners of their kind at once, in the order in which these were added', () => {
    const events = new MemberEvents();
    const heard: string[] = [];
    for (const name of ['lower', 'upper']) events.on('clockJump', ({ ms }) => void heard.push(`${name} ${ms}`));
    events.on('removed', () => void heard.push('removed'));
    events.emit('clockJump', { ms: 7 });
    expect(heard).to.deep.equal(['lower 7', 'upper 7']);
    events.emit('removed');
    expect(heard.at(-1)).to.equal('removed');
    events.emit('configuration'); // nobody listens
  });

  it('may cause others, which all listeners hear first', () => {
    const events = new MemberEvents();
    const heard: string[] = [];
    events.on('configuration', () => events.emit('members'));
    events.on('members', () => void heard.push('members'));
    events.on('configuration', () => void heard.push('configuration'));
    events.emit('configuration');
    expect(heard).to.deep.equal(['members', 'configuration']);
  });
});

import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { formatPolicy } from '../../src/local/policy-format.ts';

const formatted = `# the shop
path "transit/encrypt/orders" {
  capabilities = ["update"] # writes only
}

path "transit/keys/*" {
  capabilities = ["read", "list"]
  allowed_parameters = {
    "type" = ["aes256-gcm96", "a,b={}"]
    "*" = []
  }
}
`;

describe('policy fmt', () => {
  it('leaves a formatted policy unchanged', () => {
    expect(formatPolicy(formatted)).to.equal(formatted);
  });

  it('indents, puts one space between words and one block after the other', () => {
    const ugly = `# the shop
path   "transit/encrypt/orders"{capabilities=["update"] # writes only
}



path "transit/keys/*" { capabilities = [ "read" ,"list" ]

      allowed_parameters = {"type"=["aes256-gcm96","a,b={}"]
"*"=[]
} }
`;
    expect(formatPolicy(ugly)).to.equal(formatted.replace('["read", "list"]\n', '["read", "list"]\n\n'));
  });

  it('keeps lists of several lines, empty objects and every kind of comment', () => {
    const text = `// one
/* two */
path "a" {
  capabilities = [
    "read", # why
    "list",
  ]
  denied_parameters = {}
}
`;
    expect(formatPolicy(text)).to.equal(text);
    expect(formatPolicy(text.replaceAll('  ', '\t\t'))).to.equal(text);
  });

  it('formats JSON', () => {
    expect(formatPolicy('{"path":{"a":{"capabilities":["read"]}}}')).to.match(/^\{\n {2}"path": \{\n/);
  });

  it('refuses a text that is not a policy, with its position', () => {
    expect(() => formatPolicy('path "a" { capabilities = ["fly"] }')).to.throw(StartError, /1:\d+/);
    expect(() => formatPolicy('path "a" {')).to.throw(StartError, /end of the text/);
  });
});

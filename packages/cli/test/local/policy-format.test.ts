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

const format = (text: string): string => formatPolicy(text, 'p.hcl');

describe('policy fmt', () => {
  it('leaves a formatted policy unchanged', () => {
    expect(format(formatted)).to.equal(formatted);
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
    expect(format(ugly)).to.equal(formatted.replace('["read", "list"]\n', '["read", "list"]\n\n'));
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
    expect(format(text)).to.equal(text);
    expect(format(text.replaceAll('  ', '\t\t'))).to.equal(text);
  });

  it('formats JSON', () => {
    expect(format('{"path":{"a":{"capabilities":["read"]}}}')).to.match(/^\{\n {2}"path": \{\n/);
  });

  it('refuses a text that is not a policy, with its file and position', () => {
    expect(() => format('path "a" { capabilities = ["fly"] }')).to.throw(StartError, /^p\.hcl: .*1:\d+/);
    expect(() => format('path "a" {')).to.throw(StartError, /end of the text/);
  });
});

// By default fast-check makes lists and texts of about ten elements, whatever `maxLength` says. Here the maximum counts that a test gives.
import fc from 'fast-check';

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });
